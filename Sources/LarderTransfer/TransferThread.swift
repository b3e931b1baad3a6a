import CLinux
import Synchronization

/// The threads of transfer runners.
enum TransferThread {
    /// Hands a runner over to a thread of its own, which runs it until it is over.
    ///
    /// The thread is detached: it says that it has ended through the completions of the runner. The
    /// signals of others are blocked there: the process's are for other threads, and SIGPIPE, which
    /// OpenSSL's writes can raise, for nobody. Threads that libcurl makes to resolve names inherit
    /// this, but for those of a transfer that a guest begins, and that finds its connection gone:
    /// they have the guest's.
    ///
    /// - Parameter name: for people who look at the process; at most 15 bytes.
    static func start(_ runner: TransferRunner, name: String) throws(TransferError) {
        // The reference goes with the pointer: nobody else has the runner from here on but a
        // `GuestEntrance`, which is what lets an object that is not Sendable change threads.
        let runner = unsafe Unmanaged.passRetained(runner)
        let code = unsafe larder_start_thread(
            name,
            { context in
                guard let context = unsafe context else { return }
                for completion in unsafe TransferThread.run(context) { completion() }
            }, runner.toOpaque())
        guard code == 0 else {
            unsafe runner.release()
            throw .system(.thread, "pthread_create", code)
        }
    }

    /// Runs the runner and frees it before its completions are called.
    private static func run(_ context: UnsafeMutableRawPointer) -> [@Sendable () -> Void] {
        let runner = unsafe Unmanaged<TransferRunner>.fromOpaque(context).takeRetainedValue()
        runner.run()
        return runner.takeCompletions()
    }
}

/// The threads that upstreams share.
///
/// Each is started when it is first asked for, before it is in the table: no lock is held
/// meanwhile. Of two that were started for the same place, one is ended at once.
final class SharedTransferThreads: Sendable {
    /// The threads of this process, which live as long as it does.
    static let ofProcess = SharedTransferThreads(named: "larder")

    /// How many there are at most, but for that of FTP.
    static let limit = 2

    private struct State {
        var entrances: [GuestEntrance] = []
        var next = 0
        /// How many threads were started: of two for one place, each has a name of its own.
        var starts = 0
        /// The way to the one that speaks with FTP servers.
        var ftp: TransferMailbox?

        /// The next one in turn; nil where that is still to be started.
        mutating func takeTurn() -> GuestEntrance? {
            guard self.next < self.entrances.count else { return nil }
            defer { self.next = (self.next + 1) % SharedTransferThreads.limit }
            return self.entrances[self.next]
        }
    }

    private let state = Mutex(State())
    private let name: String

    /// - Parameter name: what the names of the threads begin with; at most 6 bytes.
    init(named name: String) {
        self.name = name
    }

    /// The way to one of the threads, to each in turn.
    func entrance() throws(TransferError) -> GuestEntrance {
        let (started, number) = self.state.withLock { state -> (GuestEntrance?, Int) in
            if let entrance = state.takeTurn() { return (entrance, 0) }
            defer { state.starts += 1 }
            return (nil, state.starts)
        }
        if let started { return started }
        let runner = try TransferRunner(endsWithLoop: false)
        // Before the runner is its thread's.
        let fresh = GuestEntrance(runner)
        try TransferThread.start(runner, name: "\(self.name)-loads-\(number)")
        let entrance = self.state.withLock { state in
            if let entrance = state.takeTurn() { return entrance }
            state.entrances.append(fresh)
            return state.takeTurn() ?? fresh
        }
        if entrance !== fresh { fresh.mailbox.retire() }
        return entrance
    }

    /// The way to the one thread for FTP: see `CurlUpstream`.
    func ftpMailbox() throws(TransferError) -> TransferMailbox {
        if let started = self.state.withLock({ $0.ftp }) { return started }
        let runner = try TransferRunner(endsWithLoop: false)
        let fresh = runner.mailbox
        try TransferThread.start(runner, name: "\(self.name)-ftp")
        let mailbox = self.state.withLock { state in
            let mailbox = state.ftp ?? fresh
            state.ftp = mailbox
            return mailbox
        }
        if mailbox !== fresh { fresh.retire() }
        return mailbox
    }
}
