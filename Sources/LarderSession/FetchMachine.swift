import LarderHTTP

/// What a fetch does with what the origin says, as a value.
///
/// ```
///             ┌─ 304 that selects ──────────▶ freshen ─────▶ done
/// requested ──┼─ 304 that selects nothing ──▶ repeat ──────▶ requested (unconditional)
///             ├─ 206 that fits the gap ─────▶ splice ──────▶ relaying
///             ├─ 206 that does not ─────────▶ repeat ──────▶ requested (as the client asked)
///             ├─ 304 for the client's tag ──▶ relay ───────▶ relaying ─▶ done
///             ├─ 5xx or failure, stale ok ──▶ serve stale ─▶ done
///             ├─ head ──────────────────────▶ relay ───────▶ relaying ─▶ done
///             └─ failure ───────────────────▶ fail ────────▶ done
///
/// relaying ─ failure ─▶ resume ─▶ resuming ─ 206 with the rest ─▶ relaying
///                                     └───── anything else ─────▶ break off ─▶ done
/// ```
struct FetchMachine: ~Copyable {
    private enum State {
        /// `validating`: the conditions in the request are the cache's own.
        case requested(validating: Bool)
        case relaying
        /// The body broke off, and its rest was asked for.
        case resuming
        case done
    }

    /// What a head means for the missing bytes that were asked for.
    enum Fit {
        /// None were.
        case notAsked
        /// It brings them.
        case fits
        /// It answers the request by itself: the representation is another by now.
        case relays
        /// It is no answer to what the client asked.
        case repeats
        /// It does not bring them, and the client has the beginning of an answer already.
        case tooLate
    }

    enum HeadAction {
        case freshen
        case serveStale
        case repeatUnconditionally
        case repeatAsAsked
        case splice
        case breakSplice
        case continueBody
        case breakOff
        case relay
        /// The fetch is over; nobody wants this.
        case discard
    }

    enum FailureAction {
        case serveStale
        /// Nothing was passed on yet: the clients hear of the failure.
        case fail
        /// The rest of the body is asked for.
        case resume
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
    ///   - continues: it is the head of the rest of a body that broke off.
    mutating func headReceived(
        _ status: StatusCode, selects: Bool, isForClient: Bool = false, staleAllowed: Bool,
        fit: Fit = .notAsked, continues: Bool = false
    ) -> HeadAction {
        switch self.state {
        case .resuming:
            self.state = continues ? .relaying : .done
            return continues ? .continueBody : .breakOff
        case .requested where fit == .fits:
            self.state = .relaying
            return .splice
        case .requested where fit == .repeats:
            return .repeatAsAsked
        case .requested where fit == .tooLate:
            self.state = .done
            return .breakSplice
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

    /// - Parameter mayResume: the rest of a body may be asked for.
    mutating func failed(staleAllowed: Bool, mayResume: Bool = false) -> FailureAction {
        switch self.state {
        case .requested:
            self.state = .done
            return staleAllowed ? .serveStale : .fail
        case .relaying, .resuming:
            self.state = mayResume ? .resuming : .done
            return mayResume ? .resume : .breakOff
        case .done: return .nothing
        }
    }

    /// Nobody wants anything more of it.
    mutating func cancel() {
        self.state = .done
    }

    /// The body is whole.
    ///
    /// Returns whether that concerns anybody.
    mutating func finished() -> Bool {
        switch self.state {
        case .relaying:
            self.state = .done
            return true
        case .requested, .resuming, .done: return false
        }
    }

    /// Whether pieces of the body are wanted.
    var isRelaying: Bool {
        if case .relaying = self.state { return true }
        return false
    }
}
