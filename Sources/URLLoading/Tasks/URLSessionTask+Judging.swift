import Dispatch
import Foundation
import LarderHTTP
import NIOCore
import Synchronization

// From the response to the end of its body: what becomes of it, and who takes it.

extension URLSessionTask {
    // MARK: Redirections (§5)

    func judge(_ answer: LoadAnswer) {
        let (request, number) = self.guarded.withLock { ($0.currentRequest, $0.redirects) }
        if let other = self.purpose.reconsider(answer, for: self) {
            return self.reload(other, insteadOf: answer)
        }
        // It may have ended the task, and the answer with it.
        if self.isSettled { return }
        guard let head = answer.head, let request else { return self.respond(with: answer) }
        if self.meetChallenge(of: answer, head, to: request) { return }
        let hasContent = self.guarded.withLock { $0.content.isSomething }
        switch Redirect.judge(head, to: request, number: number, hasContent: hasContent) {
        case .none: self.respond(with: answer)
        case .tooMany: self.fail(.httpTooManyRedirects)
        case .follow(let next, let keepsContent):
            self.follow(next, by: answer.response, answer: answer, keepsContent: keepsContent)
        }
    }

    /// Asks the delegate whether to follow a redirection.
    ///
    /// - Parameter answer: the redirection itself, as the response that it becomes where it is not
    ///   followed; nil where it has no body.
    func follow(
        _ next: URLRequest, by response: URLResponse, answer: LoadAnswer?,
        keepsContent: Bool = false
    ) {
        guard let question = self.guarded.withLock({ $0.machine.ask() }) else {
            answer?.abandon()
            return
        }
        let decide: @Sendable (URLRequest?) -> Void = { [self] chosen in
            guard self.guarded.withLock({ $0.machine.answer(question) }) else { return }
            self.decided(
                chosen, insteadOf: next, response: response, answer: answer,
                keepsContent: keepsContent)
        }
        guard let response = response as? HTTPURLResponse else { return decide(next) }
        self.tell(.redirection, orElse: { decide(next) }) { task, session, delegates in
            guard let delegate = delegates.task else { return decide(next) }
            delegate.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                completionHandler: decide)
        }
    }

    private func decided(
        _ chosen: URLRequest?, insteadOf proposed: URLRequest, response: URLResponse,
        answer: LoadAnswer?, keepsContent: Bool
    ) {
        guard let chosen else {
            return self.respond(
                with: answer ?? LoadAnswer(response: response, body: EmptyBody()))
        }
        self.reload(insteadOf: answer) { state in
            state.replaceContent(for: chosen, insteadOf: proposed, keeping: keepsContent)
            state.currentRequest = chosen
            state.redirects += 1
        }
    }

    private func reload(_ request: URLRequest, insteadOf answer: LoadAnswer) {
        self.reload(insteadOf: answer) { $0.currentRequest = request }
    }

    /// Begins another load; what the last one answered with is not wanted.
    func reload(insteadOf answer: LoadAnswer?, _ change: (inout TaskState) -> Void) {
        let goesOn = self.guarded.withLock { state in
            guard state.machine.prepare() else { return false }
            change(&state)
            state.answer = nil
            // The load stays until the next one begins: the end of the task is to cancel what is
            // left of it.
            return true
        }
        // Who ended the task has dealt with the answer.
        guard goesOn else { return }
        guard let answer else { return self.prepareNext() }
        answer.storing?.decide(nil)
        // A connection can be used again when what is left on it has been read.
        let timers = self.session?.timers ?? SourceTimers.shared
        BodyDrain.drain(
            answer.body, expecting: answer.response.expectedContentLength, timers: timers
        ) { self.prepareNext() }
    }

    /// Prepares a load behind another one, whose answer came on a thread of the cache's or of transfers:
    /// classes of the program's that are asked about it may wait for what that thread has to do.
    private func prepareNext() {
        guard self.session?.loaders.asksProgram == true else { return self.prepare() }
        DispatchQueue(label: "URLLoading.next-load").async { self.prepare() }
    }

    // MARK: The response

    func respond(with answer: LoadAnswer) {
        let answer = answer.storable(by: self)
        var isWanted = false
        self.count { state in
            // A task that has its result would keep it for ever, as its body may keep the task.
            guard !state.machine.isSettled else { return }
            isWanted = true
            state.response = answer.response
            state.expectedToReceive = answer.response.expectedContentLength
            state.answer = answer
        }
        guard isWanted else { return answer.abandon() }
        guard self.purpose.asksForDisposition,
            let question = self.guarded.withLock({ $0.machine.ask() })
        else { return self.receive() }
        let decide: @Sendable (URLSession.ResponseDisposition) -> Void = { [self] disposition in
            guard self.guarded.withLock({ $0.machine.answer(question) }) else { return }
            self.dispose(disposition)
        }
        self.tell(.response, orElse: { decide(.allow) }) { task, session, delegates in
            guard let delegate = delegates.data, let task = task as? URLSessionDataTask else {
                return decide(.allow)
            }
            delegate.urlSession(
                session, dataTask: task, didReceive: answer.response, completionHandler: decide)
        }
    }

    private func dispose(_ disposition: URLSession.ResponseDisposition) {
        switch disposition {
        case .allow: self.receive()
        case .cancel: self.cancel()
        case .becomeDownload: self.becomeDownload()
        case .becomeStream: self.becomeStream()
        }
    }

    // MARK: The body

    func receive() {
        guard let answer = self.guarded.withLock({ $0.answer }) else { return }
        if self.receivesAtOnce(answer) { return }
        let consumer: any BodyConsumer
        do throws(BodyConsumerError) {
            consumer = try self.purpose.consumer(of: answer, for: self)
        } catch {
            return self.settle(.failed(error.error))
        }
        let pump = BodyPump(
            answer.body, into: consumer,
            received: { [self] length in
                self.count { $0.received = $0.received.saturatingAdd(length) }
            },
            ended: { [self] in self.received($0) })
        let isWanted = self.guarded.withLock { state in
            guard state.machine.receive() else { return false }
            if state.machine.isSuspended { pump.isPaused = true }
            state.pump = pump
            return true
        }
        guard isWanted else {
            consumer.stop()
            return answer.abandon()
        }
        pump.start()
    }

    /// Hands a body that is in memory to a purpose that keeps it there, which takes no consumer and no
    /// pump: nobody has to be waited for.
    private func receivesAtOnce(_ answer: LoadAnswer) -> Bool {
        guard self.purpose.keepsWhole(for: self), let load = answer.body as? HTTPLoad, load.isWhole,
            self.guarded.withLock({ !$0.machine.isSuspended && $0.machine.receive() })
        else { return false }
        let body = load.takeWhole() ?? ByteBuffer()
        if body.readableBytes > 0 {
            self.count { $0.received = $0.received.saturatingAdd(body.readableBytes) }
        }
        self.purpose.keep(.whole(body))
        self.store()
        return true
    }

    private func received(_ end: BodyPump.End) {
        switch end {
        case .whole: self.store()
        case .broken(let failure): self.settle(.failed(URLError(breaking: failure)))
        case .refused(let error): self.settle(.failed(error.error))
        }
    }

    // MARK: What is stored of it

    private func store() {
        guard let storing = self.guarded.withLock({ $0.answer?.storing }) else {
            return self.settle(.finished)
        }
        let storesAsIs: @Sendable () -> Void = { [self] in
            self.decide(storing) { storing.proposedResponse() }
        }
        guard storing.isPossible else { return self.decide(storing) { nil } }
        guard self.purpose.asksForStoring,
            let question = self.guarded.withLock({ $0.machine.ask() })
        else { return storesAsIs() }
        self.tell(.caching, orElse: storesAsIs) { task, session, delegates in
            guard let delegate = delegates.data, let data = task as? URLSessionDataTask else {
                return storesAsIs()
            }
            let proposed = storing.proposedResponse()
            proposed.body.show(true)
            delegate.urlSession(
                session, dataTask: data, willCacheResponse: proposed
            ) { chosen in
                guard task.guarded.withLock({ $0.machine.answer(question) }) else { return }
                task.decide(storing) { chosen }
            }
        }
    }

    /// Decides once what is stored: whoever ended the task before has done it already.
    private func decide(
        _ storing: any PendingStoring, _ response: @Sendable () -> CachedURLResponse?
    ) {
        let isOpen = self.guarded.withLock { state in
            defer { state.answer = state.answer?.withoutStoring }
            return state.answer?.storing != nil
        }
        guard isOpen else { return }
        storing.decide(response()) { [self] in self.settle(.finished) }
    }
}

extension LoadAnswer {
    /// What may be stored of it when it is a task's final response: of downloads nothing.
    fileprivate func storable(by task: URLSessionTask) -> LoadAnswer {
        guard !(task is URLSessionDataTask), let storing = self.storing else { return self }
        storing.decide(nil)
        return self.withoutStoring
    }
}

extension Int64 {
    fileprivate func saturatingAdd(_ other: Int) -> Int64 {
        let (sum, overflow) = self.addingReportingOverflow(Int64(other))
        return overflow ? .max : sum
    }
}
