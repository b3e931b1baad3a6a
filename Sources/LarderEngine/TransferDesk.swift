import LarderHTTP
import LarderPolicy
import LarderSession
import LarderState
import LarderStore
import Synchronization

/// Keeps the transfers of a background session: they go on when their clients have left, are asked for
/// again where they break off, and are written down until they are over.
///
/// ```
/// a client's fetch ─ begins to be stored ─▶ begin ─▶ fetchEnded ─▶ (pause) ─▶ ask ─▶ … ─▶ over
/// takeUp (after a start) ───────────────────────────────────────────▲
/// ```
///
/// What brings a transfer is an exchange like any other: it joins what clients have fetched for them, and what
/// is stored of it already is not fetched again. Any thread may use it.
final class TransferDesk: Sendable {
    /// How many are kept at a time.
    static let limit = 1024
    /// How many of these one client may have.
    static let share = 256
    /// Shorter responses are no transfers: to ask for them again costs less than to write them down.
    static let least: UInt64 = 1 << 20
    /// What ends sooner is never written down.
    static let delay = Duration.seconds(1)
    /// How many are asked for again at a time; others wait for their turn.
    static let concurrency = 4
    /// How often all may come of one that is not stored then.
    static let mostUnkept = 3
    /// How long one may take, from its request on (`timeoutIntervalForResource` of the URL Loading System).
    static let patience = Duration.seconds(7 * 86_400)

    let clock: any WallClock
    private let timers: any Timers
    /// nil: they are forgotten with the process.
    let journal: TransferJournal?
    let report: @Sendable (TransferEvent) -> Void
    let state = Mutex(TransferDeskState())
    /// Random at first, so that it is not the number of one from before.
    private let lastID = Atomic(UInt64.random(in: .min ... .max))

    init(
        clock: any WallClock, timers: any Timers, journal: TransferJournal?,
        report: @escaping @Sendable (TransferEvent) -> Void
    ) {
        self.clock = clock
        self.timers = timers
        self.journal = journal
        self.report = report
    }

    /// Owns what a request leads to, if it is for a transfer; nil where it is not.
    func owner(
        of request: Request, by requester: Requester, in part: PrincipalSession
    ) -> (any FetchOwner)? {
        guard Transfer.mayBe(request) else { return nil }
        return Transfer(
            id: self.lastID.wrappingAdd(1, ordering: .relaxed).newValue, request, by: requester,
            begun: self.clock.now(), part: part, desk: self)
    }

    // MARK: What fetches say

    /// A client's fetch brings a transfer, unless it is too short for one.
    func begin(
        _ transfer: Transfer, length: UInt64?, received: @escaping @Sendable () -> UInt64
    ) -> Bool {
        if let length, length < Self.least { return false }
        var entry = TransferEntry(
            transfer: transfer,
            machine: TransferMachine(deadline: transfer.deadline),
            received: received, length: length.map { $0 &+ received() })
        let (isKept, isFull, replaced) = self.state.withLock {
            state -> (Bool, Bool, TransferEntry?) in
            guard !state.isClosed else { return (false, false, nil) }
            var replaced: TransferEntry?
            if let (id, same) = state.waiting(for: transfer) {
                // The time for the whole goes on.
                entry.machine = same.machine
                _ = entry.machine.isTakenOver()
                (entry.reached, entry.unkept) = (same.reached, same.unkept)
                replaced = state.take(id)
            } else if !state.hasRoom(for: transfer) {
                defer { state.isFullTold = true }
                return (false, !state.isFullTold, nil)
            }
            state.entries[transfer.id] = entry
            return (true, false, replaced)
        }
        if isFull { self.report(.tooMany(limit: Self.limit, share: Self.share)) }
        let id = transfer.id
        if replaced?.isNoted == true {
            self.note(id)
        } else if isKept {
            _ = self.timers.schedule(after: Self.delay) { [weak self] in self?.note(id) }
        }
        if let replaced { self.letGo(replaced) }
        return isKept
    }

    func fetchEnded(_ id: UInt64, _ ending: FetchEnding) {
        switch ending {
        case .stored: self.end(id, .stored)
        case .partStored: self.isToBeSeenTo(id)
        case .brokenOff:
            let received = self.state.withLock { $0.entries[id]?.received }
            self.brokeOff(id, because: "the response broke off", received: received?())
        case .turnedAway(let why):
            if let end = TransferMachine.end(after: why) {
                self.end(id, end)
            } else {
                self.brokeOff(id, because: "the store did not keep it: \(why.rawValue)")
            }
        }
    }

    // MARK: From one attempt to the next

    /// A part that was asked for has come: it is looked whether that was the last one.
    private func isToBeSeenTo(_ id: UInt64) {
        self.state.withLock { state in
            guard state.entries[id]?.machine.isToBeSeenTo() == true else { return }
            state.entries[id]?.received = nil
            state.queue.append(id)
        }
        self.beginNext()
    }

    /// - Parameter received: how far it came, in bytes; nil: nothing came.
    private func brokeOff(
        _ id: UInt64, because cause: String, received: UInt64? = nil, wanted: Duration? = nil
    ) {
        let now = self.clock.now()
        // What was used for it is let go of outside of the lock.
        let (step, _) = self.state.withLock { state -> (TransferMachine.Step, TransferEntry?) in
            guard !state.isClosed else { return (.nothing, nil) }
            state.rest(id)
            guard var entry = state.entries[id] else { return (.nothing, nil) }
            let before = entry
            let step = entry.machine.brokeOff(
                at: now, because: cause, hasProgressed: (received ?? 0) > entry.reached,
                wanted: wanted)
            entry.reached = max(entry.reached, received ?? 0)
            (entry.reading, entry.exchange, entry.received) = (nil, nil, nil)
            state.entries[id] = entry
            return (step, before)
        }
        switch step {
        case .nothing: break
        case .end(let end): self.end(id, end)
        case .wait(let pause):
            self.note(id)
            let timer = self.timers.schedule(after: pause) { [weak self] in self?.due(id) }
            let isWanted = self.state.withLock { state in
                guard case .waiting? = state.entries[id]?.machine.state else { return false }
                state.entries[id]?.timer = timer
                return true
            }
            if !isWanted { timer.cancel() }
        }
    }

