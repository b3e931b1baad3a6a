import Foundation
import LarderHTTP

/// What a task is made from.
///
/// Not copyable, as `TaskState`: each copy would count a dozen references up and down.
struct TaskOrder: ~Copyable {
    /// nil for a stream task.
    var request: URLRequest?
    var purpose: any TaskPurpose
    /// The content to send; what the request itself has does not count for upload tasks.
    var content: UploadBody
    var prefersIncrementalDelivery: Bool
    /// The task's own.
    var delegate: (any URLSessionTaskDelegate)?
    /// It cannot begin: what it ends with.
    var fault: URLError?

    init(_ request: URLRequest?, for purpose: any TaskPurpose) {
        self.request = request
        self.purpose = purpose
        self.content = UploadBody(of: request)
        self.prefersIncrementalDelivery = purpose.asksForDisposition
    }

    /// The state of an upload task: what the request itself has to send is left out.
    init(_ request: URLRequest, sending content: UploadBody, for purpose: any TaskPurpose) {
        var request = request
        request.httpBody = nil
        request.httpBodyStream = nil
        self.init(request, for: purpose)
        if case .data(let data) = content, data.isEmpty { return }
        self.content = content
    }
}

/// Everything of a task that changes.
struct TaskState: ~Copyable {
    // MARK: What programs see

    var originalRequest: URLRequest?
    var currentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var delegate: (any URLSessionTaskDelegate)?
    var label: String?
    var earliestBeginDate: Date?
    var priority = URLSessionTask.defaultPriority
    var prefersIncrementalDelivery = true
    var sent: Int64 = 0
    var received: Int64 = 0
    var expectedToSend: Int64 = 0
    var expectedToReceive: Int64 = 0
    var clientExpectsToSend = NSURLSessionTransferSizeUnknown
    var clientExpectsToReceive = NSURLSessionTransferSizeUnknown
    /// Made when somebody asks for it.
    var progress: PausingProgress?
    /// How many have been made of what it says: the last one counts.
    var snapshots = 0

    // MARK: How it works

    var machine = TaskMachine()
    /// Until it has completed.
    var session: URLSession?
    /// Where its messages go; nil: straight on, on whatever thread they come up.
    var lane: DelegateLane?
    var fault: URLError?
    var content = UploadBody.none
    /// A stream that can be read once has been.
    var isContentSpent = false
    private var asking = Asking.nobody
    /// What is being sent.
    var source: UploadSource?
    /// There is somebody who wants to hear what it took.
    var hasDelegate = false
    var begun: Date?
    /// When it last went on after a suspension.
    var wentOn: ContinuousClock.Instant?
    /// The session counts it among those that were never resumed.
    var isCounted = false
    /// The session has it among its tasks.
    var isKept = false
    /// What is being loaded by.
    var load: (any Load)?
    /// The loads before it, of which a rest of the body may still come.
    var superseded: [any Load] = []
    /// What is being decided about.
    var answer: LoadAnswer?
    var pump: BodyPump?
    /// What waits for the task to be resumed.
    var held: Held?
    /// How it ended.
    var outcome: TaskOutcome?
    var redirects = 0
    /// The delegate has been told that there is no way into the network.
    var hasWaited = false
    var created = Date()
    /// The loads whose measurements have not come, where somebody waits for them: a redirected one may
    /// be measured after the one that follows it.
    var unmeasured: Set<Int> = []
    var transactions: [TransactionMeasurement] = []
    /// What the delegate has last been told about the bytes that were sent.
    var reported: Int64 = 0
    /// A message about them is on its way.
    var isReporting = false
    /// What it goes on as.
    var successor: URLSessionTask?
    /// The delegate is about to hear that another task goes on as this one: its end waits for that.
    var awaitsIntroduction = false

    init() {}

    /// - Parameter isCounted: by the session, among those that were never resumed.
    init(_ order: borrowing TaskOrder, of session: URLSession, isCounted: Bool) {
        self.originalRequest = order.request
        self.currentRequest = order.request
        self.prefersIncrementalDelivery = order.prefersIncrementalDelivery
        self.fault = order.fault
        self.content = order.content
        if order.content.isSomething {
            let announced = UploadBody.announcedLength(
                order.request?.value(forHTTPHeaderField: "Content-Length"))
            self.expectedToSend = order.content.countOfBytesExpectedToSend(announced: announced)
        }
        self.session = session
        self.isCounted = isCounted
        // Whoever speaks over a connection may be answered before it begins.
        self.lane = order.purpose.ownLane
    }

    /// Who asked who it is; nil: nobody has, or somebody is at work on it.
    var challenges: ChallengeMachine? {
        get {
            if case .known(let machine) = self.asking { machine } else { nil }
        }
        set { self.asking = newValue.map { .known($0) } ?? .nobody }
    }

    /// Apart from the task, as few are ever asked: a task of more than 1 KiB would be beyond what
    /// malloc keeps at hand for each thread, and every other one of its blocks in its way.
    private indirect enum Asking {
        case nobody
        case known(ChallengeMachine)
    }

    /// Apart from the task, too.
    indirect enum Held {
        case preparation
        case launch(UploadSource?)
        case answer(LoadAnswer)
        case redirection(URLRequest, URLResponse)
        case failure(any Error)
    }
}

/// How a task ended.
enum TaskOutcome: Sendable {
    case finished
    case cancelled
    case failed(any Error)
}
