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
    case cancel(UInt64)
    case shutDown(@Sendable () -> Void)
}

/// A fetch on its way to its loop.
struct FetchOrder: Sendable {
    let fetch: CurlFetch
    let request: Request
    let content: (any BodySource)?
    let receiver: any UpstreamReceiver
    /// The receiver, where not a response is wanted but a bare connection.
    var dial: SocketDial?
}

/// Where other threads leave commands for a loop.
///
/// One array, swapped out at once. The loop is woken through its eventfd(2) only when it sleeps,
/// and once: under load a command costs a lock and an append.
final class TransferMailbox: Sendable {
    private struct State {
        var commands: [TransferCommand] = []
        var isAsleep = false
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Readable when the loop must look into the mailbox.
    ///
    /// Closed with the mailbox.
    let descriptor: Int32

    init() throws(TransferError) {
        let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { throw .system(.descriptor, "eventfd", errno) }
        self.descriptor = descriptor
    }

    deinit {
        _ = Glibc.close(self.descriptor)
    }

    /// Leaves a command; false when the loop has ended and nobody will read it.
    func post(_ command: TransferCommand) -> Bool {
        let (accepted, mustWake) = self.state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.commands.append(command)
            defer { state.isAsleep = false }
            return (true, state.isAsleep)
        }
        if mustWake { self.wake() }
        return accepted
    }

    /// Takes all commands.
    func take() -> [TransferCommand] {
        self.state.withLock { state in
            state.isAsleep = false
            let commands = state.commands
            state.commands = []
            return commands
        }
    }

    /// Says that the loop is about to sleep; false when there are commands to see to first.
    func fallAsleep() -> Bool {
        self.state.withLock { state in
            state.isAsleep = state.commands.isEmpty
            return state.isAsleep
        }
    }

    /// Refuses further commands and takes the last.
    func close() -> [TransferCommand] {
        self.state.withLock { state in
            state.isClosed = true
            let commands = state.commands
            state.commands = []
            return commands
        }
    }

    /// Empties the eventfd, so that it is not readable until the next wake.
    func clearWake() {
        var count: UInt64 = 0
        // EAGAIN, when it is empty already, is as good.
        _ = unsafe read(self.descriptor, &count, MemoryLayout<UInt64>.size)
    }

    private func wake() {
        var one: UInt64 = 1
        // Fails only when the counter is full, and then the loop has been woken.
        _ = unsafe write(self.descriptor, &one, MemoryLayout<UInt64>.size)
    }
}
