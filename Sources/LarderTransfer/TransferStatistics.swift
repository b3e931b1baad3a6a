import Synchronization

/// What an upstream is doing and has done.
///
/// Each number is read by itself: they may disagree by what happened in between.
package struct TransferStatistics: Hashable, Sendable {
    /// Fetches under way, those that wait for a connection included.
    package var openTransfers = 0
    /// Sockets to origins, in use or idle.
    package var openConnections = 0
    package var transfersStarted: UInt64 = 0
    package var connectionsOpened: UInt64 = 0
    /// Fetches that began on their callers' threads.
    package var begunByGuests: UInt64 = 0
    /// Fetches that had to wait until a name could be looked up for them.
    package var lookupsDelayed: UInt64 = 0

    package init() {}
}

/// The counters of one loop: written by whoever has it, read by any.
final class TransferCounters: Sendable {
    private let openTransfers = Atomic(0)
    private let openConnections = Atomic(0)
    private let transfersStarted = Atomic<UInt64>(0)
    private let connectionsOpened = Atomic<UInt64>(0)
    private let begunByGuests = Atomic<UInt64>(0)
    private let lookupsDelayed = Atomic<UInt64>(0)

    func transferStarted() {
        self.openTransfers.wrappingAdd(1, ordering: .relaxed)
        self.transfersStarted.wrappingAdd(1, ordering: .relaxed)
    }

    func guestBegan() {
        self.begunByGuests.wrappingAdd(1, ordering: .relaxed)
    }

    func lookupDelayed() {
        self.lookupsDelayed.wrappingAdd(1, ordering: .relaxed)
    }

    func transferEnded() {
        self.openTransfers.wrappingSubtract(1, ordering: .relaxed)
    }

    func socketOpened() {
        self.openConnections.wrappingAdd(1, ordering: .relaxed)
        self.connectionsOpened.wrappingAdd(1, ordering: .relaxed)
    }

    func socketClosed() {
        self.openConnections.wrappingSubtract(1, ordering: .relaxed)
    }

    func add(to statistics: inout TransferStatistics) {
        statistics.openTransfers += self.openTransfers.load(ordering: .relaxed)
        statistics.openConnections += self.openConnections.load(ordering: .relaxed)
        statistics.transfersStarted &+= self.transfersStarted.load(ordering: .relaxed)
        statistics.begunByGuests &+= self.begunByGuests.load(ordering: .relaxed)
        statistics.lookupsDelayed &+= self.lookupsDelayed.load(ordering: .relaxed)
        statistics.connectionsOpened &+= self.connectionsOpened.load(ordering: .relaxed)
    }
}
