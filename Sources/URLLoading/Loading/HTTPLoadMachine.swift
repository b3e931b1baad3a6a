/// The life of a load over HTTP, as a value.
///
/// ```
///             ┌──────────────◀────────────────┐
///             ▼                               │
/// idle ─▶ asking ─▶ failed before anything was sent ─▶ deciding (somebody is asked)
///             │                               └──────▶ waiting (for a route)
///             ├─▶ answered ─▶ over (the body has ended)
///             └─▶ over (failed)                           any ─▶ over (cancelled)
/// ```
///
/// It also counts what the upstream is doing, as a load is measured when both it and the upstream
/// are done.
struct HTTPLoadMachine: ~Copyable {
    private enum State: Equatable {
        case idle, asking, deciding, waiting, answered, over
    }

    enum FailureAction: Equatable {
        /// The failure is told, and the load is over.
        case tell
        /// Somebody is asked about the server, or for a certificate.
        case ask
        /// The load waits for a way into the network.
        case wait
        case nothing
    }

    private var state = State.idle
    /// How many attempts have begun.
    private var attempts = 0
    /// Fetches that the upstream has begun and not measured yet.
    private var fetches = 0
    private var isMeasured = false
    /// The observer has heard all but the measurement.
    private var isTold = false

    /// An attempt begins: its number; nil where nobody wants it any more.
    mutating func begins() -> Int? {
        switch self.state {
        case .idle, .deciding, .waiting:
            self.state = .asking
            self.attempts += 1
            return self.attempts
        case .asking, .answered, .over: return nil
        }
    }

    /// Whether an attempt is the one that is under way.
    func isAsking(attempt: Int) -> Bool { self.isAsking && self.attempts == attempt }

    /// Whether what an attempt or its upstream says concerns anybody.
    var isAsking: Bool { self.state == .asking }

    var isWaiting: Bool { self.state == .waiting }
    var isOver: Bool { self.state == .over }
    var isUnderWay: Bool { self.state == .asking || self.state == .answered }

    mutating func answered() -> Bool {
        guard self.state == .asking else { return false }
        self.state = .answered
        return true
    }

    /// - Parameters:
    ///   - asks: the attempt was broken off to ask somebody.
    ///   - waits: there is no route, and the session waits for one.
    ///   - mayRepeat: nothing of the content is gone.
    mutating func failed(asks: Bool, waits: Bool, mayRepeat: Bool) -> FailureAction {
        guard self.state == .asking else { return .nothing }
        if asks, mayRepeat {
            self.state = .deciding
            return .ask
        }
        if waits, mayRepeat {
            self.state = .waiting
            return .wait
        }
        self.state = .over
        return .tell
    }

    /// What was asked has been answered so that nothing goes on.
    mutating func refused() -> Bool {
        guard self.state == .deciding || self.state == .waiting || self.state == .idle else {
            return false
        }
        self.state = .over
        return true
    }

    /// The body has ended, failed, or is not wanted; or the load is cancelled.
    ///
    /// - Returns: whether it was under way.
    mutating func ends() -> Bool {
        self.isTold = true
        guard self.state != .over else { return false }
        self.state = .over
        return true
    }

    // MARK: Measuring

    /// The observer has been told how the load went on.
    mutating func told() { self.isTold = true }

    mutating func fetchBegins() { self.fetches += 1 }

    mutating func fetchMeasured() { self.fetches = max(0, self.fetches - 1) }

    /// Whether the measurement is to be told now: true once.
    mutating func isDue() -> Bool {
        guard self.state == .over, self.isTold, self.fetches == 0, !self.isMeasured else {
            return false
        }
        self.isMeasured = true
        return true
    }
}
