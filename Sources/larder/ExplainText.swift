import LarderControl

/// The page of `larder explain`, for people: sections, and the remedy in the last line.
enum ExplainText {
    static func lines(_ record: ExplanationRecord) -> [String] {
        var lines = ["\(record.method) \(record.url)"] + self.history(record)
        lines += ["", "Now"]
        lines += self.aligned(self.verdict(record))
        lines += self.rules(
            record.requestRules
                + (record.variants.first { $0.isSelected }.map(\.rules) ?? []))
        let unlisted = record.unlistedVariants ?? 0
        for (index, variant) in record.variants.enumerated() {
            lines += self.variant(
                variant, number: index + 1, of: record.variants.count + unlisted)
        }
        if unlisted > 0 { lines += ["", "\(unlisted) more variants are not shown"] }
        lines += self.remedies(record.remedies)
        return lines.map(Printable.text)
    }

    /// What of the configuration's access rules speaks.
    static func denial(_ rule: String) -> String {
        Printable.text(
            "\(rule) clients by way of loopback or a Unix socket (settings: access): they get 403, whatever "
                + "is stored")
    }

    /// Who is not let there.
    static func ownAddress(_ host: String) -> String {
        Printable.text(
            "\(host) is an address of the proxy's own machine: clients of other machines get 403, unless "
                + "the access rule that lets them in names destinations")
    }

    static func lines(_ record: StorageRecord) -> [String] {
        var facts = [("status", "\(record.status)")]
        if !record.url.isEmpty {
            facts.insert(("request", "\(record.method) \(record.url)"), at: 0)
        }
        if let reason = record.reason {
            let verdict = record.isStorable ? "may be stored" : "is not stored"
            facts.append(("storing", "\(verdict): \(self.reason(reason))"))
        } else {
            facts.append(("storing", "may be stored"))
        }
        if let reuse = record.reuse {
            let use = reuse.reason == "fresh" ? "from the cache" : "after asking the origin"
            facts.append(("next time", "\(use): \(self.reason(reuse))"))
        }
        facts += record.validators.map { ("validator", $0) }
        facts += record.overrides.map { ("setting", $0) }
        var lines = ["Response"] + self.aligned(facts)
        lines += self.rules(record.requestRules + record.responseRules)
        lines += ["", "Freshness, if it were stored now"] + self.freshness(record.freshness)
        lines += self.remedies(record.remedies)
        return lines.map(Printable.text)
    }

    // MARK: Sections

    private static func history(_ record: ExplanationRecord) -> [String] {
        guard let history = record.history else {
            return ["", "Last requests", "  not known: no proxy runs"]
        }
        guard !history.isEmpty else { return ["", "Last requests", "  none remembered"] }
        var table = Table(
            [
                .init(title: "WHEN"), .init(title: "REQUEST"), .init(title: "STATUS"),
                .init(title: "ANSWER"), .init(title: "AGE", isNumber: true),
                .init(title: "SIZE", isNumber: true), .init(title: "REASON"),
            ], width: nil)
        var rows: [String] = []
        for exchange in history {
            rows += table.add([
                Human.date(microseconds: exchange.timeMicroseconds), exchange.method,
                "\(exchange.status)", self.answer(exchange),
                exchange.ageSeconds.map { Human.time(milliseconds: $0.clampedThousandfold) } ?? "-",
                exchange.bytes.map(Human.size) ?? "-", self.reasons(exchange),
            ])
        }
        rows += table.finish()
        return ["", "Last requests"] + rows.map { "  \($0)" }
    }

    /// Whether the origin can be asked about what is selected, or about another variant.
    private static func hasValidator(_ record: ExplanationRecord) -> Bool {
        record.unlistedVariants ?? 0 > 0 || record.variants.contains { !$0.validators.isEmpty }
    }

