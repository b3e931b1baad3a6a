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
    let limits: TransferLimits
    private let mailbox: TransferMailbox
    /// Where fetches are begun on their callers' threads; nil: all go through the mailbox.
    private let entrance: GuestEntrance?
    private let closed = Atomic(false)

    private static let numbers = Atomic<UInt32>(1)

    init(
        _ configuration: TransferConfiguration, mailbox: TransferMailbox,
        entrance: GuestEntrance? = nil, limits: TransferLimits = TransferLimits()
    ) {
        var number = Self.numbers.wrappingAdd(1, ordering: .relaxed).oldValue
        if number == 0 { number = Self.numbers.wrappingAdd(1, ordering: .relaxed).oldValue }
        self.number = number
        self.configuration = configuration
        self.mailbox = mailbox
        self.entrance = entrance
        self.limits = limits
    }

    /// Shut down: what is begun from now on fails.
    var isClosed: Bool { self.closed.load(ordering: .acquiring) }

    /// Begins a fetch: here and now where the loop sleeps and nothing stands against it, else by a
    /// command; false when nobody will see to it.
    func begin(_ order: FetchOrder) -> Bool {
        if let entrance = self.entrance, order.suitsGuests, !self.isClosed,
            entrance.begin(order, at: self)
        {
            return true
        }
        return self.post(.start(order))
    }

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
