import LarderHTTP
import Synchronization

/// The end of a fetch that its caller holds.
///
/// Everything else of it lives on its loop.
final class CurlFetch: UpstreamFetch {
    let id: UInt64
    private let mailbox: TransferMailbox
    private let cancelled = Atomic(false)

    init(id: UInt64, mailbox: TransferMailbox) {
        self.id = id
        self.mailbox = mailbox
    }

    /// Read before each call of the receiver: the command itself may still lie in the mailbox.
    var isCancelled: Bool { self.cancelled.load(ordering: .acquiring) }

    // A closed mailbox has ended its fetches already, so a refused command needs no answer.

    func resume() {
        _ = self.mailbox.post(.resume(self.id))
    }

    func cancel() {
        guard !self.cancelled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = self.mailbox.post(.cancel(self.id))
    }

    /// The body source has something again.
    func contentReady() {
        _ = self.mailbox.post(.contentReady(self.id))
    }
}
