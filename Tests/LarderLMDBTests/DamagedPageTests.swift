import Foundation
import SeededNumbers
import Synchronization
import Testing

@testable import LarderLMDB

/// What a whole round of reading and writing came to.
private enum Outcome {
    /// Everything was as it had been written.
    case sound
    /// Damage was found, and named.
    case refused
    /// Something else came than had been written.
    case wrong(String)
}

/// Uses a file in every way, and compares with what it should hold.
private struct Round {
    let sample: SampleFile
    var checksValues = true

    func run(_ data: Data, writes: Bool) throws -> Outcome {
        try data.write(to: URL(fileURLWithPath: self.sample.path))
        try? FileManager.default.removeItem(atPath: self.sample.path + "-lock")
        do throws(LMDBError) {
            let environment = try self.sample.open(isReadOnly: !writes)
            defer { environment.close() }
            let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
            if let wrong = try self.read(environment, database) { return .wrong(wrong) }
            if writes, let wrong = try self.write(environment, database) { return .wrong(wrong) }
            return .sound
        } catch {
            // The names of the databases are in the file as well.
            return error.code == .corrupted || error.code == .notFound
                ? .refused : .wrong("\(error)")
        }
    }

    private func read(_ environment: Environment, _ database: Database) throws(LMDBError) -> String?
    {
        try environment.read { (transaction) throws(LMDBError) in
            for (key, value) in self.sample.entries {
                let found = try transaction.get(database, key.span) { $0.array }
                if self.checksValues, found != value { return "get \(key)" }
            }
            return try transaction.withCursor(database) { (cursor) throws(LMDBError) in
                var count = 0
                var isThere = try cursor.first { _, _ in true }
                while isThere != nil {
                    count += 1
                    isThere = try cursor.next { _, _ in true }
                }
                let isRight = !self.checksValues || count == self.sample.entries.count
                return isRight ? nil : "\(count) entries"
            }
        }
    }

    /// Puts, deletes by key and by cursor, in transactions of several sizes.
    private func write(
        _ environment: Environment, _ database: Database
    ) throws(LMDBError) -> String? {
        let keys = self.sample.entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
        try environment.write { (transaction) throws(LMDBError) in
            for (index, key) in keys.enumerated() where index % 7 == 0 {
                let value = [UInt8](repeating: UInt8(index % 251), count: index % 5000)
                try transaction.put(database, key.span, value.span)
            }
        }
        for part in 0..<3 {
            try environment.write { (transaction) throws(LMDBError) in
                for (index, key) in keys.enumerated() where index % 10 == part {
                    let isThere = try transaction.delete(database, key.span)
                    if self.checksValues, !isThere {
                        throw LMDBError(.other, operation: "not there: \(key)")
                    }
                }
            }
        }
        return try environment.write { (transaction) throws(LMDBError) in
            var count = 0
            try transaction.reading.withCursor(database) { (cursor) throws(LMDBError) in
                var isThere = try cursor.seek(atOrAfter: [40].span) { _, _ in true }
                while isThere != nil {
                    count += 1
                    try cursor.delete()
                    isThere = try cursor.next { _, _ in true }
                }
                isThere = try cursor.first { _, _ in true }
                while isThere != nil {
                    count += 1
                    isThere = try cursor.next { _, _ in true }
                }
            }
            let expected = keys.indices.count { $0 % 10 > 2 }
            return self.checksValues && count != expected ? "\(count) of \(expected)" : nil
        }
    }
}

