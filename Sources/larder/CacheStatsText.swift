import LarderControl

/// What is known of a session's cache, from the running proxy and from the file.
struct CacheStatsReport: Encodable {
    var session: String
    var kind: String
    var directory: String?
    /// nil: no proxy is running.
    var running: SessionStatistics?
    /// nil: there is no disk tier, or nothing in it yet.
    var disk: CacheFigures?
}

/// The page of `larder cache stats`, for people.
enum CacheStatsText {
    static func lines(_ report: CacheStatsReport) -> [String] {
        var facts: [(String, String)] = [("session", "\(report.session) (\(report.kind))")]
        if let directory = report.directory { facts.append(("directory", directory)) }
        if let running = report.running {
            facts += Self.requests(running)
            facts += Self.completions(running)
            facts += Self.reasons(running)
            facts += Self.tier("memory", running.memory)
        } else {
            facts.append(("proxy", "not running"))
        }
        if let disk = report.disk {
            facts += Self.disk(disk)
        } else if let disk = report.running?.disk {
            facts += Self.tier("disk", disk)
        } else if report.directory != nil {
            facts.append(("disk", "nothing stored yet"))
        }
        let width = facts.map(\.0.count).max() ?? 0
        return facts.map { name, value in
            "\(name)\(String(repeating: " ", count: width - name.count + 2))\(value)"
        }
    }

    private static func requests(_ running: SessionStatistics) -> [(String, String)] {
        let reused = running.hits &+ running.validated
        return [
            (
                "requests",
                "\(Human.count(running.requests)), hit ratio "
                    + "\(Human.share(reused, of: running.requests)) "
                    + "(\(Human.count(running.hits)) hits, \(Human.count(running.validated)) "
                    + "validated, \(Human.count(running.misses)) misses, "
                    + "\(Human.count(running.failures)) failed)"
            ),
            (
                "served",
                "\(Human.size(running.bytesServed)), from the cache "
                    + "\(Human.size(running.bytesFromCache)) "
                    + "(\(Human.share(running.bytesFromCache, of: running.bytesServed)))"
            ),
        ]
    }

    /// What was asked for beside or after the clients' own requests; nothing where none was.
    private static func completions(_ running: SessionStatistics) -> [(String, String)] {
        let counted: [(UInt64?, String)] = [
            (running.gapFetches, "gaps filled"), (running.bodiesResumed, "bodies resumed"),
            (running.partsKept, "parts kept"),
            (running.backgroundFetches, "background validations"),
        ]
        guard counted.contains(where: { ($0.0 ?? 0) > 0 }) else { return [] }
        let text = counted.map { "\(Human.count($0.0 ?? 0)) \($0.1)" }
        return [("fetches", text.joined(separator: ", "))]
    }

    /// How often each rule decided, the most frequent one first.
    private static func reasons(_ running: SessionStatistics) -> [(String, String)] {
        let sorted = (running.reasons ?? [:]).sorted {
            $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value
        }
        return sorted.enumerated().map { index, reason in
            (index == 0 ? "reasons" : "", "\(reason.key) \(Human.count(reason.value))")
        }
    }

    private static func tier(
        _ name: String, _ tier: SessionStatistics.Tier
    ) -> [(String, String)] {
        [
            (
                name,
                "\(Human.count(tier.objects, "object")), \(Human.size(tier.bytes)) of "
                    + "\(Human.size(tier.capacity)), \(Human.count(tier.evictions)) evicted"
            )
        ]
    }

    private static func disk(_ disk: CacheFigures) -> [(String, String)] {
        var facts = [
            (
                "disk",
                "\(Human.count(disk.objects, "object")), bodies \(Human.size(disk.bodyBytes)), in use "
                    + "\(Human.size(disk.usedBytes)) of \(Human.size(disk.capacityBytes)), file "
                    + "\(Human.size(disk.fileBytes)), \(Human.count(disk.evictions)) evicted"
            ),
            ("disk hits", Human.count(disk.hits)),
        ]
        if disk.damaged > 0 { facts.append(("damaged", "\(Human.count(disk.damaged)) dropped")) }
        return facts
    }
}
