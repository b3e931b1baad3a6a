import LarderHTTP

/// What a fetch does with what the origin says, as a value.
///
/// ```
///             ┌─ 304 that selects ──────────▶ freshen ─────▶ done
/// requested ──┼─ 304 that selects nothing ──▶ repeat ──────▶ requested (unconditional)
///             ├─ 304 for the client's tag ──▶ relay ───────▶ relaying ─▶ done
///             ├─ 5xx or failure, stale ok ──▶ serve stale ─▶ done
///             ├─ head ──────────────────────▶ relay ───────▶ relaying ─▶ done
///             └─ failure ───────────────────▶ fail ────────▶ done
/// ```
struct FetchMachine: ~Copyable {
    private enum State {
        /// `validating`: the conditions in the request are the cache's own.
        case requested(validating: Bool)
        case relaying
        case done
    }

    enum HeadAction {
        case freshen
        case serveStale
        case repeatUnconditionally
        case relay
        /// The fetch is over; nobody wants this.
        case discard
    }

    enum FailureAction {
        case serveStale
        /// Nothing was passed on yet: the clients hear of the failure.
        case fail
        /// The body is cut off where it is.
        case breakOff
        case nothing
    }

    private var state: State

    init(validating: Bool) {
        self.state = .requested(validating: validating)
    }

    /// - Parameters:
    ///   - selects: a 304 selects at least one of the stored responses (RFC 9111 §4.3.4).
    ///   - isForClient: it selects none, but speaks of what the client has (§4.3.2).
    ///   - staleAllowed: the answer is a failure, and a stored response may stand in for it
    ///     (RFC 9111 §4.2.4, RFC 5861 §4).
    mutating func headReceived(
        _ status: StatusCode, selects: Bool, isForClient: Bool = false, staleAllowed: Bool
    ) -> HeadAction {
        switch self.state {
        case .requested(validating: true) where status == .notModified && !isForClient:
            guard selects else {
                self.state = .requested(validating: false)
                return .repeatUnconditionally
            }
            self.state = .done
            return .freshen
        case .requested where staleAllowed:
            self.state = .done
            return .serveStale
        case .requested:
            self.state = .relaying
            return .relay
        case .relaying, .done:
            return .discard
        }
    }

    mutating func failed(staleAllowed: Bool) -> FailureAction {
        defer { self.state = .done }
        switch self.state {
        case .requested: return staleAllowed ? .serveStale : .fail
        case .relaying: return .breakOff
        case .done: return .nothing
        }
    }

    /// The body is whole.
    ///
    /// Returns whether that concerns anybody.
    mutating func finished() -> Bool {
        switch self.state {
        case .relaying:
            self.state = .done
            return true
        case .requested, .done: return false
        }
    }

    /// Whether pieces of the body are wanted.
    var isRelaying: Bool {
        if case .relaying = self.state { return true }
        return false
    }
}
