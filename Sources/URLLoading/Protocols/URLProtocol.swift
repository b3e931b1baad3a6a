public import Foundation

/// Loads URLs in a program's own way.
///
/// A program derives a class from it, overrides `canInit(with:)`, `startLoading` and `stopLoading`, and
/// names the class in `URLSessionConfiguration.protocolClasses` or registers it. For each request that
/// it can load an instance is made, which tells its `client` what it has found.
///
///     init ─▶ startLoading ─▶ what the client hears ─▶ stopLoading
///
/// Both methods are called on one queue of the load's, `stopLoading` exactly once where `startLoading`
/// was: when the load has ended, in whatever way, or its task was cancelled. What this class does by
/// itself is nothing; Foundation's traps.
open class URLProtocol: NSObject {
    /// What is to be loaded, with the fields that the session's configuration adds.
    open var request: URLRequest { self.order }
    /// What is stored for the request, which the protocol may declare valid; nil: nothing.
    open var cachedResponse: CachedURLResponse? { self.stored }
    /// Hears what the protocol has found.
    open var client: (any URLProtocolClient)?
    /// The task that it loads for; nil where it was made without one.
    open var task: URLSessionTask?

    private let order: URLRequest
    private let stored: CachedURLResponse?

    /// Makes one for a request.
    public required init(
        request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        self.order = request
        self.stored = cachedResponse
        self.client = client
        super.init()
    }

    /// Makes one for a task, of whose request it loads the canonical form.
    public required convenience init(
        task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        let request = AskedProtocol.request ?? task.currentRequest ?? task.originalRequest
        self.init(
            request: request ?? URLRequest(address: nil), cachedResponse: cachedResponse,
            client: client)
        self.task = task
    }

    // MARK: To be overridden

    /// Whether it can load a request; false by default.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Whether it can load a task's current request; by default what `canInit(with:)` says of that.
    open class func canInit(with task: URLSessionTask) -> Bool {
        guard let request = AskedProtocol.request ?? task.currentRequest else { return false }
        return self.canInit(with: request)
    }

    /// The form of a request that stands for all that mean the same; by default the request itself.
    ///
    /// That form is loaded.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether what is stored for one request is good for another; by default where both are equal.
    ///
    /// For programs that ask it: the library's cache does not, and goes by `Vary` (RFC 9111 §4.1).
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        self.canonicalRequest(for: a) == self.canonicalRequest(for: b)
    }

    /// Begins to load, and need not wait for the end.
    open func startLoading() {}

    /// Stops: the load is over, the client hears nothing more.
    open func stopLoading() {}

    // MARK: Properties of requests

    /// What a program has put into a request under a key; nil: nothing.
    open class func property(forKey key: String, in request: URLRequest) -> Any? {
        request.protocolProperties[key]
    }

    /// Puts something into a request, which its copies have, too, and which is never sent.
    open class func setProperty(
        _ value: Any, forKey key: String, in request: NSMutableURLRequest
    ) {
        request.value.protocolProperties[key] = value
    }

    /// Takes something out of a request.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.value.protocolProperties.removeValue(forKey: key)
    }

    // MARK: Registering

    /// Has a class asked about every request of every session but background ones, before those that
    /// were registered earlier and after a configuration's own.
    ///
    /// - Returns: false where it is not derived from `URLProtocol`.
    @discardableResult
    open class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let kind = protocolClass as? URLProtocol.Type else { return false }
        RegisteredProtocols.add(kind)
        return true
    }

    /// Has a class not be asked any more; loads under way go on.
    open class func unregisterClass(_ protocolClass: AnyClass) {
        RegisteredProtocols.remove(protocolClass)
    }
}

/// The request that a class is being asked about.
enum AskedProtocol {
    /// Set while a class is asked by its task-based methods, whose defaults look here: a task's current
    /// request may be another one while a redirection is being followed.
    @TaskLocal static var request: URLRequest?
}
