import Foundation
import LarderHTTP
import Synchronization

// The end of a task, and how it speaks to those who hear of it.

extension URLSessionTask {
    var session: URLSession? { self.guarded.withLock { $0.session } }
    var isSettled: Bool { self.guarded.withLock { $0.machine.isSettled } }
    var isSuspended: Bool { self.guarded.withLock { $0.machine.isSuspended } }
    /// It has begun, not ended, and is suspended: nothing of it is to go out meanwhile.
    ///
    /// Of the task that goes on as this one, where there is one.
    var isStandingStill: Bool {
        let (stands, successor) = self.guarded.withLock { state in
            let stands = state.machine.hasBegun && state.machine.isSuspended
            return (stands && !state.machine.isSettled, state.successor)
        }
        return successor?.isStandingStill ?? stands
    }
    /// How long ago it, or the one that goes on as it, last went on after a suspension; nil: never.
    var resumedAgo: Duration? {
        let (wentOn, successor) = self.guarded.withLock { ($0.wentOn, $0.successor) }
        return successor?.resumedAgo ?? wentOn.map { .now - $0 }
    }
    /// How much longer it may wait for what it has awaited for `limit`; nil: no longer.
    ///
    /// No time runs while it is suspended, and it begins anew when the task goes on.
    func patience(beyond limit: Duration) -> Duration? {
        if self.isStandingStill { return limit }
        guard let resumedAgo = self.resumedAgo, resumedAgo < limit else { return nil }
        return limit - resumedAgo
    }
    var isOver: Bool { self.guarded.withLock { $0.machine.stage == .over } }
    /// It runs or is suspended, and was resumed before.
    var isOutstanding: Bool {
        self.guarded.withLock { $0.machine.hasBegun && !$0.machine.isSettled }
    }

    // MARK: Messages

    /// Where its messages go; nil where nobody minds on which thread they come.
    ///
    /// What the session has not taken speaks where the session does, so that nothing is said beside
    /// or behind its last message.
    func lane(in session: URLSession, isKept: Bool, hasDelegate: Bool) -> DelegateLane? {
        if self.purpose.isDirect, !hasDelegate { return nil }
        return isKept ? session.dispatcher.lane() : session.dispatcher.session
    }

    /// Has something done on the delegate queue, after what was sent before; straight away where the
    /// task has nobody there.
    func send(_ message: @escaping @Sendable () -> Void) {
        guard let lane = self.guarded.withLock({ $0.lane }) else { return message() }
        lane.send(message)
    }

    /// What happened before it ended well is still told.
    private var mayTell: Bool {
        self.guarded.withLock { !$0.machine.isSettled || $0.outcome?.isSuccess == true }
    }

    /// Tells the delegates something, unless the task has failed or was cancelled meanwhile.
    ///
    /// - Parameters:
    ///   - method: the one that is called, of whichever delegate has it; nil: whoever tells says that.
    ///   - alternative: done in its place where there is no delegate.
    func tell(
        _ method: DelegateCall.Method?, orElse alternative: @Sendable () -> Void = {},
        _ message: @escaping @Sendable (URLSessionTask, URLSession, TaskDelegates) -> Void
    ) {
        guard let session = self.session, !session.delegates(of: self).isEmpty else {
            return alternative()
        }
        self.send { [self] in
            guard self.mayTell else { return }
            let delegates = session.delegates(of: self)
            guard let method else { return message(self, session, delegates) }
            delegates.call(method) { message(self, session, $0) }
        }
    }

    // MARK: The result

    func fail(_ code: URLError.Code) {
        self.settle(.failed(URLError(code)))
    }

    func resourceTimeExpired() {
        self.fail(.timedOut)
    }

    /// Ends the task, if nobody did before.
    func settle(_ outcome: TaskOutcome) {
        let session = self.keeper
        session?.keepUntilTold(self)
        self.leaveUnbegun()?.uncount()
        // Whoever has told the end has taken it from the session before.
        defer { if let session, self.session == nil { session.end(self) } }
        let left = self.guarded.withLock { state -> Leftovers? in
            let isFirst =
                if case .cancelled = outcome { state.machine.cancel() } else {
                    state.machine.settle()
                }
            guard isFirst else { return nil }
            state.outcome = outcome
            return Leftovers(of: &state)
        }
        guard let left else { return }
        // What of them still comes, nobody waits for; their measurements come with it.
        for load in left.superseded { load.cancel() }
        if !outcome.isSuccess {
            left.clear()
        } else if left.hasTurned {
            // What of it is still under way does not stand still with a task that has ended.
            left.load?.suspensionChanged()
        }
        self.deliverIfComplete()
    }

