import CCurl
import CLinux
import Glibc
import Synchronization

/// The threads of transfer runners.
enum TransferThread {
    /// Hands a runner over to a thread of its own, which runs it until it is over.
    ///
    /// The thread is detached: it says that it has ended through the completions of the runner.
    ///
    /// - Parameter name: for people who look at the process; at most 15 bytes.
    static func start(_ runner: TransferRunner, name: String) throws(TransferError) {
        var attributes = pthread_attr_t()
        guard unsafe pthread_attr_init(&attributes) == 0 else {
            throw TransferError(.thread, detail: "pthread_attr_init failed")
        }
        defer { _ = unsafe pthread_attr_destroy(&attributes) }
        _ = unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        // The reference goes with the pointer: nobody else has the runner from here on but a
        // `GuestEntrance`, which is what lets an object that is not Sendable change threads.
        let context = unsafe Unmanaged.passRetained(runner).toOpaque()
        var thread = pthread_t()
        let code = unsafe pthread_create(&thread, &attributes, Self.body, context)
        guard code == 0 else {
            unsafe Unmanaged<TransferRunner>.fromOpaque(context).release()
            throw .system(.thread, "pthread_create", code)
        }
        _ = unsafe pthread_setname_np(thread, name)
    }

    // MARK: Threads that upstreams share

    private struct Shared {
        var entrances: [GuestEntrance] = []
        var next = 0
        /// Of the one that speaks with FTP servers.
        var ftp: TransferMailbox?
    }

    /// How many at most, but for that of FTP; each is started when it is first asked for, and then lives
    /// as long as the process.
    private static let sharedLimit = 2
    private static let shared = Mutex(Shared())

    /// The way to one of the threads that upstreams share, to each in turn.
    ///
    /// Threads are made under the lock: two callers would else make one too many.
    static func sharedEntrance() throws(TransferError) -> GuestEntrance {
        try Self.shared.withLock { shared throws(TransferError) in
            let index = shared.next
            if index >= shared.entrances.count {
                let runner = try TransferRunner(endsWithLoop: false)
                try Self.start(runner, name: "larder-loads-\(index)")
                shared.entrances.append(GuestEntrance(runner))
            }
            shared.next = (index + 1) % Self.sharedLimit
            return shared.entrances[index]
        }
    }

    /// The way to the one thread for FTP that upstreams share: see `CurlUpstream`.
    static func sharedFTPMailbox() throws(TransferError) -> TransferMailbox {
        try Self.shared.withLock { shared throws(TransferError) in
            if let mailbox = shared.ftp { return mailbox }
            let runner = try TransferRunner(endsWithLoop: false)
            let mailbox = runner.mailbox
            try Self.start(runner, name: "larder-ftp")
            shared.ftp = mailbox
            return mailbox
        }
    }

    // MARK: The body

    private static let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
        {
            context in
            guard let context = unsafe context else { return nil }
            Self.blockSignals()
            for completion in unsafe Self.run(context) { completion() }
            return nil
        }

    /// Runs the runner and frees it before its completions are called.
    private static func run(_ context: UnsafeMutableRawPointer) -> [@Sendable () -> Void] {
        let runner = unsafe Unmanaged<TransferRunner>.fromOpaque(context).takeRetainedValue()
        runner.run()
        return runner.takeCompletions()
    }

    /// Blocks the signals of others on the calling thread.
    ///
    /// The process's signals are for other threads, and SIGPIPE, which OpenSSL's writes can raise,
    /// for nobody. Threads that libcurl makes to resolve names inherit this, but for those of a transfer
    /// that a guest begins, and that finds its connection gone: they have the guest's.
    private static func blockSignals() {
        var set = sigset_t()
        _ = unsafe larder_foreign_signals(&set)
        _ = unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }
}
