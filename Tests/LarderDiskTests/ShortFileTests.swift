import LarderLMDB
import Testing

@testable import LarderDisk

@Suite("A cache file that ends before its last page", .timeLimit(.minutes(5)))
struct ShortFileTests {
    @Test("since its writer was killed before it made it longer is sound, and made longer")
    func killed() async throws {
        let (directory, world) = (try TemporaryDirectory(), World())
        var store = try world.open(directory)
        await store.put(cacheKey("a"), pattern(100_000))
        await store.closed()
        let environment = try Environment.open(
            path: directory.data, options: EnvironmentOptions(mapSize: 64 << 20))
        let schema = try Schema(environment, creating: false)
        try environment.write { (transaction) throws(LMDBError) in
            // Given free before it is ever written.
            let key = SegmentKey(id: store.core.newID(), index: 0).bytes
            try transaction.put(schema.segments, key.span, pattern(1 << 20).span)
            try transaction.delete(schema.segments, key.span)
        }
        environment.close()
        guard case .short = try FileHeader.check(path: directory.data) else {
            Issue.record("the file is as long as it says")
            return
        }
        store = try world.open(directory)
        let object = try #require(await store.find(cacheKey("a")).first)
        #expect(await store.body(object).bytes == pattern(100_000))
        #expect(await store.put(cacheKey("b"), pattern(100_000)) != nil)
        await store.closed()
        #expect(directory.aside.isEmpty)
        #expect(world.reported == [])
        guard case .sound = try FileHeader.check(path: directory.data) else {
            Issue.record("the file is still short")
            return
        }
    }
}
