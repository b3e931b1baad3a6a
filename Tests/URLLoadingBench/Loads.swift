import Foundation

#if FOUNDATION_NETWORKING
    import FoundationNetworking
#else
    import URLLoading
#endif

/// The work, in terms that both libraries share.
enum Loads {
    struct WrongAnswer: Error {
        let what: String
    }

    private static func configuration(caching: Bool) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 64
        if !caching { configuration.urlCache = nil }
        return configuration
    }

    private static func get(_ session: URLSession, _ url: URL) async throws -> Int {
        let (data, response) = try await session.data(from: url)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            throw WrongAnswer(what: "not 200: \(response)")
        }
        return data.count
    }

    static func sequential(_ url: URL, _ count: Int) async throws -> Int {
        let session = URLSession(configuration: self.configuration(caching: false))
        defer { session.invalidateAndCancel() }
        var bytes = 0
        for _ in 0..<count { bytes += try await self.get(session, url) }
        return bytes
    }

    static func concurrent(_ url: URL, _ count: Int, atOnce: Int) async throws -> Int {
        let session = URLSession(configuration: self.configuration(caching: false))
        defer { session.invalidateAndCancel() }
        return try await withThrowingTaskGroup(of: Int.self) { group in
            var (begun, bytes) = (0, 0)
            while begun < min(atOnce, count) {
                group.addTask { try await self.get(session, url) }
                begun += 1
            }
            while let one = try await group.next() {
                bytes += one
                guard begun < count else { continue }
                group.addTask { try await self.get(session, url) }
                begun += 1
            }
            return bytes
        }
    }

    static func cached(_ url: URL, _ count: Int) async throws -> Int {
        let session = URLSession(configuration: self.configuration(caching: true))
        defer { session.invalidateAndCancel() }
        var bytes = 0
        for _ in 0..<count { bytes += try await self.get(session, url) }
        return bytes
    }

    static func memory(_ url: URL) async throws -> Int {
        let session = URLSession(configuration: self.configuration(caching: false))
        defer { session.invalidateAndCancel() }
        return try await self.get(session, url)
    }

    static func file(_ url: URL) async throws -> Int {
        let session = URLSession(configuration: self.configuration(caching: false))
        defer { session.invalidateAndCancel() }
        let (location, _) = try await session.download(from: url)
        defer { try? FileManager.default.removeItem(at: location) }
        let attributes = try FileManager.default.attributesOfItem(atPath: location.path)
        return (attributes[.size] as? NSNumber)?.intValue ?? 0
    }

    static func slow(_ url: URL) async throws -> Int {
        let delegate = SlowDelegate()
        let session = URLSession(
            configuration: self.configuration(caching: false), delegate: delegate,
            delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        return try await withCheckedThrowingContinuation { continuation in
            delegate.completion = { continuation.resume(with: $0) }
            session.dataTask(with: url).resume()
        }
    }
}

/// Takes 200 µs over each piece, as a program that works on what it gets.
///
/// Its members are touched by the session's serial delegate queue alone, once the task runs.
final class SlowDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    var completion: ((Result<Int, any Error>) -> Void)?
    private var bytes = 0

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.bytes += data.count
        usleep(200)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.completion?(error.map { .failure($0) } ?? .success(self.bytes))
        self.completion = nil
    }
}
