import CLinux
import Glibc
import LarderLMDB

/// A thread of the store's own, for work that waits for the disk.
enum NamedThread {
    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts a detached thread called `name` (at most 15 bytes), the signals of others blocked.
    static func start(
        _ name: String, _ run: @escaping @Sendable () -> Void
    ) throws(LMDBError) {
        let body = unsafe Unmanaged.passRetained(Body(name: name, run: run))
        var thread = pthread_t()
        // The thread inherits the mask: signals are the business of the main thread, but the one for
        // a page of the map that cannot be read.
        var foreign = sigset_t()
        var before = sigset_t()
        _ = unsafe larder_foreign_signals(&foreign)
        _ = unsafe pthread_sigmask(SIG_BLOCK, &foreign, &before)
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                NamedThread.nameThisThread(body.name)
                body.run()
                return nil
            }, body.toOpaque())
        _ = unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
        guard code == 0 else {
            unsafe body.release()
            throw LMDBError(returnCode: code, operation: "pthread_create")
        }
        _ = pthread_detach(thread)
    }

    /// Gives the thread the name that tools show, through proc(5): pthread_setname_np is not among
    /// what Swift imports of the C library.
    private static func nameThisThread(_ name: String) {
        let descriptor = unsafe open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { _ = close(descriptor) }
        let bytes = Array(name.utf8.prefix(15))
        // A thread without a name works as well.
        _ = unsafe write(descriptor, bytes, bytes.count)
    }
}
