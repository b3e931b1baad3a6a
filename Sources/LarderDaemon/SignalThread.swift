import CLinux
import Glibc
import LarderHTTP
import Synchronization

/// Hears the signals of the whole process, on a thread that is made once somebody wants to hear any.
///
/// ```
/// signal ──▶ handler, on any thread ──(pipe)──▶ thread "larder-signals" ──▶ each listener
/// ```
///
/// Nothing has to be made for a signal to be heard. The masks of other threads stay as they are, and a
/// child that is started has the default actions again, as a handler does not survive execve(2).
///
/// The thread and the pipe last as long as the process: a handler may be about to write.
enum SignalThread {
    private struct Listener: Sendable {
        let numbers: [CInt]
        let hears: @Sendable (CInt) -> Void
    }

    private struct State {
        var listeners: [Int: Listener] = [:]
        /// Of the listener that came last.
        var key = 0
    }

    private static let state = Mutex(State())
    /// Made when it is first asked for; false where there is no pipe or no thread to be had, and then for
    /// good.
    private static let isRunning = Self.begin()
    /// Where the handler writes: the signal's number, or 0 when there is a new listener.
    private static let bell = Atomic<CInt>(-1)

    /// In seconds; 0: no bound.
    private static let lastTime = Atomic<UInt32>(0)
    /// How many signals to stop have come.
    private static let stops = Atomic<UInt32>(0)

    /// Has SIGALRM end the process so many seconds behind the second SIGTERM or SIGINT (alarm(2)).
    ///
    /// At the limit of processes it may not end by itself: who is told by Dispatch waits there for a
    /// thread. To be called before `add`.
    static func bound(_ seconds: UInt32) {
        self.lastTime.store(seconds, ordering: .sequentiallyConsistent)
        // Whoever started the process may have had it ignored.
        _ = self.handle(SIGALRM, SIG_DFL)
    }

    /// Takes signals from their default action, for the rest of the process's life, and has a
    /// listener hear them; once this returns, none is lost.
    ///
    /// - Parameter hears: called with each, one after the other; must not block.
    /// - Returns: what to give to `remove`; nil where there is no thread to be had.
    static func add(_ numbers: [CInt], _ hears: @escaping @Sendable (CInt) -> Void) -> Int? {
        guard self.isRunning else { return nil }
        let key = self.state.withLock { state in
            state.key += 1
            state.listeners[state.key] = Listener(numbers: numbers, hears: hears)
            return state.key
        }
        guard numbers.allSatisfy({ self.handle($0, self.note) }) else {
            self.remove(key)
            return nil
        }
        self.ring(0)
        return key
    }

    /// Has a listener hear nothing more, but what is being told to it now.
    static func remove(_ key: Int) {
        self.state.withLock { state in
            state.listeners[key] = nil
        }
    }

    /// Makes the pipe and the thread; false when one of them is not to be had.
    private static func begin() -> Bool {
        var ends: [CInt] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return false }
        let reader = ends[0]
        let writer = ends[1]
        // Made here, and not in the handler.
        _ = (self.lastTime.load(ordering: .relaxed), self.stops.load(ordering: .relaxed))
        do throws(NamedThread.Failure) {
            if fcntl(reader, F_SETFD, FD_CLOEXEC) == 0, fcntl(writer, F_SETFD, FD_CLOEXEC) == 0,
                fcntl(writer, F_SETFL, O_NONBLOCK) == 0
            {
                try NamedThread.start("larder-signals") { self.listen(reader) }
                self.bell.store(writer, ordering: .sequentiallyConsistent)
                return true
            }
        } catch {
            // Whoever asked hears signals in another way.
        }
        close(reader)
        close(writer)
        return false
    }

    private static func handle(_ number: CInt, _ handler: __sighandler_t?) -> Bool {
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = handler
        action.sa_flags = CInt(SA_RESTART)
        return unsafe sigaction(number, &action, nil) == 0
    }

    /// The handler, which does no more than is allowed in one (signal-safety(7)).
    private static let note: @convention(c) (CInt) -> Void = { number in
        let before = errno
        SignalThread.count(number)
        SignalThread.ring(number)
        errno = before
    }

    private static func count(_ number: CInt) {
        let time = self.lastTime.load(ordering: .sequentiallyConsistent)
        guard time > 0, number == SIGTERM || number == SIGINT else { return }
        let count = self.stops.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
        if count == 2 { _ = alarm(time) }
    }

    /// Never waits: where the pipe is full, thousands of signals have not been heard yet.
    private static func ring(_ number: CInt) {
        var byte = UInt8(truncatingIfNeeded: number)
        _ = unsafe write(self.bell.load(ordering: .sequentiallyConsistent), &byte, 1)
    }

    /// The life of the thread: neither end of the pipe is ever closed.
    private static func listen(_ reader: CInt) {
        var byte: UInt8 = 0
        while true {
            let count = unsafe read(reader, &byte, 1)
            if count == 1 {
                if byte == 0 { self.unblock() } else { self.tell(CInt(byte)) }
            } else if count == 0 || errno != EINTR {
                return
            }
        }
    }

    /// Lets the signals come to this thread, and SIGALRM, which has to find one that it can end the
    /// process by (`bound`).
    ///
    /// Whoever started the process may have blocked them in all others.
    private static func unblock() {
        let numbers = self.state.withLock { state in
            state.listeners.values.flatMap { $0.numbers }
        }
        var signals = sigset_t()
        guard unsafe sigemptyset(&signals) == 0 else { return }
        for number in numbers + [SIGALRM] { unsafe sigaddset(&signals, number) }
        // It fails for its first argument alone.
        unsafe pthread_sigmask(CInt(SIG_UNBLOCK), &signals, nil)
    }

    private static func tell(_ number: CInt) {
        let listeners = self.state.withLock { state in
            state.listeners.values.filter { $0.numbers.contains(number) }
        }
        for listener in listeners { listener.hears(number) }
    }
}
