package import LarderHTTP
import Synchronization

/// What the proxy has done since it began: sums over all event loops.
package struct ProxyStatistics: Sendable, Equatable {
    package var connectionsOpen: UInt64 = 0
    package var connections: UInt64 = 0
    /// How often none could be accepted, for want of descriptors or memory.
    package var acceptsFailed: UInt64 = 0
    /// Closed at once, as their clients had as many as they may.
    package var connectionsRefused: UInt64 = 0
    /// Connections that had to wait, as there were as many as there may be.
    package var connectionsWaited: UInt64 = 0
    package var requests: UInt64 = 0
    /// From clients, and to clients: bytes on the socket.
    package var bytesIn: UInt64 = 0
    package var bytesOut: UInt64 = 0
    package var tunnelsOpen: UInt64 = 0
    package var tunnels: UInt64 = 0
    /// Exchanges whose answer did not reach its end.
    package var cut: UInt64 = 0
    /// Answers that the proxy gave of its own, by status.
    package var ownAnswers: [StatusCode: UInt64] = [:]

    package init() {}
}

/// The counters of one event loop, written by that loop alone and read by anyone.
///
/// One writer: a relaxed load and store is enough, and costs what a plain addition costs.
final class LoopCounters: Sendable {
    private let opened = Atomic<UInt64>(0)
    private let closed = Atomic<UInt64>(0)
    private let requestCount = Atomic<UInt64>(0)
    private let received = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)
    private let tunnelsOpened = Atomic<UInt64>(0)
    private let tunnelsClosed = Atomic<UInt64>(0)
    private let cutCount = Atomic<UInt64>(0)
    /// Rare, so a lock will do.
    private let ownAnswers = Mutex<[StatusCode: UInt64]>([:])

    func connectionOpened() { Self.add(1, to: self.opened) }
    func connectionClosed() { Self.add(1, to: self.closed) }
    func requestBegan() { Self.add(1, to: self.requestCount) }
    func received(_ bytes: Int) { Self.add(bytes, to: self.received) }
    func sent(_ bytes: Int) { Self.add(bytes, to: self.sent) }
    func tunnelOpened() { Self.add(1, to: self.tunnelsOpened) }
    func tunnelClosed() { Self.add(1, to: self.tunnelsClosed) }
    func wasCut() { Self.add(1, to: self.cutCount) }
    func answered(_ status: StatusCode) {
        self.ownAnswers.withLock { $0[status, default: 0] &+= 1 }
    }

    private static func add(_ amount: Int, to counter: borrowing Atomic<UInt64>) {
        counter.store(
            counter.load(ordering: .relaxed) &+ UInt64(clamping: amount), ordering: .relaxed)
    }

    func add(to sum: inout ProxyStatistics) {
        // Closings first: what closes meanwhile is then still counted open, never less than none.
        let closed = self.closed.load(ordering: .relaxed)
        let opened = self.opened.load(ordering: .relaxed)
        let tunnelsClosed = self.tunnelsClosed.load(ordering: .relaxed)
        let tunnelsOpened = self.tunnelsOpened.load(ordering: .relaxed)
        sum.connections &+= opened
        sum.connectionsOpen &+= opened &- min(opened, closed)
        sum.tunnels &+= tunnelsOpened
        sum.tunnelsOpen &+= tunnelsOpened &- min(tunnelsOpened, tunnelsClosed)
        sum.requests &+= self.requestCount.load(ordering: .relaxed)
        sum.bytesIn &+= self.received.load(ordering: .relaxed)
        sum.bytesOut &+= self.sent.load(ordering: .relaxed)
        sum.cut &+= self.cutCount.load(ordering: .relaxed)
        let answers = self.ownAnswers.withLock { $0 }
        sum.ownAnswers.merge(answers) { $0 &+ $1 }
    }
}
