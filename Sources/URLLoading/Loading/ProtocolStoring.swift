import Foundation
import LarderHTTP
import LarderStore
import Synchronization

/// What a program's protocol allows to be stored, once its body is whole.
final class ProtocolStoring: PendingStoring {
    private let response: URLResponse
    private let body: QueuedBody
    private let policy: URLCache.StoragePolicy
    private let cache: URLCache
    private let task: URLSessionDataTask
    /// The canonical one, by which it is looked for.
    private let request: URLRequest
    /// From when the response was told: what is removed from then on does not come back.
    private let removals: RemovalMark
    private let isDecided = Mutex(false)

    /// nil: nothing is to be stored, as of what is no success.
    init?(
        _ response: URLResponse, _ body: QueuedBody, _ policy: URLCache.StoragePolicy,
        in cache: URLCache?, for order: LoadOrder
    ) {
        guard let cache, let task = order.task as? URLSessionDataTask, policy != .notAllowed,
            response.expectedContentLength <= cache.largestBody, Self.isSuccess(response)
        else { return nil }
        self.response = response
        self.body = body
        self.policy = policy
        self.cache = cache
        self.task = task
        self.request = order.request
        self.removals = cache.responses.store.removalMark()
    }

    private static func isSuccess(_ response: URLResponse) -> Bool {
        (response as? HTTPURLResponse)
            .map { StatusCode(UInt16(clamping: $0.statusCode)).isSuccessful } ?? true
    }

    var isPossible: Bool { self.body.isKept }

    /// What would be stored; with no data, and not to be stored, where the body was too large.
    func proposedResponse() -> CachedURLResponse {
        let data = self.body.whole
        return CachedURLResponse(
            response: self.response, data: data ?? Data(), userInfo: nil,
            storagePolicy: data == nil ? .notAllowed : self.policy)
    }

    func decide(_ response: CachedURLResponse?, then done: @escaping @Sendable () -> Void) {
        let isFirst = self.isDecided.withLock { decided in
            defer { decided = true }
            return !decided
        }
        guard isFirst, let response, response.storagePolicy != .notAllowed else { return done() }
        guard let store = self.cache.overriddenStore else {
            self.cache.responses.store(response, for: self.request, begun: self.removals)
            return done()
        }
        store.tell({ self.cache.storeCachedResponse(response, for: self.task) }, then: done)
    }
}

extension NSURLRequest.CachePolicy {
    /// Whether a stored response may answer.
    var readsCache: Bool {
        switch self {
        case .useProtocolCachePolicy, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
            .reloadRevalidatingCacheData:
            true
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: false
        }
    }
}
