import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("What flush and reset of a session promise (§1.2)")
struct SessionKeepingTests {
    private static let space = URLProtectionSpace(
        host: "origin.example", port: 80, protocol: "http", realm: "r",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)

    private static func begin(_ home: String) -> (URLSession, URLSessionConfiguration) {
        guard unsafe setenv("XDG_DATA_HOME", "\(home)/data", 1) == 0,
            unsafe setenv("XDG_CACHE_HOME", "\(home)/cache", 1) == 0
        else { exit(3) }
        let configuration = URLSessionConfiguration.default
        return (URLSession(configuration: configuration), configuration)
    }

    /// Whether a new process finds all three, or (false) none of them.
    private static func look(_ home: String) throws {
        let (_, configuration) = Self.begin(home)
        let request = try cacheRequest("http://origin.example/a")
        let found = [
            configuration.httpCookieStorage?.cookies?.map(\.value) == ["v"],
            configuration.urlCredentialStorage?.defaultCredential(for: Self.space)?.user == "u",
            configuration.urlCache?.cachedResponse(for: request)?.text == "kept",
        ]
        _exit(found == [true, true, true] ? 10 : found == [false, false, false] ? 11 : 12)
    }

    /// Ends with no word to anything that would still write.
    private static func change(_ home: String, resets: Bool) async throws {
        let (session, configuration) = Self.begin(home)
        if resets {
            await withCheckedContinuation { done in session.reset { done.resume() } }
            _exit(0)
        }
        configuration.httpCookieStorage?.setCookie(try made("n", expires: 5000))
        configuration.urlCredentialStorage?.setDefaultCredential(
            URLCredential(user: "u", password: "p", persistence: .permanent), for: Self.space)
        configuration.urlCache?.storeCachedResponse(
            try cachedText("kept", for: "http://origin.example/a"),
            for: try cacheRequest("http://origin.example/a"))
        await withCheckedContinuation { done in session.flush { done.resume() } }
        _exit(0)
    }

    @Test("is on the disk when their handlers are called: a process may be killed then")
    func promises() async throws {
        let directory = CacheDirectory()
        for resets in [false, true] {
            await #expect(processExitsWith: .success) {
                [home = directory.path as String, resets = resets as Bool] in
                try await Self.change(home, resets: resets)
            }
            await #expect(processExitsWith: .exitCode(resets ? 11 : 10)) {
                [home = directory.path as String] in
                try Self.look(home)
            }
        }
    }
}
