import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Where a fetch and the clients that wait for it meet.
///
/// ```
/// awaitingHead ─▶ streaming ─▶ complete | failed
///       └──────▶ settled (answered from the store after all, or not at all)
/// ```
///
/// One fetch writes; any number of clients wait for the head and then read the body, each at its own
/// pace. Methods may be called on any thread; nothing foreign is called while the lock is held.
final class Filling: Sendable {
    let key: CacheKey
    /// What it is to bring; nil: the whole.
    let part: Part?
    private let state: Mutex<State>

    init(key: CacheKey, window: ByteCount, part: Part? = nil) {
        self.key = key
        self.part = part
        let isRange = if case .range? = part { true } else { false }
        self.state = Mutex(State(body: FillingState(window: window, isPart: isRange)))
    }

    /// What it is to fill of what is stored.
    var gap: Gap? {
        if case .gap(let gap)? = self.part { gap } else { nil }
    }

    // MARK: Clients

    /// - Parameters:
    ///   - leads: the client's own request is the one that goes to the origin.
    ///   - isPatient: it waits as long as it takes; else until `releaseJoined`.
    func join(
        _ waiter: any FillingWaiter, leads: Bool = false, isPatient: Bool = true
    ) -> Joined {
        self.state.withLock { state in
            switch state.outcome {
            case nil:
                guard case .streaming = state.body.phase else { return .tooLate }
                state.waiters.append(
                    Waiting(waiter: waiter, leads: leads, isPatient: isPatient))
                state.desertedAt = nil
                return .waiting
            case .response(let response)?:
                guard response.isShared, state.body.isJoinable else { return .tooLate }
                state.desertedAt = nil
                if response.content != nil { return .known(.response(response), nil) }
                let reader = FillingReader(filling: self, id: state.body.addReader())
                return .known(.response(response), reader)
            case .spliced(let spliced)?:
                guard state.body.readersBeginLate, state.body.sinkGivesBack, state.body.isJoinable
                else { return .tooLate }
                state.desertedAt = nil
                let reader = FillingReader(filling: self, id: state.body.addReader())
                return .known(.spliced(spliced), reader)
            case .stored?, .failed?:
                return .tooLate
            }
        }
    }

    var arrival: Arrival {
        self.state.withLock { state in
            switch state.outcome {
            case nil: if case .streaming = state.body.phase { .awaited } else { .over }
            case .response(let response)? where response.isShared && response.content == nil:
                .arriving(
                    response, received: state.body.end, isPaused: state.body.isPaused)
            case .response?, .spliced?, .stored?, .failed?: .over
            }
        }
    }

    /// Joins a response whose head has come, for the bytes from `offset` on.
    ///
    /// - Returns: nil where some of them are gone.
    func read(from offset: UInt64) -> FillingReader? {
        self.state.withLock { state in
            guard case .response(let response)? = state.outcome, response.isShared,
                state.body.isReadable(from: offset)
            else { return nil }
            state.desertedAt = nil
            return FillingReader(filling: self, id: state.body.addReader(at: offset))
        }
    }

    /// A client that was waiting for the head has gone.
    func leave(_ waiter: any FillingWaiter) {
        self.act { state in
            state.waiters.removeAll { $0.waiter === waiter }
            return state.desertion() ?? state.doubt()
        }
    }

    /// Whether the caller, who has joined, is to measure how long those wait who have.
    func beginsWaiting() -> Bool {
        self.state.withLock { state in
            guard state.outcome == nil, !state.isWaitedFor else { return false }
            state.isWaitedFor = true
            return true
        }
    }

    /// Those who have waited long enough for the head of another's fetch wait no more.
    ///
    /// What the fetch brings is still the answer to whose it is. Nobody is to find the filling any more.
    ///
    /// - Returns: them, each to be told (`fillingIsSlow`).
    func releaseJoined() -> [any FillingWaiter] {
        let (joined, action) = self.state.withLock { state in
            let joined = state.takeJoined()
            return (joined, joined.isEmpty ? nil : state.desertion() ?? state.doubt())
        }
        self.perform(action)
        return joined
    }

