import Foundation
import LarderHTTP
import Synchronization

/// One request that a program's protocol loads, and the client that the protocol speaks to.
///
/// The protocol lives on `queue`: it is made, started, told of answers and stopped there, and let go
/// when it has been stopped. What it says may come from any thread.
final class ProtocolLoad: NSObject, Load, URLProtocolClient {
    /// Unchecked: made, used and let go on the load's serial queue alone.
    private final class Hosted: @unchecked Sendable {
        var instance: URLProtocol?
    }

    private let kind: URLProtocol.Type
    private let order: LoadOrder
    private let cache: URLCache?
    private let observer: any LoadObserver
    private let queue: DispatchQueue
    private let machine = Mutex(ProtocolMachine())
    private let hosted = Hosted()
    private let content: ProtocolContent
    private let body: QueuedBody
    private let measurement: MeasuredOnce

    init(
        _ kind: URLProtocol.Type, _ order: LoadOrder, cache: URLCache?,
        _ observer: any LoadObserver
    ) {
        self.kind = kind
        self.order = order
        self.cache = cache
        self.observer = observer
        self.queue = DispatchQueue(label: "URLLoading.protocol")
        self.content = ProtocolContent(order.body, observer)
        self.measurement = MeasuredOnce(order.request, observer)
        let hasFiles = order.task.session?.settings.isEphemeral == false
        self.body = QueuedBody(
            keeping: cache?.largestBody ?? 0,
            spillingAbove: hasFiles ? QueuedBody.spillLimit : nil)
        super.init()
    }

    // MARK: The task's side

    /// Looks for a stored response, and starts the protocol with it.
    ///
    /// - Parameters:
    ///   - policy: of the session.
    ///   - patience: how long a cache of the program's is waited for.
    func begin(under policy: NSURLRequest.CachePolicy, patience: DispatchTimeInterval) {
        let own = self.order.request.cachePolicy
        guard let cache = self.cache, let task = self.order.task as? URLSessionDataTask,
            (own == .useProtocolCachePolicy ? policy : own).readsCache
        else { return self.queue.async { self.start(nil) } }
        let answer = OnceAnswered<CachedURLResponse?> { stored in
            self.queue.async { self.start(stored) }
        }
        guard let store = cache.overriddenStore else {
            // Serial queues get threads of their own, however many others a program has blocked.
            DispatchQueue(label: "larder.url-cache").async {
                answer.take(cache.cachedResponse(for: self.order.request))
            }
            return
        }
        store.tell({ cache.getCachedResponse(for: task) { answer.take($0) } }, then: {})
        answer.take(nil, after: patience)
    }

    private func start(_ stored: CachedURLResponse?) {
        guard self.machine.withLock({ $0.begin() }) else { return }
        let request = self.content.handed(to: self.order.request)
        let instance = AskedProtocol.$request.withValue(request) {
            self.kind.init(task: self.order.task, cachedResponse: stored, client: self)
        }
        self.hosted.instance = instance
        instance.startLoading()
    }

    func cancel() {
        switch self.machine.withLock({ $0.cancel() }) {
        case .nothing: return
        case .tell:
            self.content.abort()
            self.stop()
            self.measurement.tell()
        case .leaveBody:
            self.stop()
            self.body.fail(URLError(.cancelled))
        }
    }

    /// The body's reader has heard its end, or does not want more.
    private func readerLeft() {
        if case .leaveBody = self.machine.withLock({ $0.cancel() }) { self.stop() }
        self.content.abort()
        self.measurement.tell(bodyBytes: self.body.given)
    }

    /// Stops the protocol where it was started, after whatever it is doing on the queue.
    private func stop() {
        guard self.machine.withLock({ $0.stop() }) else { return }
        self.queue.async {
            self.hosted.instance?.stopLoading()
            self.hosted.instance = nil
        }
    }

    private func over(failing error: any Error) {
        self.content.abort()
        self.observer.load(broke: error)
        self.stop()
        self.measurement.tell()
    }

    // MARK: The protocol's side

    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
    ) {
        guard self.machine.withLock({ $0.redirect() }) else { return }
        self.content.abort()
        self.stop()
        self.measurement.note(redirectResponse)
        self.observer.load(redirectedTo: request, by: redirectResponse)
        self.measurement.tell()
    }

    func urlProtocol(
        _ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse
    ) {
        guard self.machine.withLock({ $0.respond() }) else { return }
        self.measurement.note(cachedResponse.response, from: .cache)
        self.body.whenLeft(self.readerLeft)
        self.body.forgetWhole()
        self.observer.load(
            answered: LoadAnswer(
                response: cachedResponse.response, body: self.body, isFromCache: true))
        self.urlProtocol(`protocol`, didLoad: cachedResponse.data)
        self.urlProtocolDidFinishLoading(`protocol`)
    }

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse,
        cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        guard self.machine.withLock({ $0.respond() }) else { return }
        self.answer(response, policy)
    }

    private func answer(_ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        self.measurement.note(response)
        self.body.whenLeft(self.readerLeft)
        let storing = ProtocolStoring(
            response, self.body, policy, in: self.cache, for: self.order)
        if storing == nil { self.body.forgetWhole() }
        self.observer.load(
            answered: LoadAnswer(response: response, body: self.body, storing: storing))
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        guard self.machine.withLock({ $0.load() }) else { return }
        self.body.append(data)
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
        switch self.machine.withLock({ $0.finish() }) {
        case .unheard: return
        case .endBody: self.body.finish()
        case .makeUpResponse:
            self.answer(URLResponse(location: self.order.request.url), .notAllowed)
            self.body.finish()
        }
        self.stop()
    }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        self.fail(error)
    }

    private func fail(_ error: any Error) {
        switch self.machine.withLock({ $0.fail() }) {
        case .unheard: return
        case .failLoad: self.over(failing: error)
        case .failBody:
            self.body.fail(error)
            self.stop()
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        guard let number = self.machine.withLock({ $0.ask() }) else { return }
        self.observer.load(challenged: challenge) { disposition, credential in
            guard self.machine.withLock({ $0.answer(number) }) else { return }
            if disposition == .cancelAuthenticationChallenge {
                self.fail(URLError(.cancelled))
            }
            self.queue.async { challenge.answer(disposition, credential) }
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
        self.machine.withLock { $0.withdraw() }
    }
}

extension URLAuthenticationChallenge {
    /// Tells whoever made the challenge what the delegates have decided.
    fileprivate func answer(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?
    ) {
        switch disposition {
        case .useCredential:
            guard let credential else {
                self.sender?.continueWithoutCredential(for: self)
                return
            }
            self.sender?.use(credential, for: self)
        case .performDefaultHandling: self.sender?.performDefaultHandling(for: self)
        case .cancelAuthenticationChallenge: self.sender?.cancel(self)
        case .rejectProtectionSpace: self.sender?.rejectProtectionSpaceAndContinue(with: self)
        }
    }
}
