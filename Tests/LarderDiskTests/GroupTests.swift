import LarderHTTP
import LarderLMDB
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("Invalidated groups on disk (RFC 9875 §3)")
struct GroupTests {
    private let time = Timestamp(seconds: 1_700_000_000)

    @Test("are known at once, and after the store was opened again")
    func reopened() async throws {
        let directory = try TemporaryDirectory()
        let world = World()
        let first = try world.open(directory)
        first.noteInvalidation(ofGroup: [1, 2], at: self.time)
        first.noteInvalidation(ofGroup: [3], at: self.time + .seconds(1))
        first.noteInvalidation(ofGroup: [3], at: self.time - .seconds(1))
        #expect(first.groupInvalidation(of: [1, 2]) == self.time)
        await first.closed()
        let second = try world.open(directory)
        #expect(second.groupInvalidation(of: [1, 2]) == self.time)
        #expect(second.groupInvalidation(of: [3]) == self.time + .seconds(1))
        #expect(second.groupInvalidation(of: [1]) == nil)
        #expect(await second.put(cacheKey("a"), pattern(10)) != nil, "and all else works")
        await second.closed()
    }

    @Test("more than there is room for are folded, in the file too")
    func folded() async throws {
        let directory = try TemporaryDirectory()
        let world = World()
        let first = try world.open(directory)
        let limit = GroupInvalidations<KeyHash>.usualLimit
        for i in 0...limit {
            first.noteInvalidation(
                ofGroup: Array("g\(i)".utf8), at: self.time + .seconds(Int64(i)))
        }
        await first.closed()
        let second = try world.open(directory)
        // Those of the oldest eighth have one moment in common, which counts for every name.
        let floor = self.time + .seconds(Int64(limit / 8 - 1))
        #expect(second.groupInvalidation(of: Array("g0".utf8)) == floor)
        #expect(second.groupInvalidation(of: Array("never".utf8)) == floor)
        #expect(
            second.groupInvalidation(of: Array("g\(limit)".utf8))
                == self.time + .seconds(Int64(limit)))
        await second.closed()
    }

    /// What the file would know.
    private struct Known {
        var times: [KeyHash: Timestamp] = [:]

        mutating func write(_ unwritten: GroupTable.Unwritten) {
            for (name, time) in unwritten.times { self.times[name] = time }
        }
    }

    @Test("are bounded while the disk refuses them, and the file knows the same in the end")
    func refused() {
        let limit = GroupInvalidations<KeyHash>.usualLimit
        let table = GroupTable(GroupInvalidations())
        var known = Known()
        var written = GroupTable.Unwritten()
        var time = self.time
        for round in 0..<5 as Range<UInt64> {
            for number in 0..<UInt64(limit) {
                time = time + .microseconds(1)
                #expect(table.note(KeyHash(high: round, low: number), at: time))
            }
            #expect(table.unwritten.times.count <= 2 * limit)
            // The second is on its way while the names of the third drive out its own.
            if round == 1 { written = table.unwritten }
            if round == 2 {
                known.write(written)
                table.wrote(written)
            }
        }
        let rest = table.unwritten
        known.write(rest)
        table.wrote(rest)
        #expect(table.unwritten.isEmpty)
        #expect(known.times.count <= limit)
        #expect(known.times.allSatisfy { table.time(of: $0.key) == $0.value })
    }

    @Test("one that is damaged counts for all, from now on")
    func damaged() async throws {
        let directory = try TemporaryDirectory()
        let world = World()
        let store = try world.open(directory)
        store.noteInvalidation(ofGroup: [1], at: self.time - .seconds(100))
        await store.closed()
        let environment = try Environment.open(
            path: directory.data, options: EnvironmentOptions())
        let schema = try Schema(environment, creating: false)
        let meta = try environment.read { (transaction) throws(LMDBError) in
            try schema.readMeta(transaction)
        }
        let key = GroupCoding.key(Checksum.key([1], seed: try #require(meta).seed))
        try environment.write { (transaction) throws(LMDBError) in
            var value = GroupCoding.encode(self.time)
            value[5] ^= 1
            try transaction.put(schema.meta, key.span, value.span)
        }
        environment.close()
        let second = try world.open(directory)
        let now = world.now.withLock { $0 }
        #expect(second.groupInvalidation(of: [1]) == now)
        #expect(second.groupInvalidation(of: [9]) == now)
        await second.closed()
    }
}
