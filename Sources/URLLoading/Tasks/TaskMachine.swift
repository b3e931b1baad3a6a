/// Where a task is in its life, and which of the events that reach it still count.
///
/// ```
///           resume (count 0)              answered            receive
/// created ────────────────▶ preparing ─▶ loading ─▶ judging ─▶ receiving ─▶ settled ─▶ … over
///                               ▲                      │ a redirection, a challenge
///                               └──────── launch ◀─────┘
/// ```
///
/// Each load has a number, each question to a delegate another: what comes of a load that was
/// abandoned, an answer that comes twice, or one that comes after the end, is not heard. The first
/// who ends the task decides how it ended.
struct TaskMachine: Sendable, Equatable {
    enum Stage: Sendable, Equatable {
        case created
        /// What the next load needs is being got together: a stream, a request.
        case preparing
        case loading
        /// A response is there, and it is being decided what becomes of it.
        case judging
        /// The body goes to its consumer.
        case receiving
        /// The result is known.
        case settled
        /// It is on its way to whoever waits for it.
        case delivering
        /// It is being told, or has been.
        case over
    }

    /// What to do after `resume`.
    enum Resumption: Sendable, Equatable {
        case nothing
        /// For the first time.
        case begin
        /// Go on with what waits.
        case goOn
    }

    private(set) var stage = Stage.created
    /// A task is born suspended.
    private(set) var suspensions = 1
    /// One of them is that of the task's progress.
    private(set) var isPaused = false
    private(set) var isCancelled = false
    /// How often it has stopped and gone on since it began: what is done about that out of the lock may
    /// come late, and then does not count.
    private(set) var turn = 0
    /// The number of the load that is heard; 0: there has been none.
    private(set) var load = 0
    /// The number of the question that is open; nil: none is.
    private(set) var question: Int?
    private var questions = 0

    var isSuspended: Bool { self.suspensions > 0 }
    var hasBegun: Bool { self.stage != .created }
    /// Nothing can change the result any more.
    var isSettled: Bool {
        switch self.stage {
        case .settled, .delivering, .over: true
        case .created, .preparing, .loading, .judging, .receiving: false
        }
    }

    var state: URLSessionTask.State {
        switch self.stage {
        case .over: .completed
        case .settled, .delivering: self.isCancelled ? .canceling : .running
        case .created, .preparing, .loading, .judging, .receiving:
            self.isSuspended ? .suspended : .running
        }
    }

    // MARK: The program

    mutating func resume() -> Resumption {
        guard !self.isSettled, self.suspensions > 0 else { return .nothing }
        self.suspensions -= 1
        guard self.suspensions == 0 else { return .nothing }
        // Who took all of them back, took that one, too: the next one is a program's.
        self.isPaused = false
        guard self.stage == .created else {
            self.turn += 1
            return .goOn
        }
        self.stage = .preparing
        return .begin
    }

    /// - Returns: whether the task stops now.
    mutating func suspend() -> Bool {
        guard !self.isSettled, self.suspensions < Int.max else { return false }
        self.suspensions += 1
        guard self.suspensions == 1, self.stage != .created else { return false }
        self.turn += 1
        return true
    }

    /// Adds the suspension of the task's progress, unless it is there.
    ///
    /// - Returns: whether the task stops now.
    mutating func pause() -> Bool {
        guard !self.isPaused, !self.isSettled, self.suspensions < Int.max else { return false }
        self.isPaused = true
        return self.suspend()
    }

    /// Takes the suspension of the task's progress back, if it is there, and no other one.
    mutating func endPause() -> Resumption {
        guard self.isPaused else { return .nothing }
        self.isPaused = false
        return self.resume()
    }

    /// - Returns: false where the task had its result before.
    mutating func cancel() -> Bool {
        guard self.settle() else { return false }
        self.isCancelled = true
        return true
    }

    // MARK: Loads

    /// Takes leave to begin the next load.
    ///
    /// - Returns: its number; nil where the task has ended, or is suspended: then its time comes with
    ///   `resume`.
    mutating func launch() -> Int? {
        guard self.stage == .preparing, !self.isSuspended else { return nil }
        self.stage = .loading
        self.load += 1
        return self.load
    }

    /// Whether an event of a load counts.
    func hears(load: Int) -> Bool {
        self.stage == .loading && self.load == load
    }

    /// Whether bytes that it sends count: also those that follow the head of its response.
    func counts(load: Int) -> Bool {
        switch self.stage {
        case .loading, .judging, .receiving: self.load == load
        case .created, .preparing, .settled, .delivering, .over: false
        }
    }

    enum ChallengeHearing: Sendable, Equatable {
        case asked
        /// Another question is open, or about to be: the delegate cannot be asked now.
        case unasked
        case unheard
    }

    /// What becomes of a challenge that a load meets, which may be behind its response: a program's
    /// protocol may ask whenever it likes.
    func hearsChallenge(of load: Int) -> ChallengeHearing {
        guard self.load == load else { return .unheard }
        switch self.stage {
        case .loading: return .asked
        case .receiving: return self.question == nil ? .asked : .unasked
        case .judging: return .unasked
        case .created, .preparing, .settled, .delivering, .over: return .unheard
        }
    }

    /// A response, or a redirection, has come of a load.
    ///
    /// - Returns: false where nobody wants it any more.
    mutating func answered(load: Int) -> Bool {
        guard self.hears(load: load) else { return false }
        self.stage = .judging
        return true
    }

    /// Another request is to be made.
    mutating func prepare() -> Bool {
        guard self.stage == .judging || self.stage == .loading else { return false }
        self.stage = .preparing
        return true
    }

    /// The body is to be received.
    mutating func receive() -> Bool {
        guard self.stage == .judging else { return false }
        self.stage = .receiving
        return true
    }

    // MARK: Questions

    /// Something is asked, and nothing goes on until it is answered.
    ///
    /// - Returns: the question's number; nil where the task has ended.
    mutating func ask() -> Int? {
        guard !self.isSettled else { return nil }
        self.questions += 1
        self.question = self.questions
        return self.questions
    }

    /// - Returns: false for an answer that comes too late, or twice.
    mutating func answer(_ question: Int) -> Bool {
        guard !self.isSettled, self.question == question else { return false }
        self.question = nil
        return true
    }

    // MARK: The end

    /// The result is there.
    ///
    /// - Returns: whether it is the first.
    mutating func settle() -> Bool {
        guard !self.isSettled else { return false }
        self.stage = .settled
        self.question = nil
        return true
    }

    /// The result is to be delivered.
    ///
    /// - Returns: false where somebody else does that.
    mutating func deliver() -> Bool {
        guard self.stage == .settled else { return false }
        self.stage = .delivering
        return true
    }

    /// The result is told, from now on.
    mutating func finish() {
        self.stage = .over
    }
}
