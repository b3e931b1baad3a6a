import Foundation
import LarderHTTP
@testable import LarderProcess
import LarderSession
import NIOCore
import Synchronization
import Testing
@testable import URLLoading

/// What a session loads by in tests: each load waits for the test to say what comes of it, unless
/// there is a script.
final class ScriptedLoaders: SessionLoaders {
    typealias Script = @Sendable (ScriptedLoad) -> Void

    let loads = Event<[ScriptedLoad]>([])
    let invalidations = Event(0)
    let resets = Event(0)
    private let script: Script?

    init(_ script: Script? = nil) {
        self.script = script
    }

    func loader(for request: URLRequest, of task: URLSessionTask) -> (any Loader)? {
        guard request.url?.scheme != "unknown" else { return nil }
        return Attempt(loaders: self)
    }

    func invalidate() { self.invalidations.change { $0 += 1 } }

    func reset(done: @escaping @Sendable () -> Void) {
        self.resets.change { $0 += 1 }
        done()
    }

    func flush(done: @escaping @Sendable () -> Void) { done() }

    /// Waits until that many loads have begun, and gives the last of them.
    func load(_ number: Int = 1) async throws -> ScriptedLoad {
        try await self.loads.wait(for: "load \(number)") { $0.count >= number }
        return self.loads.value[number - 1]
    }

    private struct Attempt: Loader {
        let loaders: ScriptedLoaders

        func load(_ order: LoadOrder, observer: any LoadObserver) -> any Load {
            let load = ScriptedLoad(order, observer)
            self.loaders.loads.change { $0.append(load) }
            self.loaders.script?(load)
            return load
        }
    }
}

/// One load, of which comes what a test says.
final class ScriptedLoad: Load {
    let order: LoadOrder
    let isCancelled = Event(false)
    /// What it took is told only when the test says so.
    let isMeasuredLate = Event(false)
    private let observer: Mutex<(any LoadObserver)?>

    init(_ order: LoadOrder, _ observer: any LoadObserver) {
        self.order = order
        self.observer = Mutex(observer)
    }

    var hears: (any LoadObserver)? { self.observer.withLock { $0 } }
    var request: URLRequest { self.order.request }

    func cancel() {
        self.isCancelled.change { $0 = true }
        self.measure()
    }

    /// The last call, once.
    func measure() {
        guard !self.isMeasuredLate.value else { return }
        let observer = self.observer.withLock { $0.take() }
        observer?.load(measured: TransactionMeasurement())
    }

    func fail(_ code: URLError.Code) {
        self.hears?.load(failed: URLError(code))
        self.measure()
    }

    @discardableResult
    func answer(
        _ status: UInt16 = 200, _ fields: [String: String] = [:], _ pieces: String...,
        isWhole: Bool = true, storing: (any PendingStoring)? = nil
    ) -> ScriptedBody {
        let body = ScriptedBody { [weak self] in self?.measure() }
        for piece in pieces { body.push(piece) }
        if isWhole { body.end() }
        guard let url = self.request.url,
            let response = HTTPURLResponse(
                url: url, statusCode: Int(status), httpVersion: nil, headerFields: fields)
        else { return body }
        var head = ResponseHead(status: StatusCode(status))
        for (name, value) in fields { head.fields.append(name, value) }
        self.hears?.load(
            answered: LoadAnswer(response: response, head: head, body: body, storing: storing))
        return body
    }
}

/// A body whose pieces come when a test says so.
final class ScriptedBody: BodySource {
    private struct State {
        var steps: [BodyStep] = []
        var wake: (@Sendable () -> Void)?
        var isOver = false
    }

    let pulls = Event(0)
    let isCancelled = Event(false)
    private let state = Mutex(State())
    private let over: @Sendable () -> Void

    init(over: @escaping @Sendable () -> Void = {}) {
        self.over = over
    }

    func push(_ text: String) { self.add(.piece(ByteBuffer(string: text))) }
    func end() { self.add(.end(trailers: Fields())) }
    func fail(_ failure: BodyFailure) { self.add(.failed(failure)) }

