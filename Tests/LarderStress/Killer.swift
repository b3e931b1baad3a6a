import Glibc
import LarderDisk
import LarderHTTP
import SeededNumbers

/// Kills a process that writes to a cache, again and again, at instants of its own choosing, and
/// judges what each left behind.
struct Killer {
    var rounds: Int
    /// Ends after so long, where that is sooner.
    var length: Duration?
    var seed: UInt64
    /// The longest that a writer lives.
    var life: Duration
    var capacity: ByteCount
    /// Whether the capacity is so small that entries are evicted.
    var isSmall: Bool

    struct Report {
        var kills = 0
        var operations = 0
        var bytes: UInt64 = 0
        var settled = 0
        var openings: [Duration] = []
        var evictions: UInt64 = 0
    }

    /// - Throws: `Wrong`, with the round and all that is needed to repeat it.
    func run() async throws -> Report {
        try await Directory.lend(seed: self.seed) { try await self.run(in: $0) }
    }

    private func run(in directory: String) async throws -> Report {
        var random = SplitMix64(seed: self.seed)
        var expectations = Expectations()
        var report = Report()
        let judge = StoreJudge(directory: directory, capacity: self.capacity)
        let end = self.length.map { ContinuousClock.now + $0 }
        for round in 0..<self.rounds {
            if let end, end <= .now { break }
            let journal = try self.live(in: directory, round: round, &random)
            for line in journal { expectations.hear(line) }
            report.operations += journal.count / 2
            report.kills += 1
            let findings = try await judge.look()
            report.openings.append(findings.openingTime)
            report.bytes += findings.bytes
            report.evictions = findings.evictions
            if let event = findings.events.first {
                throw Wrong("round \(round): \(event)")
            }
            var objections = findings.objections
            if !self.isSmall, findings.evictions > 0 { objections.append("evictions") }
            for key in expectations.keys.union(findings.entries.keys) {
                if let objection = expectations.objection(
                    to: findings.entries[key], of: key, mayBeGone: self.isSmall)
                {
                    objections.append(objection)
                }
            }
            guard objections.isEmpty else {
                throw Wrong("round \(round): \(objections.prefix(5).joined(separator: "; "))")
            }
            report.settled += expectations.settled
            expectations.adopt(findings.entries)
        }
        return report
    }

    /// Runs a writer for a random while, and kills it; what it said.
    private func live(
        in directory: String, round: Int, _ random: inout SplitMix64
    ) throws -> [JournalLine] {
        let child = try Child(
            Child.ownPath,
            [
                "load", directory, "--capacity", "\(self.capacity.bytes)", "--seed",
                "\(random.next() >> 1)", "--first-version", "\((round + 1) * 1_000_000)",
                "--largest", "\(self.isSmall ? 400_000 : 3 << 20)", "--keys",
                "\(self.isSmall ? 240 : 60)",
            ])
        // Its first line comes when the store is open. Killed while it opens it must be, too.
        var journal: [JournalLine] = []
        let isEarly = random.below(8) == 0
        if !isEarly, child.line() == nil {
            throw Wrong("round \(round): it ended with \(child.wait())")
        }
        let limit =
            ContinuousClock.now + self.life * (Double(random.below(10_000)) / 10_000)
        while let line = child.line(until: limit) {
            if let line = JournalLine(line) { journal.append(line) }
        }
        let status = child.kill()
        while let line = child.line() {
            if let line = JournalLine(line) { journal.append(line) }
        }
        guard status == 128 + SIGKILL else {
            throw Wrong("round \(round): it ended with \(status)")
        }
        return journal
    }
}
