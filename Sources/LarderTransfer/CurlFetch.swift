import LarderHTTP
import Synchronization

/// The end of a fetch that its caller holds.
///
/// Everything else of it lives on its loop.
final class CurlFetch: UpstreamFetch {
    let id: UInt64
    /// nil: it could not even begin.
    private let port: LoopPort?
    private let cancelled = Atomic(false)

    init(id: UInt64, port: LoopPort?) {
        self.id = id
        self.port = port
    }

    /// Read before each call of the receiver: the command itself may still lie in the mailbox.
    var isCancelled: Bool { self.cancelled.load(ordering: .acquiring) }

    // A closed port has ended its fetches already, so a refused command needs no answer.

    func resume() {
        _ = self.port?.post(.resume(self.id))
    }

    func cancel() {
        guard !self.cancelled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = self.port?.post(.cancel(self.id))
    }

    /// Its observer is suspended, or goes on.
    func suspensionChanged() {
        _ = self.port?.post(.suspensionChanged(self.id))
    }

    /// The body source has something again.
    func contentReady() {
        _ = self.port?.post(.contentReady(self.id))
    }
}
