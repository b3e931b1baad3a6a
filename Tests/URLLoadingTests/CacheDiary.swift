import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Hears what a session's tasks do with the cache.
final class CacheDiary: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // Invariant: all that changes is behind locks.

    /// What came of one task.
    struct Account: Sendable {
        var data = Data()
        var response: URLResponse?
        var error: (any Error)?
        var fetches: [URLSessionTaskMetrics.ResourceFetchType] = []
        var proposed: [CachedURLResponse] = []
        var isOver = false

        var http: HTTPURLResponse? { self.response as? HTTPURLResponse }
        var text: String { String(decoding: self.data, as: UTF8.self) }
        var code: URLError.Code? { (self.error as? URLError)?.code }
    }

    typealias Storing =
        @Sendable (
            URLSessionDataTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void
        ) -> Void

    let accounts = Event<[Int: Account]>([:])
    private let storing: Storing

    init(
        storing: @escaping Storing = { _, proposed, answer in answer(proposed) }
    ) {
        self.storing = storing
    }

    private func note(_ task: URLSessionTask, _ change: (inout Account) -> Void) {
        self.accounts.change { change(&$0[task.taskIdentifier, default: Account()]) }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note(dataTask) { $0.response = response }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note(dataTask) { $0.data += data }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.note(dataTask) { $0.proposed.append(proposedResponse) }
        self.storing(dataTask, proposedResponse, completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.note(task) { $0.fetches = metrics.transactionMetrics.map(\.resourceFetchType) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.note(task) {
            $0.error = error
            $0.isOver = true
        }
    }

    /// Runs a task to its end.
    func run(_ task: URLSessionTask) async throws -> Account {
        let number = task.taskIdentifier
        task.resume()
        try await self.accounts.wait(for: "a task's end") { $0[number]?.isOver ?? false }
        return self.accounts.value[number] ?? Account()
    }
}

/// A session over a cache alone: no cookies, no credentials, no proxy but the named one.
func cacheSession(
    _ cache: URLCache?, _ delegate: CacheDiary? = nil,
    _ policy: NSURLRequest.CachePolicy = .useProtocolCachePolicy, proxy port: Int? = nil
) -> URLSession {
    let configuration = URLSessionConfiguration.default
    configuration.connectionProxyDictionary =
        port.map { ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": $0] } ?? [:]
    configuration.urlCache = cache
    configuration.requestCachePolicy = policy
    configuration.httpCookieStorage = nil
    configuration.urlCredentialStorage = nil
    return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
}
