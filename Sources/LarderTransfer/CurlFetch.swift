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
    /// Its receiver has heard all, or is about to: there is nothing left to be asked of the loop.
    private let over = Atomic(false)

    init(id: UInt64, port: LoopPort?) {
        self.id = id
        self.port = port
    }

    /// Read before each call of the receiver: the command itself may still lie in the mailbox.
    var isCancelled: Bool { self.cancelled.load(ordering: .acquiring) }

    /// Nothing more is posted for it: its loop, which has let go of it, would be woken for nothing.
    func end() { self.over.store(true, ordering: .releasing) }

    func resume() { self.post(.resume(self.id)) }

    func cancel() {
        guard !self.cancelled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        self.post(.cancel(self.id))
    }

    func mayEndForAnother() { self.post(.mayEndForAnother(self.id)) }

    /// Its observer is suspended, or goes on.
    func suspensionChanged() { self.post(.suspensionChanged(self.id)) }

    /// The body source has something again.
    func contentReady() { self.post(.contentReady(self.id)) }

    private func post(_ command: TransferCommand) {
        guard !self.over.load(ordering: .acquiring) else { return }
        // A closed port has ended its fetches already, so a refused command needs no answer.
        _ = self.port?.post(command)
    }
}
