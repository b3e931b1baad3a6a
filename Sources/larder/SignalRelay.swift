import Dispatch
import Glibc
import Synchronization

/// Passes signals on to a child process from the moment it exists to the moment it has ended.
///
/// ```
/// start (signals are kept) ──▶ began(child) (kept ones and new ones go to it) ──▶ ended ──▶ stop
/// ```
///
/// One at a time in a process: signals are the whole process's. libdispatch's own signal sources are
/// not used, because they let go of a signal at a moment that nobody is told.
final class SignalRelay: Sendable {
    private enum State {
        case waiting(kept: [Int32])
        case passing(pid_t)
        case ended
    }

    /// Where the handler writes; -1 when nobody reads.
    private static let pipe = Atomic<CInt>(-1)

    private let state = Mutex(State.waiting(kept: []))
    private let signals: [Int32]
    private let writer: CInt

    /// Begins to listen.
    ///
    /// A signal that is ignored now, as by nohup(1), stays ignored, for the child, too; those that
    /// are handled become default ones in the child when it executes its program.
    ///
    /// - Returns: nil when there is no pipe to be had. `stop` must follow.
    static func start(_ signals: [Int32]) -> SignalRelay? {
        var ends: [CInt] = [-1, -1]
        guard unsafe Glibc.pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        Self.pipe.store(ends[1], ordering: .sequentiallyConsistent)
        let heard = signals.filter { number in
            let before = signal(number, Self.note)
            guard Self.isIgnored(before) else { return true }
            _ = signal(number, SIG_IGN)
            return false
        }
        let relay = SignalRelay(heard, writer: ends[1])
        let reader = ends[0]
        DispatchQueue.global().async { relay.listen(reader) }
        return relay
    }

    private init(_ signals: [Int32], writer: CInt) {
        self.signals = signals
        self.writer = writer
    }

    /// The handler: notes the signal and returns, as little as is allowed in one (signal-safety(7)).
    private static let note: @convention(c) (CInt) -> Void = { number in
        let before = errno
        var byte = UInt8(truncatingIfNeeded: number)
        _ = unsafe write(SignalRelay.pipe.load(ordering: .sequentiallyConsistent), &byte, 1)
        errno = before
    }

    /// Whether a signal with this action does nothing, as whoever started the process wanted it.
    static func isIgnored(_ action: (@convention(c) (CInt) -> Void)?) -> Bool {
        unsafe unsafeBitCast(action, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Reads what the handler noted, until `stop` closes the pipe.
    private func listen(_ reader: CInt) {
        var byte: UInt8 = 0
        while true {
            let count = unsafe read(reader, &byte, 1)
            if count == 1 {
                self.receive(Int32(byte))
            } else if count == 0 || errno != EINTR {
                break
            }
        }
        close(reader)
    }

    func began(_ child: pid_t) {
        self.state.withLock { state in
            guard case .waiting(let kept) = state else { return }
            state = .passing(child)
            for signal in kept { kill(child, signal) }
        }
    }

    /// To be called before the child is reaped: after that its number may be another's.
    func ended() { self.state.withLock { $0 = .ended } }

    /// Listens no more; the signals have their default actions again.
    func stop() {
        for number in self.signals { _ = signal(number, SIG_DFL) }
        Self.pipe.store(-1, ordering: .sequentiallyConsistent)
        close(self.writer)
    }

    /// The terminal sends its own signals (^C, ^\) to all of the foreground, to the child as well as
    /// to us: passing them on would make two of one.
    private func receive(_ signal: Int32) {
        let isOfTerminal = signal == SIGINT || signal == SIGQUIT
        if isOfTerminal, tcgetpgrp(STDERR_FILENO) == getpgrp() { return }
        // Under the lock, so that the child cannot be reaped in between; kill(2) does not wait.
        self.state.withLock { state in
            switch state {
            case .waiting(let kept): state = .waiting(kept: kept + [signal])
            case .passing(let child): kill(child, signal)
            case .ended: break
            }
        }
    }
}
