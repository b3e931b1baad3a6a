import LarderHTTP
import Synchronization

/// The address of a loop: what other threads know of it.
///
/// The loop itself is made on its thread when the first command comes, and may go and come again
/// while nothing is under way.
final class LoopPort: Sendable {
    /// Tells the loops of a process apart; never 0.
    let number: UInt32
    let configuration: TransferConfiguration
    let counters = TransferCounters()
    private let mailbox: TransferMailbox
    private let closed = Atomic(false)

    private static let numbers = Atomic<UInt32>(1)

    init(_ configuration: TransferConfiguration, mailbox: TransferMailbox) {
        var number = Self.numbers.wrappingAdd(1, ordering: .relaxed).oldValue
        if number == 0 { number = Self.numbers.wrappingAdd(1, ordering: .relaxed).oldValue }
        self.number = number
        self.configuration = configuration
        self.mailbox = mailbox
    }

    /// Shut down: what is begun from now on fails.
    var isClosed: Bool { self.closed.load(ordering: .acquiring) }

    /// Leaves a command; false when nobody will see to it.
    func post(_ command: TransferCommand) -> Bool {
        guard !self.isClosed else { return false }
        return self.mailbox.post(TransferMessage(port: self, command: command))
    }

    /// Has the loop end; false when that was asked before, or there is no thread any more.
    func shutDown(_ completion: @escaping @Sendable () -> Void) -> Bool {
        guard !self.closed.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        return self.mailbox.post(TransferMessage(port: self, command: .shutDown(completion)))
    }
}