    private static func verdict(_ record: ExplanationRecord) -> [(String, String)] {
        let isSpliced = record.forward == "partial"
        var answer =
            switch record.verdict {
            case .hit: "from the cache"
            case .staleHit: "from the cache, though stale"
            case .validate:
                isSpliced
                    ? "from what is stored, and the rest from the origin"
                    : self.hasValidator(record)
                        ? "after asking the origin whether the stored response still holds"
                        : "from the origin: it cannot be asked about what is stored, without a validator"
            case .fetch: "from the origin"
            case .refuse: "504, without asking the origin"
            }
        if record.isRevalidated { answer += "; the origin is asked behind it" }
        if let forward = record.forward { answer += " (fwd=\(forward))" }
        var facts = [
            ("answer", answer), ("because", self.reason(record.reason)), ("key", record.key),
        ]
        if let beneath = record.beneath { facts.insert(("beneath", self.reason(beneath)), at: 2) }
        if let acts = record.acts {
            facts.append(("to origin", acts.map(self.reason).joined(separator: ", ")))
        }
        if let outcome = record.outcome,
            record.verdict == .hit || record.verdict == .staleHit || isSpliced
        {
            facts.append(("sends", self.sent(outcome, for: record.method)))
        }
        facts.append(("session", record.session))
        let count = record.variants.count + (record.unlistedVariants ?? 0)
        let selected = record.variants.firstIndex(where: \.isSelected).map { $0 + 1 }
        let variant =
            count == 0
            ? "nothing is stored"
            : selected.map { "\($0) of \(count)" } ?? "none of \(count)"
        facts.append(("variant", variant))
        // Who asked for it before did so in a way that can be stored.
        if record.url.lowercased().hasPrefix("https://"), record.history?.isEmpty ?? true {
            facts.append(
                (
                    "tunnels",
                    "clients ask for https by tunnels (CONNECT), of which nothing is stored; all of "
                        + "this is about requests with the https URL in absolute form"
                ))
        }
        return facts
    }

    private static func rules(_ rules: [RuleRecord]) -> [String] {
        guard !rules.isEmpty else { return [] }
        let width = rules.map(\.subject.count).max() ?? 0
        let speakers = rules.map(\.speaker.count).max() ?? 0
        return ["", "Rules that speak"]
            + rules.map { rule in
                "  \(self.padded(rule.speaker, speakers))  \(self.padded(rule.subject, width))  "
                    + "\(rule.meaning) (\(rule.source))"
            }
    }

    private static func variant(_ variant: VariantRecord, number: Int, of count: Int) -> [String] {
        var title = "Variant \(number) of \(count): status \(variant.status), "
        title += Human.size(variant.bodyBytes)
        if let ranges = variant.storedRanges {
            title += ", bytes \(ranges.joined(separator: ", "))"
        }
        if variant.isInvalidated { title += ", invalidated" }
        if variant.isSelected { title += ", selected" }
        var facts = variant.varying.map { ("vary \($0.field)", self.comparison($0)) }
        facts += variant.validators.map { ("validator", $0) }
        facts += variant.overrides.map { ("setting", $0) }
        return ["", title] + self.aligned(facts) + self.freshness(variant.freshness)
    }

    private static func comparison(_ varying: VariantRecord.Varying) -> String {
        let stored = varying.stored.map { "\"\($0)\"" } ?? "nothing"
        let presented = varying.presented.map { "\"\($0)\"" } ?? "nothing"
        let hidden = "values not shown"
        switch varying.result {
        case "same": return varying.isHidden ? "the same (\(hidden))" : "the same: \(stored)"
        case "same-meaning":
            return varying.isHidden
                ? "the same in meaning (\(hidden))"
                : "the same in meaning: stored \(stored), asked \(presented)"
        case "any": return "nothing matches *"
        default:
            return varying.isHidden
                ? "\(varying.result) (\(hidden))"
                : "\(varying.result): stored \(stored), asked \(presented)"
        }
    }

