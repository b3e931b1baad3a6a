import CCurl
import Glibc
import LarderHTTP
import Synchronization

/// What other threads ask of a transfer loop.
enum TransferCommand: Sendable {
    case start(FetchOrder)
    /// The receiver takes back a `.pause`.
    case resume(UInt64)
    /// A body source that had nothing has something.
    case contentReady(UInt64)
    /// The observer of a fetch is suspended, or goes on; told where the loop asked for it.
    case suspensionChanged(UInt64)
    case cancel(UInt64)
    /// Nobody waits for a fetch: it may end where another waits for its connection.
    case mayEndForAnother(UInt64)
    case shutDown(@Sendable () -> Void)
}

/// A command and whom it is for.
struct TransferMessage: Sendable {
    let port: LoopPort
    let command: TransferCommand
}

/// A fetch on its way to its loop.
///
/// An object: as it goes from hand to hand, its request is not copied field by field.
final class FetchOrder: Sendable {
    let fetch: CurlFetch
    let request: Request
    /// The request's.
    let scheme: Scheme
    let content: (any BodySource)?
    let receiver: any UpstreamReceiver
    /// The receiver, where not a response is wanted but a bare connection.
    let dial: SocketDial?
    /// Somebody looks at what it takes.
    let isMeasured: Bool
    /// When it was given: the wall's clock; both are read only where it is measured.
    let begun: Timestamp
    let started: MonotonicTime

    init(
        fetch: CurlFetch, request: Request, content: (any BodySource)?,
        receiver: any UpstreamReceiver, dial: SocketDial?
    ) {
        self.fetch = fetch
        self.request = request
        self.scheme = request.uri.scheme
        self.content = content
        self.receiver = receiver
        self.dial = dial
        self.isMeasured = request.observer?.readsMeasurement == true
        self.begun = self.isMeasured ? .read() : Timestamp(seconds: 0)
        self.started = self.isMeasured ? .read() : MonotonicTime(nanoseconds: 0)
    }

    /// Whether a thread that is not the loop's may begin it: its client's code is not called for it,
    /// and it makes no handshake with its origin.
    var suitsGuests: Bool {
        self.content == nil && self.dial == nil && self.scheme == .http
    }

    /// Ends a fetch that no loop has begun.
    func fail(_ failure: UpstreamFailure) {
        if !self.fetch.isCancelled { self.receiver.upstream(failed: failure) }
        self.cancelled()
    }

    /// Ends a fetch that nobody measures, and that no loop has in hand any more.
    func answered(_ response: WholeResponse) {
        self.fetch.end()
        self.receiver.upstream(whole: response)
        self.request.observer?.transfer(measured: .none)
    }

    /// Ends a fetch that no loop has begun, and that nobody wants to hear of.
    func cancelled() {
        self.content?.cancel()
        self.request.observer?.transfer(measured: TransferMeasurement(begun: self.begun))
    }
}

/// Where other threads leave commands for the loops of a thread.
///
/// One array, swapped out at once. The thread is woken through its eventfd(2) only when it sleeps,
/// and once: under load a command costs a lock and an append. It also says who has the loops in hand
/// (`LoopOwnership`).
final class TransferMailbox: Sendable {
    private struct State {
        var messages: [TransferMessage] = []
        var ownership = LoopOwnership()
        /// Nothing more is taken: the thread has ended, or is told to.
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Written to when the thread must look into the mailbox, and never read (`Epoll`).
    ///
    /// Closed with the mailbox.
    let descriptor: Int32
    /// Where the thread waits for a guest to leave; read by it alone.
    private let door: Int32

    init() throws(TransferError) {
        let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { throw .system(.descriptor, "eventfd", errno) }
        let door = eventfd(0, Int32(EFD_CLOEXEC))
        guard door >= 0 else {
            let code = errno
            _ = Glibc.close(descriptor)
            throw .system(.descriptor, "eventfd", code)
        }
        self.descriptor = descriptor
        self.door = door
    }

    deinit {
        _ = Glibc.close(self.descriptor)
        _ = Glibc.close(self.door)
    }

    /// Leaves a command; false when the thread has ended, or is told to, and nobody will read it.
    func post(_ message: TransferMessage) -> Bool {
        let (accepted, mustWake) = self.state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.messages.append(message)
            return (true, state.ownership.posted())
        }
        if mustWake { Self.write(to: self.descriptor) }
        return accepted
    }

    /// Takes all commands, in exchange for an empty array whose room is used again; false when the
    /// thread has been retired.
    func take(into messages: inout [TransferMessage]) -> Bool {
        messages.removeAll(keepingCapacity: true)
        return self.state.withLock { state in
            swap(&state.messages, &messages)
            return !state.isClosed
        }
    }

    /// Ends the thread, of which nobody has made use.
    ///
    /// A command that comes after this is refused by `post`, one from before by the thread as its last
    /// act.
    func retire() {
        let mustWake = self.state.withLock { state in
            state.isClosed = true
            return state.ownership.posted()
        }
        if mustWake { Self.write(to: self.descriptor) }
    }

    /// Says that the thread is about to sleep; false when there are commands to see to first.
    ///
    /// - Parameter alarm: until when it sleeps at most.
    func fallAsleep(until alarm: MonotonicTime?) -> Bool {
        self.state.withLock { state in
            guard state.messages.isEmpty, !state.isClosed else { return false }
            state.ownership.park(until: alarm)
            return true
        }
    }

    /// Says that the thread has woken up, and waits until no guest is there.
    ///
    /// - Returns: whether it had to wait: what it woke up for may have changed.
    func wakeUp() -> Bool {
        if self.state.withLock({ $0.ownership.wake() }) { return false }
        var count: UInt64 = 0
        while unsafe read(self.door, &count, MemoryLayout<UInt64>.size) < 0, errno == EINTR {}
        return true
    }

    // MARK: Guests

    /// Lets a guest in, who has the loops to itself until it leaves; false where it must post what it
    /// wants done.
    func enter() -> Bool {
        self.state.withLock { state in
            guard !state.isClosed, state.messages.isEmpty else { return false }
            return state.ownership.enter()
        }
    }

    /// Gives the loops back.
    ///
    /// - Parameters:
    ///   - leavesWork: there is something that only the thread does.
    ///   - next: when the loops want to be looked at.
    func leave(leavesWork: Bool, next: MonotonicTime?) {
        let leaving = self.state.withLock { state in
            state.ownership.leave(
                leavesWork: leavesWork || !state.messages.isEmpty, next: next)
        }
        switch leaving {
        case .sleepsOn: break
        case .wakes: Self.write(to: self.descriptor)
        case .letIn: Self.write(to: self.door)
        }
    }

    /// Refuses further commands and takes the last.
    func close() -> [TransferMessage] {
        self.state.withLock { state in
            state.isClosed = true
            let messages = state.messages
            state.messages = []
            return messages
        }
    }

    private static func write(to descriptor: Int32) {
        var one: UInt64 = 1
        // Fails only when the counter is full, after more writes than there will be.
        _ = unsafe Glibc.write(descriptor, &one, MemoryLayout<UInt64>.size)
    }
}
