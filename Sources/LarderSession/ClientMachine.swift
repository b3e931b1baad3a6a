import LarderHTTP

/// The client's side of an exchange, as a value.
///
/// ```
/// lookingUp ─▶ waiting (for a filling's head) ─▶ answered
///     └──────────────┴──────────▶ answered │ cancelled
/// ```
struct ClientMachine: ~Copyable {
    private enum State {
        case lookingUp
        case waiting(Filling)
        case answered((any BodySource)?)
        case cancelled
    }

    enum CancelAction {
        case leave(Filling)
        case cancelBody(any BodySource)
        case nothing
    }

    private var state = State.lookingUp

    /// The exchange joins or leads a filling.
    ///
    /// Returns false when the client has gone meanwhile.
    mutating func waits(for filling: Filling) -> Bool {
        switch self.state {
        case .lookingUp, .waiting:
            self.state = .waiting(filling)
            return true
        case .answered, .cancelled: return false
        }
    }

    /// An answer is at hand.
    ///
    /// Returns false when the client has gone, or has one already.
    mutating func answer(with body: (any BodySource)?) -> Bool {
        switch self.state {
        case .lookingUp, .waiting:
            self.state = .answered(body)
            return true
        case .answered, .cancelled: return false
        }
    }

    /// - Returns: what to undo, and whether the client left before it was answered.
    mutating func cancel() -> (action: CancelAction, unanswered: Bool) {
        defer { self.state = .cancelled }
        switch self.state {
        case .lookingUp: return (.nothing, true)
        case .waiting(let filling): return (.leave(filling), true)
        case .answered(let body?): return (.cancelBody(body), false)
        case .answered(nil), .cancelled: return (.nothing, false)
        }
    }

    /// The filling for whose head it waits; nil: for none.
    var awaited: Filling? {
        if case .waiting(let filling) = self.state { return filling }
        return nil
    }

    var isCancelled: Bool {
        if case .cancelled = self.state { return true }
        return false
    }
}