    /// The arithmetic of RFC 9111 §4.2, line by line, in seconds.
    private static func freshness(_ freshness: FreshnessRecord) -> [String] {
        let rows: [(String, Int64, String)] = [
            (
                "freshness_lifetime", freshness.lifetimeMilliseconds,
                "\(freshness.lifetimeSource) (\(freshness.lifetimeRule))"
            ),
            ("age_value", freshness.ageValueMilliseconds, "Age (RFC 9111 §5.1)"),
            (
                "apparent_age", freshness.apparentAgeMilliseconds,
                freshness.dateMicroseconds.map {
                    "response_time - date_value, \(Human.date(microseconds: $0))"
                } ?? "no valid Date"
            ),
            (
                "response_delay", freshness.responseDelayMilliseconds,
                "response_time - request_time"
            ),
            (
                "corrected_age_value", freshness.correctedAgeValueMilliseconds,
                "age_value + response_delay"
            ),
            (
                "corrected_initial_age", freshness.correctedInitialAgeMilliseconds,
                "the larger of apparent_age and corrected_age_value"
            ),
            (
                "resident_time", freshness.residentTimeMilliseconds,
                "now - response_time, \(Human.date(microseconds: freshness.responseTimeMicroseconds))"
            ),
            (
                "current_age", freshness.currentAgeMilliseconds,
                "corrected_initial_age + resident_time (RFC 9111 §4.2.3)"
            ),
            (
                "remaining", freshness.remainingMilliseconds,
                "freshness_lifetime - current_age: \(freshness.isFresh ? "fresh" : "stale")"
            ),
        ]
        let names = rows.map(\.0.count).max() ?? 0
        let numbers = rows.map { self.seconds($0.1) }
        let width = numbers.map(\.count).max() ?? 0
        return zip(rows, numbers).map { row, number in
            let room = String(repeating: " ", count: width - number.count)
            return "  \(self.padded(row.0, names))  \(room)\(number)  \(row.2)"
        }
    }

    private static func remedies(_ remedies: [String]) -> [String] {
        ["", "What would have made it a hit: \(remedies.joined(separator: "; or "))"]
    }

    // MARK: Words

    /// What the client gets, of the record's word for it.
    private static func sent(_ outcome: String, for method: String) -> String {
        switch outcome {
        case "full": return method == "HEAD" ? "the head" : "the whole response"
        case "not-modified": return "304, as the client's copy still holds"
        case "precondition-failed": return "412, as the client's condition does not hold"
        case "range-not-satisfiable": return "416, as there are no such bytes"
        default:
            let words = outcome.split(separator: " ", maxSplits: 1)
            guard let bytes = words.dropFirst().first else { return outcome }
            return "206, bytes \(bytes)\(words.first == "parts" ? ", as multipart" : "")"
        }
    }

    private static func reason(_ reason: ReasonRecord) -> String {
        "\(reason.reason) (\(reason.source))"
    }

    private static func reasons(_ exchange: RecentRecord) -> String {
        var all = [exchange.reason, exchange.storage].compactMap { $0.map(self.reason) }
        // A rule that stores nothing also looks for nothing: said once.
        if all.first == all.last { all = Array(all.prefix(1)) }
        let acts = (exchange.acts ?? []).map(self.reason)
        return (all + acts + [exchange.error].compactMap(\.self)).joined(separator: ", ")
    }

    private static func answer(_ exchange: RecentRecord) -> String {
        if exchange.isHit {
            let tier = exchange.isFromMemory ? "memory" : "disk"
            let left = exchange.ttlSeconds.map { ", ttl \($0)" } ?? ""
            return "hit (\(tier))\(left)"
        }
        guard let forward = exchange.forward else { return "refused" }
        var text = exchange.isBackground == true ? "in the background, " : ""
        text += "fwd=\(forward)"
        if let status = exchange.forwardStatus { text += ", origin \(status)" }
        if exchange.isCollapsed { text += ", collapsed" }
        if exchange.isStored { text += ", stored" }
        if exchange.storage != nil { text += ", not stored" }
        return text
    }

    /// Reads as `12.345`.
    private static func seconds(_ milliseconds: Int64) -> String {
        let magnitude = milliseconds.magnitude
        let rest = String(magnitude % 1000)
        let zeros = String(repeating: "0", count: 3 - rest.count)
        return "\(milliseconds < 0 ? "-" : "")\(magnitude / 1000).\(zeros)\(rest) s"
    }

    private static func aligned(_ facts: [(String, String)]) -> [String] {
        let width = facts.map(\.0.count).max() ?? 0
        return facts.map { "  \(self.padded($0.0, width))  \($0.1)" }
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

extension Int64 {
    fileprivate var clampedThousandfold: Int64 {
        let (product, overflow) = self.multipliedReportingOverflow(by: 1000)
        return overflow ? (self < 0 ? .min : .max) : product
    }
}
