import LarderControl
import LarderDisk

/// What is known of a session's cache, from the running proxy and from the file.
struct CacheStatsReport: Encodable {
    var session: String
    var kind: String
    var directory: String?
    /// nil: no proxy is running.
    var running: SessionStatistics?
    /// nil: there is no disk tier, or nothing in it yet.
    var disk: CacheFigures?
    /// Files that could not be used and were kept for a look.
    var setAside: [SetAsideFile] = []
    /// What a stored response survives, in a line; nil where there is no disk tier.
    var durability: String?

    /// Commits bring data to the disk before what names it, and the naming page with the next one.
    static let diskDurability =
        "kill -9: all that was committed; power failure: all but the last commit"
}

/// The page of `larder cache stats`, for people.
enum CacheStatsText {
    typealias Fact = FactPage.Fact

    static func lines(_ report: CacheStatsReport, nowMicroseconds now: Int64) -> [String] {
        var facts: [Fact] = [("session", "\(report.session) (\(report.kind))")]
        if let directory = report.directory { facts.append(("directory", directory)) }
        if let running = report.running {
            facts += Self.proxy(running, now)
            facts += Self.requests(running)
            facts += Self.completions(running)
            facts += Self.counts("reasons", running.reasons)
            facts += Self.counts("acts", running.acts)
            facts += Self.tier("memory", running.memory)
        } else {
            facts.append(("proxy", "not running"))
        }
        if let disk = report.disk {
            facts += Self.disk(disk, isRunning: report.running != nil)
        } else if let disk = report.running?.disk {
            facts += Self.tier("disk", disk)
        } else if report.directory != nil {
            facts.append(("disk", "nothing stored yet"))
        }
        facts += Self.failures(report, now)
        if let durability = report.durability { facts.append(("survives", durability)) }
        for (index, file) in report.setAside.enumerated() {
            facts.append((index == 0 ? "set aside" : "", "\(file.name), \(Human.size(file.bytes))"))
        }
        return FactPage.lines(facts)
    }

    private static func proxy(_ running: SessionStatistics, _ now: Int64) -> [Fact] {
        guard let pid = running.pid, let started = running.startedMicroseconds else { return [] }
        return [
            ("proxy", FactPage.process(pid, started: started, nowMicroseconds: now))
        ]
    }

    private static func collapsed(_ running: SessionStatistics) -> String {
        guard let count = running.collapsed, count > 0 else { return "" }
        return "\(Human.count(count)) collapsed, "
    }

    private static func cancelled(_ running: SessionStatistics) -> String {
        guard let count = running.cancelled, count > 0 else { return "" }
        return ", \(Human.count(count)) cancelled"
    }

    private static func requests(_ running: SessionStatistics) -> [Fact] {
        let reused = running.hits &+ running.validated
        let fromMemory = min(running.memory.hits, reused)
        let fromDisk = reused - fromMemory
        var answered = [
            ("from memory", fromMemory), ("from disk", fromDisk), ("by origins", running.misses),
        ]
        if let collapsed = running.collapsed, collapsed > 0 {
            answered.append(("by another request's fetch", collapsed))
        }
        var facts = [
            (
                "requests",
                "\(Human.count(running.requests)), hit ratio "
                    + "\(Human.share(reused, of: running.requests)) "
                    + "(\(Human.count(running.hits)) hits, \(Human.count(running.validated)) "
                    + "validated, \(Human.count(running.misses)) misses, "
                    + Self.collapsed(running) + "\(Human.count(running.failures)) failed"
                    + Self.cancelled(running) + ")"
            ),
            (
                "answered",
                answered.map { name, count in
                    "\(name) \(Human.count(count)) (\(Human.share(count, of: running.requests)))"
                }.joined(separator: ", ")
            ),
            (
                "served",
                "\(Human.size(running.bytesServed)), from the cache "
                    + "\(Human.size(running.bytesFromCache)) "
                    + "(\(Human.share(running.bytesFromCache, of: running.bytesServed)))"
            ),
        ]
        if let stored = running.stored, let refused = running.storesRefused {
            let slow = Human.count(running.storesTooSlow ?? 0)
            facts.append(
                (
                    "stored",
                    "\(Human.count(stored, "response")), \(Human.count(refused)) refused, for "
                        + "\(slow) of which the disk was too slow"
                ))
        }
        if let cut = running.clientsCutOff, cut > 0 {
            let clients = Human.count(cut, "client")
            facts.append(("cut off", "\(clients) that took nothing while others waited"))
        }
        return facts
    }

