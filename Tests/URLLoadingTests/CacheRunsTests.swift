import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("What a session's cache keeps from one run of a program to the next (§8.3)")
struct CacheRunsTests {
    /// How a small program ends once it has its answer.
    enum Ending: String, Codable, CaseIterable, Sendable {
        /// With everything still there.
        case atOnce
        /// With the session dropped, and the cache with it.
        case dropped
        /// As the session is invalidated.
        case invalidated
    }

    /// A run of a program, of one request.
    ///
    /// It goes by way of an origin of the process's own that stands as the proxy, so that the URL is the
    /// same in each. Ends with 10 where the cache answered, with 11 where the network did.
    private static func run(_ path: String, _ ending: Ending) async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let diary = CacheDiary()
        var session: URLSession? = cacheSession(
            URLCache(memoryCapacity: 1 << 20, diskCapacity: 16 << 20, diskPath: path), diary,
            proxy: origin.port)
        guard let task = session?.dataTask(with: try cacheURL("http://origin.example/"))
        else { exit(1) }
        let account = try await diary.run(task)
        switch ending {
        case .atOnce: break
        case .dropped: session = nil
        case .invalidated: session?.finishTasksAndInvalidate()
        }
        guard account.text == "hello" else { exit(2) }
        switch (account.fetches, origin.count) {
        case ([.localCache], 0): exit(10)
        case ([.networkLoad], 1): exit(11)
        default: exit(3)
        }
    }

    @Test("is what came last, however soon the program ends", arguments: Ending.allCases)
    func runs(_ ending: Ending) async throws {
        for _ in 0..<3 {
            let directory = CacheDirectory()
            await #expect(processExitsWith: .exitCode(11)) {
                [path = directory.path as String, ending = ending as Ending] in
                try await Self.run(path, ending)
            }
            await #expect(processExitsWith: .exitCode(10)) {
                [path = directory.path as String, ending = ending as Ending] in
                try await Self.run(path, ending)
            }
        }
    }

    @Test("counts as used on the disk when its task has ended")
    func usage() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        for _ in 0..<5 {
            let directory = CacheDirectory()
            let cache = directory.cache()
            let session = cacheSession(cache)
            _ = try await session.data(from: try cacheURL(origin.url("/")))
            #expect(cache.currentMemoryUsage > 0)
            #expect(cache.currentDiskUsage > 0)
            session.invalidateAndCancel()
        }
        await origin.stop()
    }
}
