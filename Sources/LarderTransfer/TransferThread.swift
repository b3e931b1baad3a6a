import CCurl
import Glibc

/// The thread of a transfer loop.
enum TransferThread {
    /// Hands a loop over to a thread of its own, which runs it until it is shut down.
    ///
    /// The thread is detached: it says that it has ended through the completions of the loop.
    static func start(_ loop: TransferLoop, index: Int) throws(TransferError) {
        var attributes = pthread_attr_t()
        guard unsafe pthread_attr_init(&attributes) == 0 else {
            throw TransferError(.thread, detail: "pthread_attr_init failed")
        }
        defer { _ = unsafe pthread_attr_destroy(&attributes) }
        _ = unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        // The reference goes with the pointer: nobody else has the loop from here on, which is what
        // lets an object that is not Sendable change threads.
        let context = unsafe Unmanaged.passRetained(loop).toOpaque()
        var thread = pthread_t()
        let code = unsafe pthread_create(&thread, &attributes, Self.body, context)
        guard code == 0 else {
            unsafe Unmanaged<TransferLoop>.fromOpaque(context).release()
            throw .system(.thread, "pthread_create", code)
        }
        // For people who look at the process; at most 15 bytes.
        _ = unsafe pthread_setname_np(thread, "larder-fetch-\(index % 100)")
    }

    private static let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
        {
            context in
            guard let context = unsafe context else { return nil }
            Self.blockSignals()
            for completion in unsafe Self.run(context) { completion() }
            return nil
        }

    /// Runs the loop and frees it before its completions are called.
    private static func run(_ context: UnsafeMutableRawPointer) -> [@Sendable () -> Void] {
        let loop = unsafe Unmanaged<TransferLoop>.fromOpaque(context).takeRetainedValue()
        loop.run()
        return loop.takeCompletions()
    }

    /// Blocks every signal on the calling thread.
    ///
    /// The process's signals are for other threads, and SIGPIPE, which OpenSSL's writes can raise,
    /// for nobody. Threads that libcurl makes to resolve names inherit this.
    private static func blockSignals() {
        var set = sigset_t()
        _ = unsafe sigfillset(&set)
        _ = unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }
}
