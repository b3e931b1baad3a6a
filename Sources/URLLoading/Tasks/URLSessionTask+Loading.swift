import Foundation
import LarderHTTP
import NIOCore
import Synchronization

// From `resume` to the response: the task's loads, one after the other.

extension URLSessionTask {
    // MARK: The begin

    func begin() {
        guard let session = self.session else { return self.settle(.cancelled) }
        let hasDelegate = !session.delegates(of: self).isEmpty
        let isKept = session.begin(self, wasCounted: self.leaveUnbegun() != nil)
        let lane = self.lane(in: session, isKept: isKept, hasDelegate: hasDelegate)
        let (fault, hasTurned) = self.guarded.withLock { state in
            // One that was cancelled meanwhile may have got its own.
            if state.lane == nil { state.lane = lane }
            state.hasDelegate = hasDelegate
            state.begun = Date()
            state.isKept = isKept
            // It may have been suspended before the session had it.
            return (state.fault, state.machine.turn > 0)
        }
        guard isKept else { return self.settle(.cancelled) }
        if hasTurned { self.keepTime() }
        // It may have been cancelled, and all be over, before the session came to keep it.
        if self.session == nil { session.end(self) }
        if let fault { return self.settle(.failed(fault)) }
        if session.settings.isBackground {
            return self.fail(.backgroundSessionRequiresSharedContainer)
        }
        self.purpose.prepare(for: self) { [self] in self.prepare() }
    }

    /// Begins the next load, or has it wait until the task is resumed.
    func launch(body: UploadSource?) {
        let content = body.map {
            UploadSource(source: SuspendableSource($0), length: $0.length)
        }
        let launch = self.guarded.withLock { state -> (Int, URLRequest, Bool)? in
            guard !state.machine.isSettled, let request = state.currentRequest else { return nil }
            guard let number = state.machine.launch() else {
                state.held = .launch(body)
                return nil
            }
            if state.hasDelegate { state.unmeasured.insert(number) }
            state.source = content
            state.reported = self.purpose.sentBefore
            return (number, self.purpose.asking(state.completed(request)), state.hasDelegate)
        }
        guard let (number, request, hasDelegate) = launch else {
            // Held for later, or the task is over.
            if self.isSettled { body?.source.cancel() }
            return
        }
        guard let loader = self.session?.loaders.loader(for: request, of: self) else {
            _ = self.guarded.withLock { $0.unmeasured.remove(number) }
            return self.fail(.unsupportedURL)
        }
        let authorization = self.preemption(for: request)
        let order = LoadOrder(
            request: request, task: self, body: content, authorization: authorization,
            usesCache: self is URLSessionDataTask)
        let load = loader.load(
            order, observer: LoadListener(task: self, number: number, hasDelegate: hasDelegate))
        self.keep(load, number: number)
    }

    /// Holds a load that has begun, for as long as the task needs it.
    private func keep(_ load: any Load, number: Int) {
        let (isWanted, hasTurned) = self.guarded.withLock { state in
            // It may have been answered, and more, before it was there; also by somebody who goes on
            // with the answer.
            let isLast = state.machine.load == number
            guard !state.machine.isSettled else {
                return (
                    isLast && (state.successor != nil || state.outcome?.isSuccess == true), false
                )
            }
            let before = isLast ? state.load : load
            if isLast { state.load = load }
            if let before { state.superseded.append(before) }
            return (true, isLast && state.machine.turn > 0)
        }
        if !isWanted { return load.cancel() }
        // The task may have been suspended, and resumed, before anybody had the load to tell it.
        if hasTurned { load.suspensionChanged() }
    }

    // MARK: Suspended, and resumed

    /// Has the time for the whole run while the task does.
    func keepTime() {
        let (session, turn, isSuspended) = self.guarded.withLock {
            ($0.session, $0.machine.turn, $0.machine.isSuspended)
        }
        session?.deadlines.keep(self.taskIdentifier, running: !isSuspended, turn: turn)
    }

    func goOn() {
        let (load, superseded, pump, content, held) = self.guarded.withLock { state in
            (
                state.load, state.superseded, state.pump, state.suspendableContent,
                state.held.take()
            )
        }
        for load in superseded { load.suspensionChanged() }
        load?.suspensionChanged()
        pump?.run()
        content?.run()
        self.purpose.suspensionChanged(self)
        switch held {
        case nil: break
        case .preparation: self.prepare()
        case .launch(let body): self.launch(body: body)
        case .answer(let answer): self.answered(answer, load: self.loadNumber)
        case .redirection(let request, let response):
            self.redirected(to: request, by: response, load: self.loadNumber)
        case .failure(let error): self.failed(error, load: self.loadNumber)
        }
    }

    private var loadNumber: Int { self.guarded.withLock { $0.machine.load } }

    // MARK: What a load says

    func informed(by response: HTTPURLResponse, load: Int) {
        guard self.hears(load) else { return }
        self.purpose.informed(by: response, for: self)
        self.tell(.informational) { task, session, delegates in
            delegates.task?.urlSession(
                session, task: task, didReceiveInformationalResponse: response)
        }
    }

