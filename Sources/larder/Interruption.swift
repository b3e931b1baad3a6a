import Glibc
import Synchronization

/// How a command ends that is interrupted (SIGINT, SIGTERM, SIGHUP): at once, but never inside of a
/// read transaction, and with the terminal's line as it was.
///
/// A process that dies inside of a read transaction leaves its slot in LMDB's table of readers
/// behind, and pages that it saw cannot be used again until a writer clears the table. So the signal
/// waits for the end of the step; a second one does not. Either way the process dies by its signal,
/// as shells expect, which tell of it as 128 and its number.
enum Interruption {
    private static let isHeld = Atomic(false)
    private static let pending = Atomic<CInt>(0)
    /// Whether a line is to be taken away from the terminal behind standard error.
    static let hasLine = Atomic(false)

    /// Begins to listen.
    ///
    /// A signal that is ignored now, as by nohup(1), stays ignored.
    static func listen() {
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var action = sigaction()
            guard unsafe sigaction(number, nil, &action) == 0,
                unsafe !SignalRelay.isIgnored(action.__sigaction_handler.sa_handler)
            else { continue }
            unsafe action.__sigaction_handler.sa_handler = Self.handler
            // The second signal finds the default action; and the handler may raise its own.
            action.sa_flags = CInt(bitPattern: UInt32(SA_RESETHAND)) | CInt(SA_NODEFER)
            _ = unsafe sigaction(number, &action, nil)
        }
    }

    /// Does no more than is allowed in one (signal-safety(7)).
    private static let handler: @convention(c) (CInt) -> Void = { number in
        if Interruption.isHeld.load(ordering: .sequentiallyConsistent) {
            Interruption.pending.store(number, ordering: .sequentiallyConsistent)
        } else {
            Interruption.die(number)
        }
    }

    /// Takes the line away and dies by the signal, whose action is the default one by now.
    private static func die(_ number: CInt) {
        if Self.hasLine.load(ordering: .sequentiallyConsistent) {
            // "\r", ESC, "[K", in the order of a little-endian number: no array is made here.
            var bytes: UInt32 = 0x4B5B_1B0D
            _ = unsafe write(STDERR_FILENO, &bytes, 4)
        }
        Self.unblock(number)
        raise(number)
    }

    /// Lets a signal come to this thread: those that libdispatch makes take none.
    static func unblock(_ number: CInt) {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, number)
        unsafe pthread_sigmask(CInt(SIG_UNBLOCK), &signals, nil)
    }

    /// Runs `body`, which a signal must not end, and lets one that came meanwhile do so afterwards.
    static func held<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        Self.isHeld.store(true, ordering: .sequentiallyConsistent)
        defer {
            Self.isHeld.store(false, ordering: .sequentiallyConsistent)
            let number = Self.pending.load(ordering: .sequentiallyConsistent)
            if number != 0 { Self.die(number) }
        }
        return try body()
    }
}
