public import Foundation
import LarderHTTP
import Synchronization

/// The size of a body that is not known.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// One loading of a URL by a session.
///
/// Born suspended; it does nothing before `resume`, and completes exactly once, whatever happens. The
/// session keeps it from the first `resume` until then. Its members may be used from any thread.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
    // `@unchecked`: everything that changes is in `guarded`; a subclass answers for its own.

    /// The priority of a task that nobody gave another: 0.5.
    public static let defaultPriority: Float = 0.5
    /// For what can wait: 0.25.
    public static let lowPriority: Float = 0.25
    /// For what somebody waits for: 0.75.
    public static let highPriority: Float = 0.75

    let guarded: Mutex<TaskState>
    let purpose: any TaskPurpose
    private let identifier: Int

    /// A task of no session, which completes without having done anything: for programs that put
    /// classes of their own in a task's place.
    public override init() {
        self.guarded = Mutex(TaskState())
        self.purpose = DelegatePurpose()
        self.identifier = 0
        super.init()
    }

    init(_ order: borrowing TaskOrder, of session: URLSession) {
        let (identifier, isCounted) = session.enrol()
        self.guarded = Mutex(TaskState(order, of: session, isCounted: isCounted))
        self.purpose = order.purpose
        self.identifier = identifier
        super.init()
    }

    deinit {
        guard let session = self.leaveUnbegun() else { return }
        session.uncount()
        session.endIfIdle()
    }

    // MARK: What it is

    /// Unique in its session, from 1 on in the order in which tasks are made.
    open var taskIdentifier: Int { self.identifier }

    /// What it was made with; nil for a stream task.
    open var originalRequest: URLRequest? { self.guarded.withLock { $0.originalRequest } }

    /// What is being loaded: another than the original after a redirection.
    open internal(set) var currentRequest: URLRequest? {
        get { self.guarded.withLock { $0.currentRequest } }
        set { self.guarded.withLock { $0.currentRequest = newValue } }
    }

    /// The response that came last and was not a redirection that was followed; nil before there is
    /// one.
    open internal(set) var response: URLResponse? {
        get { self.guarded.withLock { $0.response } }
        set { self.guarded.withLock { $0.response = newValue } }
    }

    /// A delegate of its own, which hears of it before the session's does; what it does not implement
    /// goes to that one.
    ///
    /// It can be set until the task is resumed, later ones are not taken; held until the task has
    /// completed, then nil.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { self.guarded.withLock { $0.delegate } }
        set {
            let before = self.guarded.withLock { state in
                guard !state.machine.hasBegun else { return state.delegate }
                defer { state.delegate = newValue }
                return state.delegate
            }
            // Released out of the lock: its end is the program's code.
            withExtendedLifetime(before) {}
        }
    }

    /// A label for the program's own use; ignored by the session.
    open var taskDescription: String? {
        get { self.guarded.withLock { $0.label } }
        set { self.guarded.withLock { $0.label = newValue } }
    }

    /// Not before then: for background sessions, and without effect on others.
    open var earliestBeginDate: Date? {
        get { self.guarded.withLock { $0.earliestBeginDate } }
        set { self.guarded.withLock { $0.earliestBeginDate = newValue } }
    }

    /// From 0 to 1: which of the tasks that wait for a connection comes first, and the weight of a
    /// stream of HTTP/2; a hint, for loads that have not begun.
    open var priority: Float {
        get { self.guarded.withLock { $0.priority } }
        set {
            self.guarded.withLock { $0.priority = newValue.isNaN ? 0.5 : min(max(newValue, 0), 1) }
        }
    }

    /// Whether the delegate gets the body as it comes; else the whole at the end.
    ///
    /// False for tasks with a completion handler and for downloads.
    open var prefersIncrementalDelivery: Bool {
        get { self.guarded.withLock { $0.prefersIncrementalDelivery } }
        set { self.guarded.withLock { $0.prefersIncrementalDelivery = newValue } }
    }

    // MARK: How it gets on

    /// `.suspended` until the suspensions are used up; `.canceling` from `cancel` to the completion;
    /// `.completed` from when that is being told.
    open var state: State { self.guarded.withLock { $0.machine.state } }

    /// What it failed with; nil while it runs, and where it succeeded.
    open var error: (any Error)? { self.guarded.withLock { $0.error } }

    /// How it gets on, in bytes of the two bodies; cancelling it cancels the task, pausing it suspends
    /// the task.
    open var progress: Progress { self.progressObject() }

    /// Bytes of the response's body that have come, after content codings were undone.
    open internal(set) var countOfBytesReceived: Int64 {
        get { self.guarded.withLock { $0.received } }
        set { self.count { $0.received = newValue } }
    }

    /// Bytes of the request's body that have been sent.
    open internal(set) var countOfBytesSent: Int64 {
        get { self.guarded.withLock { $0.sent } }
        set { self.count { $0.sent = newValue } }
    }

    /// The length of the request's body; -1 where it is not known, 0 where there is none.
    open internal(set) var countOfBytesExpectedToSend: Int64 {
        get { self.guarded.withLock { $0.expectedToSend } }
        set { self.count { $0.expectedToSend = newValue } }
    }

    /// The length of the response's body; -1 where it is not known, as where a content coding is
    /// undone; 0 before there is a response.
    open internal(set) var countOfBytesExpectedToReceive: Int64 {
        get { self.guarded.withLock { $0.expectedToReceive } }
        set { self.count { $0.expectedToReceive = newValue } }
    }

    /// What the program reckons will be sent, head included; -1: it does not know.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { self.guarded.withLock { $0.clientExpectsToSend } }
        set { self.count { $0.clientExpectsToSend = newValue } }
    }

    /// What the program reckons will be received, head included; -1: it does not know.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { self.guarded.withLock { $0.clientExpectsToReceive } }
        set { self.count { $0.clientExpectsToReceive = newValue } }
    }

    // MARK: What is done to it

    // A data task that has become another one passes it on, as its progress does: until the delegate is
    // told of that, nobody has anything else to call.

    /// Takes a suspension back; the task runs when there is none left.
    ///
    /// A task is born with one. Without effect on one that runs, is cancelled or has completed.
    open func resume() { self.resume(by: { $0.resume() }) }

    /// Goes on when a suspension that is taken back was the last.
    ///
    /// - Parameter takeBack: takes back one of the program's, or that of the progress.
    func resume(by takeBack: (inout TaskMachine) -> TaskMachine.Resumption) {
        let (resumption, successor) = self.guarded.withLock {
            state -> (TaskMachine.Resumption, URLSessionTask?) in
            if let successor = state.successor { return (.nothing, successor) }
            let resumption = takeBack(&state.machine)
            if resumption == .goOn {
                state.wentOn = .now
                state.pump?.isPaused = false
                state.suspendableContent?.isPaused = false
            }
            return (resumption, nil)
        }
        if let successor { return successor.resume(by: takeBack) }
        switch resumption {
        case .nothing: break
        case .begin: self.begin()
        case .goOn:
            self.keepTime()
            self.goOn()
        }
    }

    /// Adds a suspension: nothing is transmitted, and no idle time runs, until as many `resume` have
    /// come.
    ///
    /// Messages that are under way may still arrive.
    open func suspend() { self.suspend(by: { $0.suspend() }) }

    /// Stops when a suspension that is added is the first.
    ///
    /// - Parameter add: adds one of the program's, or that of the progress.
    func suspend(by add: (inout TaskMachine) -> Bool) {
        let (stops, load, successor) = self.guarded.withLock {
            state -> (Bool, (any Load)?, URLSessionTask?) in
            if let successor = state.successor { return (false, nil, successor) }
            guard add(&state.machine) else { return (false, nil, nil) }
            state.pump?.isPaused = true
            state.suspendableContent?.isPaused = true
            return (true, state.load, nil)
        }
        if let successor { return successor.suspend(by: add) }
        guard stops else { return }
        self.keepTime()
        load?.suspensionChanged()
        self.purpose.suspensionChanged(self)
    }

    /// Ends it with `URLError.cancelled`, unless it has its result already.
    ///
    /// Returns at once; the completion comes on the delegate queue, where a few messages that were
    /// under way may come before it. Also for a task that is suspended, or was never resumed.
    open func cancel() {
        self.settle(.cancelled)
        // It may have become that just now; a program may not know of it yet.
        self.guarded.withLock { $0.successor }?.cancel()
    }

    // MARK: NSObject

    /// The task itself: a task is not copied.
    open override func copy() -> Any { self }

    /// The task itself: a task is not copied.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}
