/// The page of `larder cache show`, for people.
enum CacheShowText {
    static func lines(_ object: CacheObject, nowMicroseconds now: Int64) -> [String] {
        var facts: [FactPage.Fact] = [("key", "\(object.method) \(object.url)")]
        if !object.partition.isEmpty { facts.append(("principal", object.partition)) }
        facts.append(("variant", Self.variant(object.variant)))
        facts.append(("tier", "\(object.tier.rawValue), \(Human.count(object.hits, "hit"))"))
        facts.append(("requested", Self.moment(object.requestTimeMicroseconds, now)))
        let took = Self.milliseconds(
            from: object.requestTimeMicroseconds, to: object.responseTimeMicroseconds)
        facts.append(
            (
                "received",
                Self.moment(object.responseTimeMicroseconds, now)
                    + ", after \(Human.time(milliseconds: took))"
            ))
        facts.append(("stored", Self.moment(object.storedTimeMicroseconds, now)))
        facts.append(("last used", Self.moment(object.lastUsedMicroseconds, now)))
        facts.append(("freshness", Self.freshness(object)))
        facts.append(("body", Self.body(object)))
        var lines = FactPage.lines(facts)
        lines += ["", Printable.text("HTTP \(object.status) \(object.reason)")]
        lines += object.fields.map(Self.field)
        if !object.trailers.isEmpty {
            lines += ["", "Trailers:"] + object.trailers.map(Self.field)
        }
        return lines
    }

    private static func field(_ field: CacheField) -> String {
        Printable.text("\(field.name): \(field.value)")
    }

    private static func variant(_ fields: [CacheField]) -> String {
        guard !fields.isEmpty else { return "the only one (no Vary)" }
        return fields.map { $0.value.isEmpty ? "\($0.name) absent" : "\($0.name): \($0.value)" }
            .joined(separator: "; ")
    }

    private static func body(_ object: CacheObject) -> String {
        if let partial = object.partial {
            let ranges = partial.ranges.map { "\($0.first)-\($0.last)" }
            return "\(partial.text) (bytes \(ranges.joined(separator: ", ")))"
        }
        let size =
            object.bodyBytes < 1024
            ? Human.size(object.bodyBytes)
            : "\(Human.size(object.bodyBytes)) (\(Human.count(object.bodyBytes)) bytes)"
        return "\(size), SHA-256 \(object.sha256 ?? "unknown: the body could not be read")"
    }

    /// Reads as `lifetime 1 h (max-age) - age 20 min = 40 min left: fresh`.
    private static func freshness(_ object: CacheObject) -> String {
        let freshness = object.freshness
        let left = freshness.remainingMilliseconds
        var text =
            "lifetime \(Human.time(milliseconds: freshness.lifetimeMilliseconds))"
            + " (\(freshness.source)) - age "
            + "\(Human.time(milliseconds: freshness.currentAgeMilliseconds))"
            + " = \(Human.time(milliseconds: left)): \(left > 0 ? "fresh" : "stale")"
        if object.isInvalidated { text += ", but invalidated: must be validated before use" }
        return text
    }

    private static func moment(_ microseconds: Int64, _ now: Int64) -> String {
        let ago = Self.milliseconds(from: microseconds, to: now)
        let distance =
            ago < 0
            ? "in \(Human.time(milliseconds: ago == .min ? .max : -ago))"
            : "\(Human.time(milliseconds: ago)) ago"
        return "\(Human.date(microseconds: microseconds)) (\(distance))"
    }

    private static func milliseconds(from: Int64, to: Int64) -> Int64 {
        let (difference, overflow) = to.subtractingReportingOverflow(from)
        return (overflow ? (from < to ? .max : .min) : difference) / 1000
    }
}
