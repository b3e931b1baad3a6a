import LarderHTTP
import LarderStore

/// The life of a transfer, as a value: events and the time in, what is to be done out.
///
/// ```
///              ┌──────────── begins ───────────┐
///              ▼                               │
/// (a client's) running ─ broke off ─▶ waiting ─ due ─▶ queued
///              └─ stored, given up, cancelled ─▶ over
/// ```
struct TransferMachine: Sendable, Equatable {
    enum State: Sendable, Equatable {
        case running
        case waiting(until: Timestamp, cause: String)
        case queued
        case over
    }

    enum Step: Sendable, Equatable {
        case nothing
        /// To be told that it is due after so long.
        case wait(Duration)
        case end(TransferEnd)
    }

    /// The pause after the first failure; each further one in a row doubles it.
    static let shortestPause = Duration.seconds(1)
    static let longestPause = Duration.seconds(600)

    private(set) var state: State
    /// When it is given up.
    let deadline: Timestamp
    /// Failures in a row that brought nothing.
    private var failures = 0

    /// - Parameter isQueued: it was taken up again; else a client's fetch is under way.
    init(deadline: Timestamp, isQueued: Bool = false) {
        self.deadline = deadline
        self.state = isQueued ? .queued : .running
    }

    /// What was arriving broke off, or was not to be had.
    ///
    /// - Parameters:
    ///   - hasProgressed: more came than ever before: the failures until then do not count any more.
    ///   - wanted: the pause that the origin asks for (`Retry-After`).
    mutating func brokeOff(
        at now: Timestamp, because cause: String, hasProgressed: Bool, wanted: Duration? = nil
    ) -> Step {
        guard case .running = self.state else { return .nothing }
        let left = self.deadline - now
        guard left > .zero else {
            self.state = .over
            return .end(.expired(cause: cause))
        }
        if hasProgressed { self.failures = 0 }
        let own = min(
            Self.shortestPause * Double(UInt64(1) << min(self.failures, 20)), Self.longestPause)
        self.failures += 1
        let pause = min(max(own, wanted ?? .zero), left)
        self.state = .waiting(until: now + pause, cause: cause)
        return .wait(pause)
    }

    /// The pause is over.
    ///
    /// - Returns: whether it waits for its turn from now on.
    mutating func isDue() -> Bool {
        guard case .waiting = self.state else { return false }
        self.state = .queued
        return true
    }

    /// It is asked for again.
    mutating func begins() {
        if self.state == .queued { self.state = .running }
    }

    /// A client has asked for the same, and its fetch brings it.
    ///
    /// - Returns: whether it does: not where one is under way already.
    mutating func isTakenOver() -> Bool {
        switch self.state {
        case .waiting, .queued:
            self.state = .running
            return true
        case .running, .over: return false
        }
    }

    /// What was asked for has come, and may not have been all.
    ///
    /// - Returns: whether it waits for its turn to see to that.
    mutating func isToBeSeenTo() -> Bool {
        guard case .running = self.state else { return false }
        self.state = .queued
        return true
    }

    /// Whether an answer in place of what is wanted may be another one later (RFC 9110 §15.5.9,
    /// §15.6, RFC 6585 §4, RFC 8470 §5.2).
    static func mayChange(_ status: StatusCode) -> Bool {
        switch status.rawValue {
        case 408, 425, 429: true
        case 501, 505: false
        default: status.isServerError
        }
    }

    /// What a store's not having taken it means.
    ///
    /// - Returns: nil where it may take it the next time.
    static func end(after why: SinkAbandonment) -> TransferEnd? {
        switch why {
        case .noSpace, .storeFailed, .tooSlow, .byWriter, .closing: nil
        case .tooLarge, .removed, .contradictory, .tooScattered, .seenOnce, .largeSeenOnce:
            .notKept(why.rawValue)
        }
    }
}
