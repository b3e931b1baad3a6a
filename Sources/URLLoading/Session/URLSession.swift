public import Foundation
import LarderSession
import LarderTransfer
import Synchronization

/// Makes tasks that load URLs, by one configuration.
///
/// ```
/// made ─▶ tasks ─▶ finishTasksAndInvalidate | invalidateAndCancel ─▶ the last task ends ─▶ invalid
/// ```
///
/// A session holds its delegate until it is invalid, and a task from its first `resume` until it has
/// completed; nothing else is kept alive. One that is dropped without invalidation frees what it has
/// as soon as its last task is over. It may be used from any thread.
open class URLSession: NSObject, @unchecked Sendable {
    // `@unchecked`: everything that changes is in `guarded`; a subclass answers for its own.

    private static let common = URLSession(
        .default, delegate: nil, queue: nil, loaders: nil, isShared: true)

    /// The session of the process, with the default configuration and no delegate; it cannot be
    /// invalidated.
    open class var shared: URLSession { self.common }

    /// A copy of what it was made with; changing it changes nothing.
    open var configuration: URLSessionConfiguration {
        self.settings.copy() as? URLSessionConfiguration ?? .default
    }

    /// Held until the session has become invalid, then nil.
    open var delegate: (any URLSessionDelegate)? { self.guarded.withLock { $0.delegate } }

    /// Where delegates and completion handlers are called: the program's, or a serial one of its own.
    open var delegateQueue: OperationQueue { self.dispatcher.queue }

    /// A label for the program's own use; ignored by the session.
    open var sessionDescription: String? {
        get { self.guarded.withLock { $0.label } }
        set { self.guarded.withLock { $0.label = newValue } }
    }

    let settings: URLSessionConfiguration
    let dispatcher: DelegateDispatcher
    let loaders: any SessionLoaders
    let guarded: StateTable
    private let isShared: Bool
    let timers: any Timers
    let deadlines: ResourceDeadlines

