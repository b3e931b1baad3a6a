import LarderHTTP
import NIOCore
import Synchronization

/// A response's head that is the client's, as it came.
struct RelayedHead: Sendable {
    var head: ResponseHead
    var bodyLength: BodyLength
    var connection: UpstreamConnectionFacts
    /// All of the body, where it came with the head.
    var body: ByteBuffer?
}

/// The head of a response that set cookies waits until these are kept: a client that has seen the
/// answer to a login may rely on it, also if the process is killed right then.
///
///     passed on ─ cookies on their way to the storage ─▶ held ─ kept, failed, or patience over ─▶
///     passing ─▶ passed on
///
/// The upstream is paused meanwhile, so that nothing overtakes the head but a failure.
enum HeldHead: Sendable {
    /// Nothing is held.
    case passedOn
    case held(RelayedHead, patience: (any TimerToken)?)
    /// The head is being handed over, on another thread than the upstream's: what comes meanwhile is
    /// noted.
    case passing(resumes: Bool, failure: UpstreamFailure?)
}

extension ChainedFetch {
    /// A storage that takes longer than this keeps no client waiting: cookies are in force anyhow.
    static let patience = Duration.seconds(1)

    /// Hands the head over once the cookies that came before it are kept.
    func relayWhenKept(_ response: RelayedHead) -> UpstreamDemand {
        guard self.state.withLock({ $0.tookCookies }), let cookies = self.chain.conduct.cookies
        else { return self.relay(response) }
        self.state.withLock { $0.held = .held(response, patience: nil) }
        guard cookies.whenKept({ [self] in self.passOn() }) else {
            self.state.withLock { $0.held = .passedOn }
            return self.relay(response)
        }
        let token = self.chain.timers.schedule(after: Self.patience) { [self] in self.passOn() }
        let isOver = self.state.withLock { state in
            guard case .held(let response, _) = state.held else { return true }
            state.held = .held(response, patience: token)
            return false
        }
        if isOver { token.cancel() }
        return .pause
    }

    /// Hands over the head that is held; harmless where none is.
    private func passOn() {
        let held = self.state.withLock { state -> (RelayedHead, (any TimerToken)?)? in
            guard case .held(let response, let patience) = state.held else { return nil }
            state.held = .passing(resumes: false, failure: nil)
            return (response, patience)
        }
        guard let (response, patience) = held else { return }
        patience?.cancel()
        let demand = self.relay(response)
        let (resumes, failure) = self.state.withLock { state in
            defer { state.held = .passedOn }
            guard case .passing(let resumes, let failure) = state.held else {
                return (false, UpstreamFailure?.none)
            }
            return (resumes || demand == .more, failure)
        }
        if let failure {
            self.failed(failure)
        } else if resumes {
            self.resume()
        }
    }
}

extension HeldHead {
    /// Notes that the receiver wants more; false where nobody is to be told of it yet.
    mutating func resumed() -> Bool {
        switch self {
        case .passedOn: return true
        case .held: return false
        case .passing(_, let failure):
            self = .passing(resumes: true, failure: failure)
            return false
        }
    }

    /// Notes that the upstream has failed; false where that has to wait for the head.
    mutating func failed(_ failure: UpstreamFailure) -> Bool {
        switch self {
        case .passedOn: return true
        case .held(_, let patience):
            // Nobody has seen the head: it has failed before there was one.
            patience?.cancel()
            self = .passedOn
            return true
        case .passing(let resumes, _):
            self = .passing(resumes: resumes, failure: failure)
            return false
        }
    }

    /// Nobody listens any more.
    mutating func cancelled() {
        guard case .held(_, let patience) = self else { return }
        patience?.cancel()
        self = .passedOn
    }
}