@Suite("A damaged page")
struct DamagedPageTests {
    @Test("is found, whichever it is and whatever lies there", arguments: [1, 2, 3] as [UInt64])
    func everyPage(seed: UInt64) throws {
        let sample = try SampleFile(entries: 300, seed: seed)
        let data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        let round = Round(sample: sample)
        guard case .sound = try round.run(data, writes: true) else {
            Issue.record("the file is not sound before it is damaged")
            return
        }
        var random = SplitMix64(seed: seed)
        var refused = 0
        for page in 0..<data.count / 4096 {
            var damaged = data
            let whole = page * 4096..<(page + 1) * 4096
            let noise: [UInt8] =
                switch seed {
                case 1: [UInt8](repeating: 0, count: 4096)
                case 2: (0..<4096).map { _ in UInt8(truncatingIfNeeded: random.next()) }
                default: data[whole].map { ~$0 }
                }
            damaged.replaceSubrange(whole, with: noise)
            // The inner overflow pages of a value are the value's: its owner knows a sum of them.
            var lenient = round
            lenient.checksValues = false
            let isHeaded = data[page * 4096 + 10] != 0 && data[page * 4096 + 8] == 0
            let inner = !isHeaded || !Self.hasNumber(data, page)
            for writes in seed == 2 ? [false, true] : [true] {
                switch try (inner ? lenient : round).run(damaged, writes: writes) {
                case .refused: refused += 1
                case .sound: break
                case .wrong(let what): Issue.record("page \(page), writing \(writes): \(what)")
                }
            }
        }
        #expect(refused > 10)
    }

    private static func hasNumber(_ data: Data, _ page: Int) -> Bool {
        var number = 0
        for i in (0..<8).reversed() { number = number << 8 | Int(data[page * 4096 + i]) }
        return number == page
    }

    @Test("with some bytes changed traps nothing", arguments: [11, 12, 13, 14] as [UInt64])
    func bytes(seed: UInt64) throws {
        let sample = try SampleFile(entries: 300, seed: seed)
        let data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        var round = Round(sample: sample)
        round.checksValues = false
        var random = SplitMix64(seed: seed)
        for turn in 0..<30 {
            var damaged = data
            let headersOnly = turn % 2 == 0
            for _ in 0..<Int.random(in: 1...30, using: &random) {
                let page = Int.random(in: 0..<data.count / 4096, using: &random)
                let end = headersOnly ? 64 : 4096
                let offset = page * 4096 + Int.random(in: 0..<end, using: &random)
                damaged[offset] = UInt8.random(in: 0...255, using: &random)
            }
            if case .wrong(let what) = try round.run(damaged, writes: turn % 3 != 0) {
                Issue.record("turn \(turn): \(what)")
            }
        }
    }

    @Test("of a file that was cut short is one that is not there")
    func cut() throws {
        let sample = try SampleFile(entries: 300)
        let data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        let round = Round(sample: sample)
        for pages in 1..<data.count / 4096 {
            let writes = pages % 2 == 0
            switch try round.run(data.prefix(pages * 4096), writes: writes) {
            case .refused, .sound: break
            case .wrong(let what): Issue.record("\(pages) pages, writing \(writes): \(what)")
            }
        }
    }

    @Test("ends the use of the environment, and is told once")
    func refusal() throws {
        let sample = try SampleFile(entries: 300)
        var data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        for page in 2..<data.count / 4096 where data[page * 4096 + 10] == 2 {
            for offset in 12..<4096 { data[page * 4096 + offset] = 0xAA }
        }
        try data.write(to: URL(fileURLWithPath: sample.path))
        let told = Mutex<[LMDBError]>([])
        let environment = try Environment.open(
            path: sample.path,
            options: EnvironmentOptions(
                mapSize: 64 << 20, damageObserver: { error in told.withLock { $0.append(error) } }))
        let thrown = #expect(throws: LMDBError.self) {
            try environment.openDatabases(SampleFile.names, creating: false)
        }
        let first = try #require(thrown)
        #expect(first.code == .corrupted)
        #expect(first.operation.hasPrefix("page "))
        for _ in 0..<2 {
            #expect(throws: first) { try environment.read { (_) throws(LMDBError) in } }
            #expect(throws: first) { try environment.write { (_) throws(LMDBError) in } }
        }
        #expect(told.withLock { $0 } == [first])
        #expect(environment.damage == first)
        environment.close()
        // Closed for good, so that the file can be set aside and replaced.
        #expect(Environment.shared(path: sample.path) == nil)
    }
}
