import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Loads nothing, but asks a cache about each redirection's target before it says so.
private final class AskingProtocol: URLProtocol, @unchecked Sendable {
    static let cache = Mutex<URLCache?>(nil)

    override class func canInit(with request: URLRequest) -> Bool {
        guard request.url?.path == "/target" else { return false }
        _ = self.cache.withLock { $0 }?.cachedResponse(for: request)
        return false
    }
}

@Suite("Protocols that ask the cache (§8.3, §10)")
struct ProtocolAskingTests {
    @Test("are answered, though the redirection that they are asked about came out of it")
    func redirection() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("url-cache-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let origin = try await ScriptedOrigin.answering { _ in response(body: "target") }
        let first = try #require(URL(string: origin.url("/first")))
        do {
            let cache = URLCache(
                memoryCapacity: 0, diskCapacity: 8 << 20, diskPath: directory.path)
            let moved = try #require(
                HTTPURLResponse(
                    url: first, statusCode: 301, httpVersion: "HTTP/1.1",
                    headerFields: ["Location": "/target", "Cache-Control": "max-age=600"]))
            cache.storeCachedResponse(
                CachedURLResponse(response: moved, data: Data()), for: URLRequest(url: first))
        }
        // Its file is opened for the look-up that finds the redirection.
        let cache = URLCache(memoryCapacity: 0, diskCapacity: 8 << 20, diskPath: directory.path)
        AskingProtocol.cache.withLock { $0 = cache }
        defer { AskingProtocol.cache.withLock { $0 = nil } }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = cache
        configuration.protocolClasses = [AskingProtocol.self]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let answers = Event<[String]>([])
        session.dataTask(with: first) { data, _, error in
            answers.change {
                $0.append(data.map { String(decoding: $0, as: UTF8.self) } ?? "\(error as Any)")
            }
        }.resume()
        try await answers.wait(for: "the answer") { !$0.isEmpty }
        #expect(answers.value == ["target"])
        await origin.stop()
    }
}