    /// A client that waits for the head may have gone.
    func doubt(_ waiter: any FillingWaiter) {
        self.act { state in
            for i in state.waiters.indices where state.waiters[i].waiter === waiter {
                state.waiters[i].mayHaveGone = true
            }
            return state.doubt()
        }
    }

    /// Fails all who wait for the head, where each of them may have gone.
    ///
    /// - Returns: whether it did: not where somebody is there for certain, or nobody waits.
    func failDoubted(_ failure: ExchangeFailure) -> Bool {
        let told = self.state.withLock { state -> [Waiting]? in
            guard state.isDoubted else { return nil }
            state.outcome = .failed(failure)
            return state.takeWaiters()
        }
        guard let told else { return false }
        self.tell(told, of: .failed(failure))
        return true
    }

    func readerLeft(_ id: UInt64) {
        self.act { state in
            let resumes = state.body.removeReader(id)
            return state.desertion() ?? state.afterReading(resumes: resumes)
        }
    }

    func attach(_ id: UInt64, wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.body.attach(id, wake: wake) }
    }

    /// Notes that a reader is about to ask for its first bytes; false where they are not held for it.
    func begin(_ id: UInt64) -> Bool {
        let (mayRead, action) = self.state.withLock { state in
            let (mayRead, resumes) = state.body.begin(id)
            return (mayRead, state.afterReading(resumes: resumes))
        }
        self.perform(action)
        return mayRead
    }

    func next(_ id: UInt64) -> FillingState.Step {
        let (step, action) = self.state.withLock { state in
            let (step, resumes) = state.body.next(id)
            return (step, state.afterReading(resumes: resumes))
        }
        self.perform(action)
        return step
    }

    func advance(_ id: UInt64, by count: Int) {
        self.act { $0.afterReading(resumes: $0.body.advance(id, by: count)) }
    }

    // MARK: The fetch

    /// Gives the filling the means to act on its fetch; dropped when the body has ended.
    func begin(control: any FillingControl) {
        self.state.withLock { $0.control = control }
    }

    /// Settles what the fetch has come to and tells all who wait.
    ///
    /// - Parameter sink: takes the body, where the response is stored.
    func settle(_ outcome: Outcome, sink: (any ObjectSink)?) {
        let readsBack = sink?.reader(from: 0) != nil
        let told = self.state.withLock { state -> [Waiting] in
            state.outcome = outcome
            if let sink { state.body.begin(sink: sink, readsBack: readsBack) }
            var waiters = state.takeWaiters()
            let isShared: Bool
            switch outcome {
            case .response(let response): isShared = response.isShared
            case .spliced:
                // What fills the gap is for everybody: nobody who is slow holds up the others, as the
                // sink gives back what it has written, or else who comes late asks anew.
                isShared = self.gap != nil && readsBack
                state.body.readersBeginLate = isShared
            case .stored, .failed: return waiters
            }
            if !isShared { state.body.becomesUnshared() }
            for i in waiters.indices where isShared || waiters[i].leads {
                waiters[i].reader = FillingReader(filling: self, id: state.body.addReader())
            }
            return waiters
        }
        self.tell(told, of: outcome)
        self.act { $0.desertion() }
    }

    /// Settles a response that has come as a whole, and ends its body in the same step.
    ///
    /// Nobody reads it from here: whoever gets the response has its content with it.
    ///
    /// - Parameter sink: takes the content, from the caller.
    /// - Returns: who waited, still to be told.
    func settle(whole response: Response, sink: (any ObjectSink)?) -> [Waiting] {
        self.state.withLock { state in
            // Who comes later finds it over, and of what nobody else may have there is nothing to find.
            if response.isShared { state.outcome = .response(response) }
            if let sink { state.body.begin(sink: sink, readsBack: false) }
            if !response.isShared { state.body.becomesUnshared() }
            state.control = nil
            // Nobody has a reader that would have to be woken.
            _ = state.body.finish(.complete(Fields()))
            return state.takeWaiters()
        }
    }

    func tell(_ waiters: [Waiting], of outcome: Outcome) {
        for waiting in waiters {
            waiting.waiter.filling(
                settled: outcome, reader: waiting.reader, leads: waiting.leads)
        }
    }

    /// Takes the next piece of the body and passes it to the sink.
    func received(_ piece: ByteBuffer) -> UpstreamDemand {
        let (wakes, sink) = self.state.withLock { state in
            (state.body.append(piece), state.body.writingSink)
        }
        sink?.write(piece)
        for wake in wakes { wake() }
        let (demand, action) = self.state.withLock { state in
            let demand = state.body.demand()
            return (demand, state.afterReading(resumes: false))
        }
        self.perform(action)
        return demand
    }

    /// The sink that takes the body, while it does.
    var writingSink: (any ObjectSink)? { self.state.withLock { $0.body.writingSink } }

    /// The body has ended, well or badly.
    ///
    /// The sink, still to be committed or abandoned, comes back.
    func finished(_ phase: FillingState.Phase) -> (any ObjectSink)? {
        let (wakes, sink) = self.state.withLock { state in
            let sink = state.body.writingSink
            state.control = nil
            return (state.body.finish(phase), sink)
        }
        for wake in wakes { wake() }
        return sink
    }

    /// Ends the body where it is, unless a client has come since the last one left.
    ///
    /// - Returns: nil where one has, or the body has ended already; else the sink, still to be
    ///   abandoned, where there is one.
    func endDeserted() -> EndedSink? {
        self.state.withLock { state in
            guard state.waiters.isEmpty, state.body.readers.isEmpty,
                case .streaming = state.body.phase
            else { return nil }
            state.control = nil
            // There is nobody to be woken.
            _ = state.body.finish(.failed(.cancelled))
            return EndedSink(sink: state.body.writingSink)
        }
    }

    struct EndedSink {
        let sink: (any ObjectSink)?
    }

    func sinkWritten(_ offset: UInt64) {
        self.act { state in
            let resumes = state.body.sinkWritten(offset)
            return state.afterWriting(resumes: resumes)
        }
    }

    /// Gives the sink up because it is too slow: nothing more is written, what was is dropped.
    func giveUpSink() {
        let sink = self.state.withLock { $0.body.writingSink }
        self.stopSink()
        sink?.abandon()
    }

    /// The sink has ended: it takes nothing more.
    ///
    /// - Parameter isWhole: it has got the whole body.
    func stopSink(isWhole: Bool = false) {
        self.act { state in
            let resumes = state.body.stopSink(isWhole: isWhole)
            return state.afterWriting(resumes: resumes)
        }
    }

    /// The store's patience is over: how far the sink is now, if it alone still keeps the origin
    /// waiting.
    func patienceOver() -> UInt64? {
        self.state.withLock { state in
            state.isTimed = false
            return state.startTimingSink()
        }
    }

    /// The time of those is over who hold up others: who has taken nothing of late loses the rest.
    ///
    /// - Returns: how many did.
    func laggardsTimeOver() -> Int {
        let (cut, action) = self.state.withLock { $0.endLaggardsTime() }
        self.perform(action)
        return cut
    }

    /// How many bytes came in since the last client left; nil while there is one.
    var bytesSinceDeserted: UInt64? {
        self.state.withLock { state in state.desertedAt.map { state.body.end &- $0 } }
    }

    /// Whether the origin waits for a reader or the store.
    var isPaused: Bool { self.state.withLock { $0.body.isPaused } }

    /// Whether the origin's own answer has begun to come.
    var hasAnswer: Bool {
        self.state.withLock { if case .response? = $0.outcome { true } else { false } }
    }

    var bytesReceived: UInt64 { self.state.withLock { $0.body.end } }

    var readerCount: Int { self.state.withLock { $0.body.readers.count + $0.waiters.count } }

    // MARK: Inside

    private func act(_ change: (inout State) -> Action?) {
        self.perform(self.state.withLock { change(&$0) })
    }

    private func perform(_ action: Action?) {
        switch action {
        case .resume(let control)?: control?.resume()
        case .deserted(let control)?: control?.deserted()
        case .doubted(let control)?: control?.doubted()
        case .heldUp(let control, let written, let sink)?:
            if let written { control?.heldUpBySink(at: written) }
            sink?.hurry()
        case .lagging(let control)?: control?.heldUpByClients()
        case nil: break
        }
    }
}
