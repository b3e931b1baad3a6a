import CLinux

/// A thread for work that waits: for a disk, or for a name server.
package enum NamedThread {
    /// There is no thread to be had.
    package struct Failure: Error, Sendable {
        /// The number that pthread_create(3) gave.
        package let number: Int32
    }

    /// What to do where there is none (setrlimit(2), systemd.resource-control(5)).
    package static let remedy = "allow it more threads (ulimit -u, TasksMax=, pids.max)"

    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Starts a detached thread called `name` (at most 15 bytes), the signals of others blocked:
    /// they are the business of the main thread, but the one for a page of a map that cannot be
    /// read.
    package static func start(
        _ name: String, _ run: @escaping @Sendable () -> Void
    ) throws(Failure) {
        let body = unsafe Unmanaged.passRetained(Body(run: run))
        let number = unsafe larder_start_thread(
            name,
            { argument in
                guard let argument = unsafe argument else { return }
                unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
            }, body.toOpaque())
        guard number == 0 else {
            unsafe body.release()
            throw Failure(number: number)
        }
    }
}
