import LarderHTTP
import LarderPolicy
import Testing

@testable import LarderSession

@Suite("The table of what is being stored")
struct StoringTableTests {
    @Test("is idle while nothing is under way nor has ended since, however often an end is told")
    func idle() {
        let table = StoringTable()
        let head = StoredHead(
            status: .ok, fields: [:], requestTime: Timestamp(seconds: 0),
            responseTime: Timestamp(seconds: 0))
        let storings = ["a", "b"].map { name in
            Storing(rearranging: head, of: CacheKey(bytes: Array(name.utf8)))
        }
        let mark = table.mark
        #expect(table.isIdle(since: mark))
        for storing in storings { table.begin(storing) }
        #expect(!table.isIdle(since: mark))
        // One that the store never took is ended by whoever began it, too.
        table.end(storings[0])
        table.end(storings[0])
        #expect(!table.isIdle(since: table.mark))
        #expect(table.hasEnded(storings[0].key, since: mark))
        table.end(storings[1])
        #expect(!table.isIdle(since: mark))
        #expect(table.isIdle(since: table.mark))
        #expect(table.storings(of: storings[1].key).isEmpty)
    }

    @Test("knows whose storing has ended since, among many that end at once")
    func burst() {
        let table = StoringTable()
        let head = StoredHead(
            status: .ok, fields: [:], requestTime: Timestamp(seconds: 0),
            responseTime: Timestamp(seconds: 0))
        let storings = (0..<1000).map { number in
            Storing(rearranging: head, of: CacheKey(bytes: Array("\(number)".utf8)))
        }
        let before = table.mark
        for storing in storings { table.begin(storing) }
        for storing in storings { table.end(storing) }
        let after = table.mark
        let other = CacheKey(bytes: Array("another".utf8))
        #expect(storings.allSatisfy { table.hasEnded($0.key, since: before) })
        #expect(!table.hasEnded(other, since: before))
        table.begin(storings[7])
        table.end(storings[7])
        #expect(table.hasEnded(storings[7].key, since: after))
        #expect(storings.count { table.hasEnded($0.key, since: after) } == 1)
    }
}
