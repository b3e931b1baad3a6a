import Foundation
import LarderHTTP
import NIOCore

/// One request of a task on its way: what a redirection, a challenge or a new attempt begins anew.
///
/// ```
/// begin ─▶ informational* ─▶ answered(response, body) ─▶ the body is pulled by whoever holds it
///                         └▶ redirected | challenged* | failed
/// ```
///
/// Made by a `Loader`; its observer hears of it on any thread, one call after the other, possibly
/// before the method that began it returns.
protocol Load: AnyObject, Sendable {
    /// Ends it; the observer hears nothing more, except for a call that is under way. Any thread, at
    /// any time, also twice, also after its end.
    func cancel()
    /// The task is suspended, or goes on (`URLSessionTask.isStandingStill`): what waits for leave to
    /// begin looks at that. Any thread, at any time, also where nothing has changed.
    func suspensionChanged()
}

extension Load {
    func suspensionChanged() {}
}

/// Begins loads of the URLs that it knows: http, https and ftp by the engine; file; data; what a
/// program's `URLProtocol` does.
protocol Loader: Sendable {
    /// Begins at once; does not block.
    func load(_ order: LoadOrder, observer: any LoadObserver) -> any Load
}

/// What is to be loaded.
struct LoadOrder: Sendable {
    /// As the program sees it: without what the session adds on the way (`Cookie`, defaults).
    var request: URLRequest
    /// The task's; for `URLProtocol` and for storages that want to know.
    let task: URLSessionTask
    /// The content to send, a new source for each load; nil: none.
    var body: UploadSource?
    /// The credential that answers a challenge, or is sent before one.
    var authorization: LoadAuthorization?
    /// Downloads neither read nor fill a cache; what is not safe makes it forget all the same.
    var usesCache = true
}

/// The content of a request, ready to be read once.
struct UploadSource: Sendable {
    let source: any BodySource
    /// nil: not known, it is sent in chunks.
    let length: Int64?
}

/// Hears what comes of a load.
protocol LoadObserver: AnyObject, Sendable {
    /// A 1xx response other than 100 and 101.
    func load(informational response: HTTPURLResponse)
    /// Tells how many bytes of the request's content went out in all.
    func load(sent total: Int64)
    /// The response's head. Whoever holds the body must read or cancel it. The last call but for
    /// `load(finished:)`.
    func load(answered answer: LoadAnswer)
    /// A program's protocol says that the response is a redirection (`wasRedirectedTo`).
    func load(redirectedTo request: URLRequest, by response: URLResponse)
    /// The connection, a proxy or a program's protocol asks for a credential; nothing goes on until
    /// the answer is given.
    func load(
        challenged challenge: URLAuthenticationChallenge,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
    /// The load is over without an answer.
    func load(failed error: URLError)
    /// The load is over without an answer, with an error of a program's protocol, which is handed
    /// on as it is.
    func load(broke error: any Error)
    /// What the transaction took, once its body has ended, failed or been cancelled; always the last
    /// call, and also where it was cancelled before.
    func load(measured transaction: TransactionMeasurement)
    /// There is no way into the network, and the session waits for one (`waitsForConnectivity`); once
    /// a load.
    func loadWaitsForConnectivity()
    /// Whether there is anybody to be asked about servers and for client certificates; read once, when
    /// the load begins.
    ///
    /// Asking costs a second handshake. True unless it says otherwise.
    var answersChallenges: Bool { get }
    /// Whether anybody looks at what the load took; read once, when the load begins.
    ///
    /// Otherwise it is not measured, and `load(measured:)` need not come. True unless it says otherwise.
    var readsMeasurement: Bool { get }
    /// Whether somebody wants to look at what is about to be stored; read once, when the load begins.
    ///
    /// Otherwise it is stored by the rules alone, and `LoadAnswer.storing` is nil. True unless it says
    /// otherwise.
    var decidesAboutStoring: Bool { get }
    /// Whether `load(answered:)` may come from the network on the thread that begins the load, before that
    /// returns; read once, when the load begins.
    ///
    /// Else it comes on another one: a program that has resumed a task finds it running. False unless it
    /// says otherwise.
    var mayBeAnsweredAtOnce: Bool { get }
}

extension LoadObserver {
    func loadWaitsForConnectivity() {}
    var answersChallenges: Bool { true }
    var readsMeasurement: Bool { true }
    var decidesAboutStoring: Bool { true }
    var mayBeAnsweredAtOnce: Bool { false }
}

extension LoadObserver {
    func load(broke error: any Error) {
        self.load(
            failed: error as? URLError
                ?? URLError(.unknown, userInfo: [NSUnderlyingErrorKey: error]))
    }
}

/// The answer to a request.
///
/// An object, as it is handed on many times, and each copy would count a dozen references up and down.
final class LoadAnswer: Sendable {
    let response: URLResponse
    /// The head that HTTP gave; nil for other schemes.
    let head: ResponseHead?
    let body: any BodySource
    let isFromCache: Bool
    /// What is about to be stored of it; nil: nothing.
    let storing: (any PendingStoring)?
    /// The proxy whose answer it is: for a 407 that one on the way gave.
    let proxy: ProxyParty?

    init(
        response: URLResponse, head: ResponseHead? = nil, body: any BodySource,
        isFromCache: Bool = false, storing: (any PendingStoring)? = nil, proxy: ProxyParty? = nil
    ) {
        self.response = response
        self.head = head
        self.body = body
        self.isFromCache = isFromCache
        self.storing = storing
        self.proxy = proxy
    }

    /// This answer, of which nothing is about to be stored.
    var withoutStoring: LoadAnswer {
        guard self.storing != nil else { return self }
        return LoadAnswer(
            response: self.response, head: self.head, body: self.body,
            isFromCache: self.isFromCache, proxy: self.proxy)
    }
}

/// A response that will be stored when its body is whole, unless the program decides otherwise.
protocol PendingStoring: AnyObject, Sendable {
    /// Whether there is anything left to decide: a body that turned out too long is not stored whatever
    /// is said of it.
    var isPossible: Bool { get }
    /// What would be stored. Its `data` is read when it is asked for. Only after the body has ended.
    func proposedResponse() -> CachedURLResponse
    /// Stores what was proposed, or another response in its place; nil: nothing. Exactly once.
    ///
    /// - Parameter done: called once, when a cache of the program's own has it, at once otherwise; on any
    ///   thread.
    func decide(_ response: CachedURLResponse?, then done: @escaping @Sendable () -> Void)
}

extension PendingStoring {
    func decide(_ response: CachedURLResponse?) {
        self.decide(response) {}
    }
}