    /// What was asked for beside or after the clients' own requests; nothing where none was.
    private static func completions(_ running: SessionStatistics) -> [Fact] {
        let counted: [(UInt64?, String)] = [
            (running.gapFetches, "gaps filled"), (running.bodiesResumed, "bodies resumed"),
            (running.partsKept, "parts kept"),
            (running.backgroundFetches, "background validations"),
        ]
        guard counted.contains(where: { ($0.0 ?? 0) > 0 }) else { return [] }
        let text = counted.map { "\(Human.count($0.0 ?? 0)) \($0.1)" }
        return [("fetches", text.joined(separator: ", "))]
    }

    /// How often each rule decided, or each thing was done, the most frequent one first.
    private static func counts(_ name: String, _ counted: [String: UInt64]?) -> [Fact] {
        let sorted = (counted ?? [:]).sorted {
            $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value
        }
        return sorted.enumerated().map { index, token in
            (index == 0 ? name : "", "\(token.key) \(Human.count(token.value))")
        }
    }

    private static func tier(_ name: String, _ tier: SessionStatistics.Tier) -> [Fact] {
        [
            (
                name,
                "\(Human.count(tier.objects, "object")), \(Human.size(tier.bytes)) of "
                    + "\(Human.size(tier.capacity)), \(Human.count(tier.evictions)) evicted, "
                    + "\(Human.count(tier.hits, "hit"))"
            )
        ]
    }

    /// - Parameter isRunning: hits are told by the proxy, up to this moment; the file has those of all
    ///   proxies before it, too, and not yet the last ones.
    private static func disk(_ disk: CacheFigures, isRunning: Bool) -> [Fact] {
        let hits = isRunning ? "" : ", \(Human.count(disk.hits, "hit")) since it was made"
        var facts = [
            (
                "disk",
                "\(Human.count(disk.objects, "object")), bodies \(Human.size(disk.bodyBytes)), "
                    + "\(Human.count(disk.evictions)) evicted\(hits)"
            ),
            (
                "file",
                "\(Human.size(disk.fileBytes)), never more than \(Human.size(disk.capacityBytes)): "
                    + "in use \(Human.size(disk.usedBytes)), free \(Human.size(disk.freeBytes))"
            ),
        ]
        if disk.pending > 0 || disk.garbage > 0 {
            facts.append(
                (
                    "under way",
                    "\(Human.count(disk.pending)) being written, \(Human.count(disk.garbage)) "
                        + "being deleted"
                ))
        }
        facts.append(("writer", disk.writer.map { "process \($0)" } ?? "none"))
        if disk.damaged > 0 { facts.append(("damaged", "\(Human.count(disk.damaged)) dropped")) }
        return facts
    }

    private static func failures(_ report: CacheStatsReport, _ now: Int64) -> [Fact] {
        let count = max(report.disk?.failures ?? 0, report.running?.storeFailures ?? 0)
        var facts: [Fact] = []
        if count > 0 { facts.append(("failures", "\(Human.count(count)) of the disk")) }
        if let trouble = report.running?.trouble {
            facts.append(
                (
                    "last",
                    "\(Human.date(microseconds: trouble.microseconds)), \(trouble.cause); "
                        + (trouble.isOver ? "stored again since" : "nothing is stored for now")
                ))
        }
        return facts
    }
}
