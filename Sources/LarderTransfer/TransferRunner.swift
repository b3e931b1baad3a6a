import Glibc
import LarderHTTP

/// The loops of one thread, on one epoll descriptor.
///
/// ```
/// take commands ─▶ each loop that has something to do: one turn ─▶ sleep ─▶ sockets ─┐
///      ▲─────────────────────────────────────────────────────────────────────────────┘
/// ```
///
/// Nothing that a loop does in a turn is unbounded, and each gets one turn a round: a busy loop does
/// not starve the others. A loop costs descriptors, so of those that are idle no more are kept
/// than the process can spare (`loopLimit`), and none for ever; what goes is made again when it is asked
/// for something.
///
/// Not `Sendable`. Handed to its thread by `TransferThread`, and confined to that from then on.
final class TransferRunner {
    /// How many loops there are at most before idle ones are let go of, the one longest idle first.
    private let loopLimit: Int

    /// The usual limit of this process.
    static let usualLoopLimit: Int = {
        var limit = rlimit()
        let code = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return TransferRunner.loopLimit(descriptors: code == 0 ? UInt64(limit.rlim_cur) : 0)
    }()

    /// How many loops a thread may have where the process may have so many descriptors (getrlimit(2)).
    ///
    /// An idle one has some three, its connection among them, and there are two threads: a third of what
    /// there is goes to them. Too few would cost a program with many sessions its connections.
    static func loopLimit(descriptors: UInt64) -> Int {
        Swift.max(48, Swift.min(512, Int(clamping: descriptors / 20)))
    }

    /// Descriptors of a loop beside its sockets: libcurl's pair to wake it, which we do not use.
    private static let descriptorsOfLoop = 2

    /// Whether idle loops have to go before there is another one: also where a few of them keep many
    /// connections.
    private var isFull: Bool {
        let loops = self.loops
        guard loops.count < self.loopLimit else { return true }
        let descriptors = loops.values.reduce(0) {
            $0 + Self.descriptorsOfLoop + $1.poller.count
        }
        return descriptors >= 3 * self.loopLimit
    }

    let mailbox: TransferMailbox
    let epoll: Epoll
    /// The buffers of all loops: each of many would hold 8 MiB for long.
    private let pieces = PieceBuffers()
    private let tally = TransferTally()
    /// libcurl's, whoever has the loops in hand.
    let memory = CurlMemory()
    private var loops: [UInt32: TransferLoop] = [:]
    /// Loops that have something to do in the next round.
    private var due: [TransferLoop] = []
    /// Those of this round.
    private var turning: [TransferLoop] = []
    /// When the others want to be looked at.
    private let timetable = Timetable<TransferLoop>()
    private var messages: [TransferMessage] = []
    /// Ends with its only loop; otherwise it lives as long as the process.
    private let endsWithLoop: Bool
    private var isOver = false
    private var completions: [@Sendable () -> Void] = []

    init(
        endsWithLoop: Bool, loopLimit: Int = TransferRunner.usualLoopLimit
    ) throws(TransferError) {
        self.loopLimit = loopLimit
        self.mailbox = try TransferMailbox()
        self.epoll = try Epoll(waking: self.mailbox.descriptor)
        self.endsWithLoop = endsWithLoop
    }

    /// Makes the loop of a port.
    @discardableResult
    func open(_ port: LoopPort) throws(TransferError) -> TransferLoop {
        while self.isFull, self.dropOldest() {}
        let loop = try TransferLoop(
            port, epoll: self.epoll, pieces: self.pieces, tally: self.tally)
        self.setLoop(port.number, loop)
        return loop
    }

    /// Runs until its only loop has been shut down, or the thread was retired.
    ///
    /// Called once, by its thread.
    func run() {
        self.memory.lend { self.turnRounds() }
    }

    private func turnRounds() {
        while !self.isOver {
            let now = MonotonicTime.read()
            if !self.distribute() { break }
            while let loop = self.timetable.first, loop.moment <= now {
                self.timetable.leave(loop)
                self.markDue(loop)
            }
            self.turn(now)
            if self.isOver { break }
            // Now that the loops are gone.
            if !self.completions.isEmpty {
                for completion in self.takeCompletions() { completion() }
            }
            self.sleep()
        }
        for message in self.mailbox.close() { self.refuse(message) }
    }

    /// Who waits for the end; to be called when the runner itself is gone.
    func takeCompletions() -> [@Sendable () -> Void] {
        exchange(&self.completions, with: [])
    }

    // MARK: A round

    /// Hands commands to their loops; false where the thread has been retired, and they are
    /// refused.
    private func distribute() -> Bool {
        var messages = exchange(&self.messages, with: [])
        let isWanted = self.mailbox.take(into: &messages)
        for message in messages {
            if isWanted { self.distribute(message) } else { self.refuse(message) }
        }
        messages.removeAll(keepingCapacity: true)
        self.messages = messages
        return isWanted
    }