    /// It is none any more that may be resumed for the first time: the session that has counted it.
    func leaveUnbegun() -> URLSession? {
        self.guarded.withLock { state in
            guard state.isCounted else { return nil }
            state.isCounted = false
            return state.session
        }
    }

    /// The session, where that does not keep the task yet.
    private var keeper: URLSession? {
        self.guarded.withLock { state in
            state.isKept || state.machine.isSettled ? nil : state.session
        }
    }

    /// What is under way when a task ends.
    private struct Leftovers: ~Copyable {
        let load: (any Load)?
        let superseded: [any Load]
        let pump: BodyPump?
        let answer: LoadAnswer?
        let held: TaskState.Held?
        /// The task was suspended while it ran, and may be so still.
        let hasTurned: Bool

        /// Takes it out, so that nothing of it ends in the task's lock.
        init(of state: inout TaskState) {
            self.load = state.load.take()
            self.superseded = state.superseded
            state.superseded = []
            self.pump = state.pump.take()
            self.answer = state.answer.take()
            self.held = state.held.take()
            self.hasTurned = state.machine.turn > 0
        }

        func clear() {
            self.pump?.cancel()
            if self.pump == nil { self.answer?.body.cancel() }
            self.answer?.storing?.decide(nil)
            if case .answer(let answer) = self.held { answer.abandon() }
            if case .launch(let body) = self.held { body?.source.cancel() }
            self.load?.cancel()
        }
    }

    /// Has the result told, when what belongs to it is there.
    func deliverIfComplete() {
        let isMine = self.guarded.withLock { state in
            guard state.machine.isSettled, !state.awaitsMeasurements,
                !state.awaitsIntroduction
            else { return false }
            return state.machine.deliver()
        }
        guard isMine else { return }
        let (outcome, session) = self.guarded.withLock {
            ($0.outcome ?? .cancelled, $0.begun == nil ? $0.session : nil)
        }
        // A task that never began has no lane yet.
        if let session {
            let hasDelegate = !session.delegates(of: self).isEmpty
            if let lane = self.lane(in: session, isKept: false, hasDelegate: hasDelegate) {
                self.guarded.withLock { if $0.lane == nil { $0.lane = lane } }
            }
        }
        self.purpose.settle(self, outcome) { [self] outcome in
            self.guarded.withLock { $0.outcome = outcome }
            self.send { self.complete() }
        }
    }

    private func complete() {
        let session = self.session
        if let session, self.guarded.withLock({ $0.outcome?.isSuccess == true }) {
            self.purpose.conclude(self, of: session)
        }
        self.tellMetrics(to: session)
        let error = self.guarded.withLock { state in
            state.machine.finish()
            state.error = state.outcome?.error(of: state.currentRequest?.url)
            return state.error
        }
        self.count { _ in }
        self.purpose.complete(self, of: session, with: error)
        let (delegate, source) = self.guarded.withLock { state in
            state.session = nil
            state.lane = nil
            return (state.delegate.take(), state.source.take())
        }
        // Released out of the lock: their ends are the program's code.
        withExtendedLifetime(delegate) {}
        // A server may have answered before it had all of the content: the rest is not kept open.
        source?.source.cancel()
        session?.end(self)
    }

    private func tellMetrics(to session: URLSession?) {
        session?.delegates(of: self).call(.metrics) {
            guard let session, let delegate = $0.task else { return }
            delegate.urlSession(session, task: self, didFinishCollecting: self.metrics())
        }
    }

    private func metrics() -> URLSessionTaskMetrics {
        let (transactions, created, redirects) = self.guarded.withLock {
            ($0.transactions, $0.created, $0.redirects)
        }
        return URLSessionTaskMetrics(
            transactions.sorted { $0.begun < $1.begun }, created: created, ended: Date(),
            redirects: redirects)
    }
}

extension TaskState {
    /// The result waits for what its loads took: a delegate is to hear of it.
    ///
    /// One that was cancelled does not wait.
    fileprivate var awaitsMeasurements: Bool {
        self.hasDelegate && !self.unmeasured.isEmpty && !self.machine.isCancelled
    }
}

extension TaskOutcome {
    /// The error that programs see.
    fileprivate func error(of url: URL?) -> (any Error)? {
        switch self {
        case .finished: nil
        case .cancelled: URLError.failing(.cancelled, url: url)
        case .failed(let error as URLError): error.completed(for: url)
        case .failed(let error): error
        }
    }
}
