import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Where sessions keep what lasts, and what they do where they cannot (§8.1, §9.2)")
struct SessionPlacesTests {
    private static let space = URLProtectionSpace(
        host: "origin.example", port: 80, protocol: "http", realm: "r",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)

    /// Uses all that lasts, twice, in a home that is no directory; exits with 10 where it is there.
    private static func use(_ home: String) async throws {
        guard unsafe setenv("XDG_DATA_HOME", "\(home)/data", 1) == 0,
            unsafe setenv("XDG_CACHE_HOME", "\(home)/cache", 1) == 0
        else { exit(3) }
        let configuration = URLSessionConfiguration.default
        let session = URLSession(configuration: configuration)
        for name in ["a", "b"] {
            configuration.httpCookieStorage?.setCookie(try made(name, expires: 5000))
            configuration.urlCredentialStorage?.setDefaultCredential(
                URLCredential(user: name, password: "s3cr3t", persistence: .permanent),
                for: Self.space)
            let text = "http://origin.example/\(name)"
            let request = try cacheRequest(text)
            configuration.urlCache?.storeCachedResponse(
                try cachedText("kept", for: text), for: request)
            guard configuration.urlCache?.cachedResponse(for: request)?.text == "kept" else {
                exit(4)
            }
            await withCheckedContinuation { done in session.flush { done.resume() } }
        }
        let isThere =
            configuration.httpCookieStorage?.cookies?.count == 2
            && configuration.urlCredentialStorage?.credentials(for: Self.space)?.count == 2
        exit(isThere ? 10 : 5)
    }

    @Test("all goes on in memory in a home that cannot be used, and each kind says so once")
    func unusable() async throws {
        let place = NSTemporaryDirectory() + "no-home-\(UUID().uuidString)"
        #expect(FileManager.default.createFile(atPath: place, contents: Data("a file".utf8)))
        defer { try? FileManager.default.removeItem(atPath: place) }
        let result = await #expect(
            processExitsWith: .exitCode(10), observing: [\.standardErrorContent]
        ) { [place = place as String] in
            try await Self.use(place)
        }
        let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.contains("URLLoading: ") }
        for kind in ["responses", "cookies", "credentials"] {
            let said = lines.filter { $0.contains("\(kind) are kept in memory alone") }
            #expect(said.count == 1, "\(text)")
        }
        #expect(!text.contains("s3cr3t"))
    }

    /// Gives caches that have begun without a disk one, and stores in each; exits with 10 where the first
    /// is on the disk then, and no other.
    private static func raise(_ home: String) throws {
        guard unsafe setenv("XDG_CACHE_HOME", "\(home)/cache", 1) == 0,
            let ephemeral = URLSessionConfiguration.ephemeral.urlCache
        else { exit(3) }
        let named = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        for cache in [ephemeral, named] {
            let text = "http://origin.example/a"
            cache.diskCapacity = 8 << 20
            cache.storeCachedResponse(
                try cachedText("kept", for: text), for: try cacheRequest(text))
            let places = FileManager.default.enumerator(atPath: "\(home)/cache")
            let isThere = places?.contains { ($0 as? String)?.hasSuffix("/responses") == true }
            let isExpected = cache === named
            guard (isThere ?? false) == isExpected, (cache.currentDiskUsage > 0) == isExpected,
                cache.diskCapacity == (isExpected ? 8 << 20 : 0)
            else { exit(isExpected ? 5 : 4) }
        }
        exit(10)
    }

    @Test("a cache gets its place with its first capacity on a disk; an ephemeral one gets none")
    func raised() async throws {
        let home = CacheDirectory()
        await #expect(processExitsWith: .exitCode(10)) { [path = home.path as String] in
            try Self.raise(path)
        }
    }

    /// What the example did to files; nothing where the system forbids tracing.
    private func trace(_ kind: String, _ home: String, _ url: String) async throws -> [Substring]? {
        let trace = WriteTrace(file: "\(home)/trace")
        let program = try Program(
            WriteTrace.strace, trace.arguments + [Program.tour, kind, url],
            environment: [
                "HOME": "\(home)/home", "XDG_DATA_HOME": "\(home)/data",
                "XDG_CACHE_HOME": "\(home)/cache", "TMPDIR": "\(home)",
            ])
        try await program.output.wait(for: "its end") { $0.status != nil }
        let output = program.output.value
        guard output.status == 0 else {
            // A system may forbid tracing; then nothing of the program has run.
            #expect(
                output.outText.isEmpty && output.errText.contains("ptrace"), "\(output.errText)")
            return nil
        }
        #expect(output.lines.last == "one from the cache, 1 cookie, 1 credential")
        return try trace.writes()
    }

    @Test(
        "an ephemeral session makes, opens to write and changes no file; a default one does",
        .enabled(if: WriteTrace.isPossible))
    func traced() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            response("200 OK", "Set-Cookie: keep=1; Max-Age=86400", body: "hello")
        }
        let home = CacheDirectory()
        try FileManager.default.createDirectory(
            atPath: home.path, withIntermediateDirectories: true)
        if let writes = try await self.trace("--ephemeral", home.path, origin.url("/")) {
            #expect(writes.isEmpty, "\(writes.prefix(5))")
            #expect(home.names == ["trace"])
            // The same eyes see what a default session writes.
            let others = try await self.trace("--default", home.path, origin.url("/"))
            #expect((others?.count ?? 0) > 3)
            #expect(home.names?.sorted() == ["cache", "data", "trace"])
        }
        await origin.stop()
    }
}

extension Program {
    /// The built example, which lies beside the tests.
    static var tour: String {
        URL(fileURLWithPath: Program.larder).deletingLastPathComponent().path + "/url-loading-tour"
    }
}