    private func add(_ step: BodyStep) {
        let wake = self.state.withLock { state in
            state.steps.append(step)
            return state.wake
        }
        wake?()
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    func next() -> BodyStep {
        self.pulls.change { $0 += 1 }
        let step = self.state.withLock { state in
            guard !state.isOver else { return BodyStep.failed(.cancelled) }
            return state.steps.isEmpty ? .pending : state.steps.removeFirst()
        }
        switch step {
        case .end, .failed: self.finish()
        case .piece, .pending: break
        }
        return step
    }

    func cancel() {
        self.isCancelled.change { $0 = true }
        self.finish()
    }

    private func finish() {
        let isFirst = self.state.withLock { state in
            defer {
                state.isOver = true
                state.wake = nil
            }
            return !state.isOver
        }
        if isFirst { self.over() }
    }
}

/// A delegate that writes down what it hears, and answers as a test says.
class RecordingDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    let messages = Event<[String]>([])
    let data = Event(Data())
    let errors = Event<[(any Error)?]>([])
    let metrics = Event<[URLSessionTaskMetrics]>([])
    let wrongQueue = Event(0)
    let isRefusingToStore = Event(false)
    let redirection = Mutex<Redirecting?>(nil)
    let disposition = Mutex<Disposing?>(nil)

    typealias Redirecting =
        @Sendable (
            URLRequest, @escaping @Sendable (URLRequest?) -> Void
        ) -> Void
    typealias Disposing =
        @Sendable (
            @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) -> Void

    func note(_ message: String, _ session: URLSession) {
        if OperationQueue.current !== session.delegateQueue { self.wrongQueue.change { $0 += 1 } }
        self.messages.change { $0.append(message) }
    }

    func completion(_ count: Int = 1) async throws {
        try await self.errors.wait(for: "\(count) completions") { $0.count >= count }
    }

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        self.messages.change { $0.append("created") }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        self.note("invalid", session)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.note("redirect \(response.statusCode)", session)
        guard let answer = self.redirection.withLock({ $0 }) else {
            return completionHandler(request)
        }
        answer(request, completionHandler)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note("response", session)
        guard let answer = self.disposition.withLock({ $0 }) else {
            return completionHandler(.allow)
        }
        answer(completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note("data", session)
        self.data.change { $0.append(data) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenge \(challenge.previousFailureCount)", session)
        self.challenged(challenge, completionHandler)
    }

    func challenged(
        _ challenge: URLAuthenticationChallenge,
        _ answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        answer(.performDefaultHandling, nil)
    }

    // A subclass cannot add these: what its superclass has by default stays so (§4).

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        self.note("stream", session)
        completionHandler(InputStream(data: Data("content".utf8)))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        didBecome downloadTask: URLSessionDownloadTask
    ) {
        self.note("became", session)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.note("storing", session)
        completionHandler(self.isRefusingToStore.value ? nil : proposedResponse)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        self.note("sent \(totalBytesSent)", session)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.metrics.change { $0.append(metrics) }
        self.note("metrics", session)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.note("complete", session)
        self.errors.change { $0.append(error) }
    }
}

extension OperationQueue {
    /// Waits until what was on a serial queue has been done, and let go.
    func settled() async {
        await withCheckedContinuation { done in self.addOperation { done.resume() } }
    }
}

/// A session whose loads do as a test says.
struct ScriptedSession {
    let loaders: ScriptedLoaders
    let session: URLSession
    let delegate: RecordingDelegate?

    init(
        delegate: RecordingDelegate? = RecordingDelegate(), queue: OperationQueue? = nil,
        timers: (any Timers)? = nil, _ script: ScriptedLoaders.Script? = nil
    ) {
        self.loaders = ScriptedLoaders(script)
        self.delegate = delegate
        // Empty of what the process shares: nothing of it is read here.
        let configuration = URLSessionConfiguration.default
        self.session = URLSession(
            configuration, delegate: delegate, queue: queue, loaders: self.loaders,
            timers: timers ?? SourceTimers.shared)
    }

    static func url(_ path: String = "/", scheme: String = "http") throws -> URL {
        try #require(URL(string: "\(scheme)://origin.test\(path)"))
    }
}