    private func due(_ id: UInt64) {
        self.state.withLock { state in
            guard state.entries[id]?.machine.isDue() == true else { return }
            state.entries[id]?.timer = nil
            state.queue.append(id)
        }
        self.beginNext()
    }

    /// Asks for those whose turn it is.
    ///
    /// What is stored meanwhile is answered at once, and lets the next one begin: in turns, not inside each
    /// other.
    func beginNext() {
        guard self.state.withLock({ $0.beginning.begins() }) else { return }
        repeat {
            while let (transfer, leave) = self.state.withLock({ $0.next() }) {
                self.begin(transfer, leave)
            }
        } while self.state.withLock { $0.beginning.goesOn() }
    }

    private func begin(
        _ transfer: Transfer, _ leave: @Sendable (Requester, TargetURI) -> RequesterLeave?
    ) {
        var options = ExchangeOptions()
        var request = transfer.request
        // Rules may have changed since, and a name may lead elsewhere.
        guard let allowed = leave(transfer.requester, request.uri) else {
            return self.ended(
                transfer.id, .refused("the access rules do not allow it any more"))
        }
        options.permits = allowed.permits
        request.destinations = allowed.destinations
        if transfer.part.cachePolicy == .returnCacheDontLoad {
            return self.failed(transfer.id, because: "offline: the session asks no origin")
        }
        self.ask(transfer, request, options)
    }

    private func ask(_ transfer: Transfer, _ request: Request, _ options: ExchangeOptions) {
        let id = transfer.id
        let reading = TransferReading(clock: self.clock) { [weak self] outcome in
            self?.came(id, outcome)
        }
        self.state.withLock { $0.entries[id]?.reading = reading }
        let exchange = transfer.part.perform(
            request, body: nil, options: options, client: reading)
        let isWanted = self.state.withLock { state in
            guard state.entries[id]?.reading === reading else { return false }
            state.entries[id]?.exchange = exchange
            return true
        }
        // It was over before that, or is not wanted any more: nothing is left of it then.
        if !isWanted { exchange.cancel() }
    }

    /// What came of one that was asked for again.
    private func came(_ id: UInt64, _ outcome: TransferOutcome) {
        // Both are let go of outside of the lock.
        let entry = self.state.withLock { state in
            defer {
                state.entries[id]?.reading = nil
                state.entries[id]?.exchange = nil
            }
            return state.entries[id]
        }
        guard let transfer = entry?.transfer else { return }
        switch outcome {
        case .hit: self.ended(id, .stored)
        case .complete:
            transfer.part.session.holds(transfer.request) { [weak self] isStored in
                if isStored { self?.ended(id, .stored) } else { self?.unkept(id) }
            }
        case .notStored: self.ended(id, .notKept("it may not be stored any more"))
        case .answered(let status, let wait):
            guard TransferMachine.mayChange(status) else {
                return self.ended(id, .answered(status))
            }
            self.failed(id, because: "answered with \(status)", wanted: wait)
        case .failed(let status, let detail):
            // Asked again it would be told the same.
            if status.isClientError { return self.ended(id, .refused(detail)) }
            self.failed(id, because: detail)
        case .brokenOff(let detail, let received):
            self.failed(id, because: detail, received: received)
        }
    }

    /// All of it has come, and the store does not have it: it may have been full, or too slow.
    private func unkept(_ id: UInt64) {
        let cause = "the store has not kept it"
        let isLast = self.state.withLock { state in
            state.entries[id]?.unkept += 1
            return state.entries[id]?.unkept == Self.mostUnkept
        }
        if isLast { self.ended(id, .notKept(cause)) } else { self.failed(id, because: cause) }
    }

    /// One that was asked for again has to be once more.
    private func failed(
        _ id: UInt64, because cause: String, received: UInt64? = nil, wanted: Duration? = nil
    ) {
        self.brokeOff(id, because: cause, received: received, wanted: wanted)
        self.beginNext()
    }

    /// One that was asked for again is over.
    private func ended(_ id: UInt64, _ end: TransferEnd) {
        self.end(id, end)
        self.beginNext()
    }

    /// Forgets a transfer, and says so where that is news.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    func end(_ id: UInt64, _ end: TransferEnd) -> Bool {
        let entry = self.state.withLock { state -> TransferEntry? in
            guard !state.isClosed else { return nil }
            return state.take(id)
        }
        guard let entry else { return false }
        self.letGo(entry)
        // What was stored at once was an exchange like any other.
        if entry.isNoted || end != .stored {
            self.report(.ended(uri: entry.transfer.request.uri.description, end))
        }
        return true
    }

    private func letGo(_ entry: TransferEntry) {
        entry.transfer.letGo()
        entry.timer?.cancel()
        entry.reading?.abandon()
        entry.exchange?.cancel()
        if entry.isNoted {
            self.journal?.over(entry.transfer.id, of: entry.transfer.part.principal)
        }
    }

    /// Writes one down that is not over.
    func note(_ id: UInt64) {
        self.state.withLock { state in
            guard let entry = state.note(id) else { return }
            // Under the lock, so that it comes before what is said of its end; it only notes what is to be
            // written.
            self.journal?.begun(
                entry.transfer.kept(since: entry.begun), of: entry.transfer.part.principal)
        }
    }
}