    private func distribute(_ message: TransferMessage) {
        if let loop = self.loop(message.port.number) {
            loop.accept(message.command)
            self.markDue(loop)
            return
        }
        switch message.command {
        case .start where !message.port.isClosed:
            do throws(TransferError) {
                let loop = try self.open(message.port)
                loop.accept(message.command)
                self.markDue(loop)
            } catch {
                self.refuse(message, TransferLoop.internalFailure(error))
            }
        case .start, .shutDown:
            self.refuse(message)
        case .resume, .cancel, .contentReady, .suspensionChanged, .mayEndForAnother:
            break  // Of a fetch that is over.
        }
    }

    /// Answers a command for which there is no loop.
    private func refuse(
        _ message: TransferMessage, _ failure: UpstreamFailure = TransferLoop.shuttingDown
    ) {
        switch message.command {
        case .start(let order): order.fail(failure)
        case .shutDown(let completion):
            self.completions = self.completions + [completion]
        case .resume, .cancel, .contentReady, .suspensionChanged, .mayEndForAnother: break
        }
    }

    private func markDue(_ loop: TransferLoop) {
        guard !loop.isDue else { return }
        loop.isDue = true
        var due = exchange(&self.due, with: [])
        due.append(loop)
        self.due = due
    }

    private func turn(_ now: MonotonicTime) {
        let room = exchange(&self.turning, with: [])
        var turning = exchange(&self.due, with: room)
        for loop in turning {
            loop.isDue = false
            guard self.loop(loop.port.number) === loop else { continue }
            loop.turn(now)
            if loop.isOver {
                self.end(loop)
            } else {
                self.schedule(loop, now)
            }
        }
        turning.removeAll(keepingCapacity: true)
        self.turning = turning
    }

    private func schedule(_ loop: TransferLoop, _ now: MonotonicTime) {
        guard let next = loop.next else { return self.timetable.leave(loop) }
        if next <= now {
            self.markDue(loop)
        } else {
            self.timetable.enter(loop, at: next)
        }
    }

    // MARK: Guests

    /// Begins a fetch on the thread of whoever wants it; called by a guest, while it is one.
    ///
    /// Refused where the thread has to begin it: there is no connection that it could go out on, or
    /// sockets are ready, which come first (`SocketPoller.sawIdle`).
    ///
    /// - Parameter answer: all of the answer, where it was there before the guest was to leave: the fetch is
    ///   over then.
    /// - Returns: false where it was refused.
    func begin(
        _ order: FetchOrder, at port: LoopPort, answer: inout WholeResponse?
    ) -> Bool {
        guard let loop = self.loop(port.number) else { return false }
        let liesStill = loop.poller.liesStill()
        guard loop.mayHaveGuest, loop.isPlainWay(of: order), liesStill || !self.epoll.isReady else {
            return false
        }
        let now = MonotonicTime.read()
        loop.begin(asGuest: order, now, isAlone: self.tally.count == 0, answer: &answer)
        if loop.isTouched { self.markDue(loop) }
        self.schedule(loop, now)
        return true
    }

    /// Gives the loops back to the thread.
    func leave() {
        self.mailbox.leave(leavesWork: !self.due.isEmpty, next: self.timetable.first?.moment)
    }

    private func sleep() {
        let alarm = self.timetable.first?.moment
        var count: Int
        if self.due.isEmpty, self.mailbox.fallAsleep(until: alarm) {
            // From here on a guest may have the loops.
            let timeout = alarm.map { MonotonicTime.read().milliseconds(until: $0) } ?? -1
            count = self.epoll.wait(milliseconds: timeout)
            if self.mailbox.wakeUp() { count = self.epoll.wait(milliseconds: 0) }
        } else {
            count = self.epoll.wait(milliseconds: 0)
        }
        for index in 0..<count {
            guard let ready = self.epoll.ready(index), let loop = self.loop(ready.owner) else {
                continue
            }
            loop.ready(ready.descriptor, ready.events)
            self.markDue(loop)
        }
    }

    // MARK: The ends of loops

    private func end(_ loop: TransferLoop) {
        self.setLoop(loop.port.number, nil)
        self.timetable.leave(loop)
        // It tells receivers: only then is it looked at what there is.
        let ended = loop.tearDown()
        self.completions = self.completions + ended
        if self.endsWithLoop { self.isOver = true }
    }

    private func loop(_ number: UInt32) -> TransferLoop? {
        let loops = self.loops
        return loops[number]
    }

    private func setLoop(_ number: UInt32, _ loop: TransferLoop?) {
        var loops = exchange(&self.loops, with: [:])
        loops[number] = loop
        self.loops = loops
    }

    /// - Returns: whether there was an idle one.
    private func dropOldest() -> Bool {
        let idle = self.loops.values.filter(\.isIdle)
        guard let oldest = idle.min(by: { $0.idleSince < $1.idleSince }) else { return false }
        self.end(oldest)
        return true
    }
}