    /// Makes a session.
    ///
    /// - Parameters:
    ///   - configuration: copied; what it refers to (cache, cookies, credentials) is shared.
    ///   - delegate: held until the session has become invalid.
    ///   - queue: nil makes a serial one. A concurrent one is used as it is: one message of a task
    ///     at a time, and tasks beside each other.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        let settings = Self.copy(configuration)
        self.settings = settings
        self.dispatcher = Self.dispatcher(queue)
        self.loaders = BuiltInLoaders(settings)
        self.guarded = StateTable(delegate)
        self.isShared = false
        self.timers = SourceTimers.shared
        self.deadlines = self.guarded.deadlines(of: settings, by: self.timers)
        super.init()
    }

    /// Makes a session without a delegate: results come by completion handlers and async methods.
    ///
    /// A designated initializer, as in Foundation's module, so that a subclass may call or override
    /// it; Apple's can be called only from outside.
    public init(configuration: URLSessionConfiguration) {
        let settings = Self.copy(configuration)
        self.settings = settings
        self.dispatcher = Self.dispatcher(nil)
        self.loaders = BuiltInLoaders(settings)
        self.guarded = StateTable(nil)
        self.isShared = false
        self.timers = SourceTimers.shared
        self.deadlines = self.guarded.deadlines(of: settings, by: self.timers)
        super.init()
    }

    /// A session that loads by what it is given.
    init(
        _ configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        queue: OperationQueue?, loaders: (any SessionLoaders)?, isShared: Bool = false,
        timers: any Timers = SourceTimers.shared
    ) {
        let settings = Self.copy(configuration)
        self.settings = settings
        self.dispatcher = Self.dispatcher(queue)
        self.loaders = loaders ?? BuiltInLoaders(settings)
        self.guarded = StateTable(delegate)
        self.isShared = isShared
        self.timers = timers
        self.deadlines = self.guarded.deadlines(of: settings, by: timers)
        super.init()
    }

    deinit {
        self.loaders.invalidate()
    }

    private static func copy(_ configuration: URLSessionConfiguration) -> URLSessionConfiguration {
        configuration.copy() as? URLSessionConfiguration ?? .default
    }

    private static func dispatcher(_ queue: OperationQueue?) -> DelegateDispatcher {
        guard let queue else {
            return DelegateDispatcher(queue: SessionQueue())
        }
        return DelegateDispatcher(queue: queue)
    }

    /// The session itself: a session is not copied.
    open override func copy() -> Any { self }

    // MARK: The end

    /// Lets the tasks that run finish, takes no new ones, and then becomes invalid: the delegate
    /// hears `urlSession(_:didBecomeInvalidWithError:)`, its last message, and is let go.
    ///
    /// Returns at once. Without effect on `shared`.
    open func finishTasksAndInvalidate() {
        guard !self.isShared else { return }
        self.guarded.withLock { $0.isInvalidated = true }
        self.endIfIdle()
    }

    /// Cancels the tasks that run, takes no new ones, and becomes invalid when they have completed.
    ///
    /// Returns at once. Without effect on `shared`.
    open func invalidateAndCancel() {
        guard !self.isShared else { return }
        let tasks = self.guarded.withLock { state in
            state.isInvalidated = true
            state.isCancelled = true
            return state.tasks.entries.map(\.value)
        }
        for task in tasks.sorted(by: { $0.taskIdentifier < $1.taskIdentifier }) { task.cancel() }
        self.endIfIdle()
    }

    // MARK: Data tasks

    /// Makes a task that gives the response and its body to the delegate.
    ///
    /// - Parameter request: may have a body, as data or as a stream.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        self.make(TaskOrder(request, for: DelegatePurpose()))
    }

    /// Makes a task that gives the response and its body to the delegate.
    open func dataTask(with url: URL) -> URLSessionDataTask {
        self.make(TaskOrder(URLRequest(url: url), for: DelegatePurpose()))
    }

    /// Makes a task that gives the whole of its result to a handler.
    ///
    /// - Parameter completionHandler: called once, on the delegate queue: data (perhaps empty) and
    ///   response, or an error, and the response with it where one had come. The delegate hears of
    ///   challenges and redirections, not of the response, its body or the completion.
    @preconcurrency
    open func dataTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.make(TaskOrder(request, for: HandlerPurpose(completionHandler)))
    }

    /// Makes a task that gives the whole of its result to a handler; see above.
    @preconcurrency
    open func dataTask(
        with url: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.make(TaskOrder(URLRequest(url: url), for: HandlerPurpose(completionHandler)))
    }

    // MARK: Upload tasks

    /// Makes a task that sends data.
    ///
    /// With the method GET, which is a request's default, it ends with `URLError.dataLengthExceedsMaximum`.
    ///
    /// - Parameters:
    ///   - request: its own body does not count.
    ///   - bodyData: its length is announced.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        self.makeUpload(TaskOrder(request, sending: .data(bodyData), for: DelegatePurpose()))
    }

    /// Makes a task that sends a file, which is read while it is sent.
    ///
    /// One that cannot be read ends it with the `URLError` that says why (`.fileDoesNotExist`,
    /// `.fileIsDirectory`, `.noPermissionsToReadFile`).
    ///
    /// - Parameters:
    ///   - request: its own body does not count. Without a `Content-Type` it gets the one that the
    ///     extension of the file suggests.
    ///   - fileURL: must not change before the task has completed.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL
    ) -> URLSessionUploadTask {
        self.makeUpload(TaskOrder(request, sending: .file(fileURL), for: DelegatePurpose()))
    }

    /// Makes a task that sends what the delegate gives it in
    /// `urlSession(_:task:needNewBodyStream:)`: at first, and whenever it must be sent again.
    ///
    /// - Parameter request: says the content's type, and its length where that is known; its own body
    ///   does not count.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        self.makeUpload(TaskOrder(request, sending: .streamed, for: DelegatePurpose()))
    }

    /// Makes a task that sends data, and gives its result to a handler; see `dataTask`.
    ///
    /// - Parameter bodyData: nil: there is nothing to send.
    @preconcurrency
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.makeUpload(
            TaskOrder(
                request, sending: .data(bodyData ?? Data()), for: HandlerPurpose(completionHandler))
        )
    }

    /// Makes a task that sends a file, and gives its result to a handler; see `dataTask`.
    @preconcurrency
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.makeUpload(
            TaskOrder(request, sending: .file(fileURL), for: HandlerPurpose(completionHandler)))
    }

    // MARK: Download tasks

    /// Makes a task that writes the body to a temporary file, and gives that to the delegate.
    ///
    /// - Parameter request: may have a body. The cache is neither asked nor filled.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        self.makeDownload(TaskOrder(request, for: DownloadPurpose()))
    }

    /// Makes a task that writes the body to a temporary file, and gives that to the delegate.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        self.makeDownload(TaskOrder(URLRequest(url: url), for: DownloadPurpose()))
    }

    /// Makes a task that writes the body to a temporary file, and gives that to a handler.
    ///
    /// - Parameter completionHandler: called once, on the delegate queue: file and response, or an
    ///   error, and the response with it where one had come. The file is removed when it returns.
    @preconcurrency
    open func downloadTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.makeDownload(TaskOrder(request, for: DownloadPurpose(completionHandler)))
    }

    /// Makes a task that writes the body to a temporary file, and gives that to a handler.
    @preconcurrency
    open func downloadTask(
        with url: URL,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.makeDownload(TaskOrder(URLRequest(url: url), for: DownloadPurpose(completionHandler)))
    }

    /// Makes a task that goes on where an earlier download was broken off.
    ///
    /// - Parameter resumeData: as that download gave it; anything else makes a task that completes
    ///   with `URLError.unsupportedURL`.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        self.makeDownload(TaskOrder(resuming: resumeData, for: DownloadPurpose()))
    }

    /// Makes a task that goes on where an earlier download was broken off, and gives its file to a
    /// handler.
    @preconcurrency
    open func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.makeDownload(
            TaskOrder(resuming: resumeData, for: DownloadPurpose(completionHandler)))
    }

    // MARK: Connections

    /// Makes a task that reads and writes a connection (TCP), which is made when it is resumed;
    /// through the session's proxy where there is one for the host.
    ///
    /// - Parameters:
    ///   - hostname: a name or an address.
    ///   - port: 1 to 65535; a task for another completes with `URLError.badURL`.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        let purpose = StreamPurpose(
            StreamPlace(host: hostname, port: port), lane: self.dispatcher.lane())
        return self.introduce(URLSessionStreamTask(TaskOrder(nil, for: purpose), of: self))
    }

    /// Makes a task for the messages of a WebSocket.
    ///
    /// - Parameter url: ws or wss.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask {
        self.webSocketTask(with: URLRequest(url: url))
    }

    /// Makes a task for the messages of a WebSocket.
    ///
    /// - Parameter protocols: those that the program would like to speak, the best first.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        var request = URLRequest(url: url)
        // A list of none is no value of the field (RFC 6455 §11.3.4).
        if !protocols.isEmpty {
            request.setValue(
                protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        return self.webSocketTask(with: request)
    }

    /// Makes a task for the messages of a WebSocket.
    ///
    /// - Parameter request: its fields go out with the handshake, but for those that are the
    ///   handshake's own; `Sec-WebSocket-Protocol` names what the program would like to speak. A task
    ///   for another scheme than ws and wss completes with `URLError.unsupportedURL`.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        var order = TaskOrder(request, for: WebSocketPurpose(lane: self.dispatcher.lane()))
        let scheme = request.url?.scheme?.lowercased()
        if scheme != "ws", scheme != "wss" { order.fault = URLError(.unsupportedURL) }
        order.content = .none
        return self.introduce(URLSessionWebSocketTask(order, of: self))
    }

    // MARK: Enumeration

    /// The tasks that run or are suspended, by kind: data, upload (these alone, although they are
    /// data tasks), download.
    ///
    /// One that was never resumed to the end of its suspensions is not among them, nor one that has
    /// been cancelled or has completed.
    ///
    /// - Parameter completionHandler: called on the delegate queue.
    @preconcurrency
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
            ) -> Void
    ) {
        self.dispatcher.session.send { [self] in
            let (data, uploads, downloads) = self.tasksByKind()
            completionHandler(data, uploads, downloads)
        }
    }

    /// All tasks that run or are suspended, of whatever kind, in the order in which they were made.
    ///
    /// - Parameter completionHandler: called on the delegate queue.
    @preconcurrency
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        self.dispatcher.session.send { [self] in
            completionHandler(self.outstandingTasks())
        }
    }

    // MARK: What is kept

    /// Empties the session's cookies, cache and credentials, on disk too, and has what follows use
    /// new connections.
    ///
    /// - Parameter completionHandler: called on the delegate queue when that is done.
    @preconcurrency
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        self.loaders.reset { [dispatcher] in dispatcher.session.send(completionHandler) }
    }

    /// Writes cookies and credentials to disk, and has what follows use new connections.
    ///
    /// - Parameter completionHandler: called on the delegate queue when that is done.
    @preconcurrency
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        self.loaders.flush { [dispatcher] in dispatcher.session.send(completionHandler) }
    }
}
