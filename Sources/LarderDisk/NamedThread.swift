import CLinux
import LarderLMDB

/// A thread of the store's own, for work that waits for the disk.
enum NamedThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Starts a detached thread called `name` (at most 15 bytes), the signals of others blocked:
    /// they are the business of the main thread, but the one for a page of the map that cannot be
    /// read.
    static func start(
        _ name: String, _ run: @escaping @Sendable () -> Void
    ) throws(LMDBError) {
        let body = unsafe Unmanaged.passRetained(Body(run: run))
        let code = unsafe larder_start_thread(
            name,
            { argument in
                guard let argument = unsafe argument else { return }
                unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
            }, body.toOpaque())
        guard code == 0 else {
            unsafe body.release()
            throw LMDBError(returnCode: code, operation: "pthread_create")
        }
    }
}
