import Foundation
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Synchronization

extension URLCache {
    /// The gate of one load into this cache, to be given to the engine with the load's exchange.
    ///
    /// - Parameters:
    ///   - asks: somebody will be asked about the storing (`willCacheResponse`), by ``StoringOffer/pending``.
    func storingOffer(
        for task: URLSessionTask?, _ request: URLRequest, asks: Bool
    ) -> StoringOffer {
        StoringOffer(cache: self, task: task, request: request, asks: asks)
    }

    /// Begins an exchange of a load, so that a subclass learns which task it is for.
    ///
    /// - Parameter exchange: the request that is given to the engine, performed within `body`.
    func lending<Result>(
        to task: URLSessionTask, _ exchange: Request, _ body: () -> Result
    ) -> Result {
        guard self.isOverridden, let task = task as? URLSessionDataTask else { return body() }
        return OverriddenCacheStore.$asking.withValue(
            OverriddenCacheStore.Asking(task: task, request: exchange), operation: body)
    }
}

/// What is about to be stored of a load's answer, between the engine and the task.
///
/// ```
/// storing(offers:) ─▶ pending: proposedResponse, decide
/// ```
///
/// The engine offers a response before it answers, so `pending` is settled when the answer is heard.
/// What nobody decides about is not stored.
final class StoringOffer: StoringGate, PendingStoring {
    private struct State {
        var held: HeldStoring?
        var proposed: CachedURLResponse?
        /// The body of what was proposed was not to be had: whatever was made of it lacks that.
        var isUnreadable = false
    }

    private let cache: URLCache
    private let task: URLSessionTask?
    private let url: URL?
    private let asks: Bool
    private let state = Mutex(State())

    init(cache: URLCache, task: URLSessionTask?, request: URLRequest, asks: Bool) {
        self.cache = cache
        self.task = task
        self.url = request.url
        self.asks = asks
    }

    /// What the task is to decide about; nil where nothing is to be stored, or nobody to be asked.
    var pending: (any PendingStoring)? { self.state.withLock { $0.held } == nil ? nil : self }

    // MARK: The engine

    var largestBody: UInt64? { UInt64(self.cache.largestBody) }

    /// A subclass stores for itself.
    var decides: Bool { self.asks || self.cache.isOverridden }

    func storing(offers held: HeldStoring) {
        self.state.withLock { $0.held = held }
    }

    // MARK: The task

    var isPossible: Bool { self.state.withLock { $0.held }?.isPossible ?? false }

    func proposedResponse() -> CachedURLResponse {
        let (held, proposed) = self.state.withLock { ($0.held, $0.proposed) }
        if let proposed { return proposed }
        let made = self.propose(held)
        return self.state.withLock { state in
            if let earlier = state.proposed { return earlier }
            state.proposed = made
            return made
        }
    }

    private func propose(_ held: HeldStoring?) -> CachedURLResponse {
        let url = self.url ?? URL(fileURLWithPath: "/")
        guard let held else {
            let nothing = URLResponse(
                url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
            return CachedURLResponse(response: nothing, data: Data())
        }
        let body = CachedBody(reading: { [weak self] in
            let pieces = Awaited<[ByteBuffer]?>.of { done in held.read(done) }
            if let pieces { return CachedResponses.data(pieces) }
            self?.state.withLock { $0.isUnreadable = true }
            return Data()
        })
        return CachedURLResponse(
            response: StoredResponse.response(held.head, at: url), body: body,
            varyingFields: held.head.varyingFields)
    }

    func decide(_ response: CachedURLResponse?, then done: @escaping @Sendable () -> Void) {
        let (held, proposed) = self.state.withLock { state in
            (state.held.take(), state.proposed.take())
        }
        guard let held else { return done() }
        let decision = self.decision(on: response, proposed)
        guard let body = proposed?.body, body.isAwaited else {
            return self.carryOut(decision, on: held, then: done)
        }
        // Afterwards there is nothing left to read. It waits for the disk: on a thread of its own.
        DispatchQueue(label: "larder.proposed-response").async { [weak body] in
            // Gone where the program has let go of the response meanwhile.
            _ = body?.data
            self.carryOut(decision, on: held, then: done)
        }
    }

    private enum Decision: Sendable {
        case nothing
        case asProposed
        case other(CachedURLResponse)
    }

    private func decision(
        on response: CachedURLResponse?, _ proposed: CachedURLResponse?
    ) -> Decision {
        guard let response, response.storagePolicy != .notAllowed else { return .nothing }
        // A subclass gets the response itself.
        return response === proposed && !self.cache.isOverridden ? .asProposed : .other(response)
    }

    private func carryOut(
        _ decision: Decision, on held: HeldStoring, then done: @escaping @Sendable () -> Void
    ) {
        switch decision {
        case .nothing: held.decide(commits: false)
        case .asProposed: held.decide(commits: true)
        case .other(let response):
            if let store = self.cache.overriddenStore {
                return store.tell({ self.storeOverridden(response, for: held) }, then: done)
            }
            guard self.mayStore(held) else {
                held.decide(commits: false)
                break
            }
            let loaded = StoredResponse.Loaded(
                head: held.head, key: held.key, replacing: held.replacing, removals: held.removals)
            self.cache.responses.store(response, inPlaceOf: loaded)
            held.decide(commits: false)
        }
        done()
    }

    /// Whether a response may be stored in the place of the one that was loaded: that came whole, and
    /// could be read by whoever made the other one of it.
    private func mayStore(_ held: HeldStoring) -> Bool {
        held.isPossible && !self.state.withLock { $0.isUnreadable }
    }

    private func storeOverridden(_ made: CachedURLResponse, for held: HeldStoring) {
        defer { held.decide(commits: false) }
        guard held.isPossible else { return }
        let response = made.loaded(for: held.head.varyingFields)
        // The subclass may keep it without looking, and after the decision it cannot be read back.
        _ = response.data
        guard self.mayStore(held) else { return }
        if let task = self.task as? URLSessionDataTask {
            self.cache.storeCachedResponse(response, for: task)
        } else if let url = self.url {
            self.cache.storeCachedResponse(response, for: URLRequest(url: url))
        }
    }
}