    func answered(_ answer: LoadAnswer, load: Int) {
        switch self.take(.answer(answer), load: load, orDo: { $0.answer = answer }) {
        case .unheard: answer.abandon()
        case .held: break
        case .taken: self.judge(answer)
        }
    }

    func redirected(to request: URLRequest, by response: URLResponse, load: Int) {
        guard self.take(.redirection(request, response), load: load, orDo: { _ in }) == .taken
        else { return }
        let (redirects, next, keepsContent) = self.guarded.withLock { state in
            let (next, keepsContent) = state.following(request, by: response)
            return (state.redirects, next, keepsContent)
        }
        guard redirects < Redirect.limit else { return self.fail(.httpTooManyRedirects) }
        self.follow(next, by: response, answer: nil, keepsContent: keepsContent)
    }

    private enum Taking { case unheard, held, taken }

    /// A load is over with a response; a suspended task looks at it when it is resumed.
    private func take(
        _ held: @autoclosure () -> TaskState.Held, load: Int,
        orDo then: (inout TaskState) -> Void
    ) -> Taking {
        self.guarded.withLock { state in
            guard state.machine.hears(load: load) else { return .unheard }
            guard !state.machine.isSuspended else {
                state.held = held()
                return .held
            }
            guard state.machine.answered(load: load) else { return .unheard }
            then(&state)
            return .taken
        }
    }

    func failed(_ error: any Error, load: Int) {
        let isHeard = self.guarded.withLock { state in
            guard state.machine.hears(load: load) else { return false }
            guard state.machine.isSuspended else { return true }
            // Suspended tasks have no timeouts: it begins anew when it is resumed, unless the
            // server might do something twice then.
            let isOverdue =
                (error as? URLError)?.code == .timedOut && state.mayBeginAnew
                && state.machine.prepare()
            state.held = isOverdue ? .preparation : .failure(error)
            return false
        }
        guard isHeard else { return }
        // What went wrong with the content is known better by whoever read it.
        let source = self.guarded.withLock { $0.source }
        self.settle(.failed(source?.failure ?? error))
    }

    private func hears(_ load: Int) -> Bool {
        self.guarded.withLock { $0.machine.hears(load: load) }
    }

    /// There is no way into the network yet; the delegate hears that once.
    func waitsForConnectivity(load: Int) {
        let isFirst = self.guarded.withLock { state in
            guard state.machine.hears(load: load), !state.hasWaited else { return false }
            state.hasWaited = true
            return true
        }
        guard isFirst else { return }
        self.tell(.connectivity) { task, session, delegates in
            delegates.task?.urlSession(session, taskIsWaitingForConnectivity: task)
        }
    }

    /// Bytes of the request's body went out.
    ///
    /// The delegate is told of as many at a time as have gather
    /// while the message before was on its way.
    func sent(_ total: Int64, load: Int) {
        let (successor, counts) = self.guarded.withLock {
            ($0.successor, $0.machine.counts(load: load))
        }
        if let successor { return successor.sent(total + self.purpose.sentBefore, load: load) }
        guard counts else { return }
        self.countOfBytesSent = total + self.purpose.sentBefore
        let isFirst = self.guarded.withLock { state in
            defer { state.isReporting = true }
            return !state.isReporting
        }
        guard isFirst else { return }
        self.tell(.sent) { task, session, delegates in
            let (sent, total, expected) = task.guarded.withLock { state in
                defer {
                    state.reported = state.sent
                    state.isReporting = false
                }
                return (state.sent - state.reported, state.sent, state.expectedToSend)
            }
            guard sent > 0 else { return }
            delegates.task?.urlSession(
                session, task: task, didSendBodyData: sent, totalBytesSent: total,
                totalBytesExpectedToSend: expected)
        }
    }

    func measured(_ transaction: TransactionMeasurement, load: Int) {
        let successor = self.guarded.withLock { state -> URLSessionTask? in
            if let successor = state.successor { return successor }
            state.unmeasured.remove(load)
            if state.machine.stage != .over { state.transactions.append(transaction) }
            return nil
        }
        if let successor { return successor.measured(transaction, load: load) }
        self.deliverIfComplete()
    }

    func challenged(
        _ challenge: URLAuthenticationChallenge, load: Int,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let (successor, hearing) = self.guarded.withLock {
            ($0.successor, $0.machine.hearsChallenge(of: load))
        }
        if let successor {
            return successor.challenged(challenge, load: load, answer: answer)
        }
        switch hearing {
        case .asked: self.ask(challenge, isSessionWide: challenge.isSessionWide, then: answer)
        case .unasked: answer(.performDefaultHandling, nil)
        case .unheard: answer(.cancelAuthenticationChallenge, nil)
        }
    }
}

extension LoadAnswer {
    /// Nobody wants it: its body is not read, nothing of it is stored.
    func abandon() {
        self.body.cancel()
        self.storing?.decide(nil)
    }
}

extension TaskOutcome {
    var isSuccess: Bool {
        if case .finished = self { true } else { false }
    }
}
