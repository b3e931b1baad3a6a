/// What of a program's protocol counts, and when: it may say anything, at any time.
///
///     waiting ─▶ loading ─▶ answered ─▶ over
///        └──────────┴───────────────────┘  by failure, redirection, cancellation, an early end
///
/// Each event says what is to be done about it; what comes at the wrong time is not heard.
struct ProtocolMachine {
    private enum Stage { case waiting, loading, answered, over }

    private var stage = Stage.waiting
    private var hasBegun = false
    /// Bytes came before the response.
    private var hasData = false
    /// The challenge that is open; answers to others do not count.
    private var challenge: Int?
    private var challenges = 0

    /// Whether the protocol is to be started.
    mutating func begin() -> Bool {
        guard self.stage == .waiting else { return false }
        self.stage = .loading
        self.hasBegun = true
        return true
    }

    /// Whether the response is the task's.
    mutating func respond() -> Bool {
        guard self.stage == .loading else { return false }
        self.stage = .answered
        return true
    }

    /// Whether the bytes belong to the body.
    mutating func load() -> Bool {
        guard self.stage == .loading || self.stage == .answered else { return false }
        self.hasData = true
        return true
    }

    enum Finishing {
        case unheard
        case endBody
        /// There was no response, and the task needs one.
        case makeUpResponse
    }

    mutating func finish() -> Finishing {
        switch self.stage {
        case .waiting, .over: return .unheard
        case .loading:
            self.end()
            return .makeUpResponse
        case .answered:
            self.end()
            return .endBody
        }
    }

    enum Failing {
        case unheard
        /// The task has no response yet.
        case failLoad
        case failBody
    }

    mutating func fail() -> Failing {
        switch self.stage {
        case .over: return .unheard
        case .waiting, .loading:
            self.end()
            return .failLoad
        case .answered:
            self.end()
            return .failBody
        }
    }

    /// Whether the redirection counts: only instead of a response.
    mutating func redirect() -> Bool {
        guard self.stage == .loading, !self.hasData else { return false }
        self.end()
        return true
    }

    /// The number of a challenge that is to be asked about; nil: it is too late for it.
    mutating func ask() -> Int? {
        guard self.stage == .loading || self.stage == .answered else { return nil }
        self.challenges += 1
        self.challenge = self.challenges
        return self.challenges
    }

    /// Whether the answer to a challenge counts: once, and while it is open.
    mutating func answer(_ number: Int) -> Bool {
        guard self.challenge == number else { return false }
        self.challenge = nil
        return true
    }

    mutating func withdraw() {
        self.challenge = nil
    }

    /// What is to be done about a cancellation.
    enum Cancelling {
        case nothing
        /// Nobody has heard anything of it.
        case tell
        /// The body's reader has gone, or will be told by the body.
        case leaveBody
    }

    mutating func cancel() -> Cancelling {
        switch self.stage {
        case .over: return .nothing
        case .waiting, .loading:
            self.end()
            return .tell
        case .answered:
            self.end()
            return .leaveBody
        }
    }

    /// Whether `stopLoading` is due: once, where it was started.
    mutating func stop() -> Bool {
        guard self.stage == .over, self.hasBegun else { return false }
        self.hasBegun = false
        return true
    }

    private mutating func end() {
        self.stage = .over
        self.challenge = nil
    }
}
