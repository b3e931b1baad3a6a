import Foundation
import LarderHTTP
import Synchronization

/// What is heard of a load's transfer, and what it took in the end.
extension HTTPLoad: TransferObserver {
    /// The upstream begins a fetch, which it will measure.
    func fetchBegins() {
        self.state.withLock { $0.machine.fetchBegins() }
    }

    func transfer(sent total: UInt64) {
        guard self.state.withLock({ $0.machine.isUnderWay }) else { return }
        self.observer.load(sent: Int64(clamping: total))
    }

    func transferWaits(_ changed: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.suspensionChanged = changed }
    }

    var isSuspended: Bool {
        self.order.task.isStandingStill && !self.state.withLock { $0.machine.isOver }
    }
    var resumedAgo: Duration? { self.order.task.resumedAgo }

    func transfer(measured measurement: TransferMeasurement) {
        guard self.readsMeasurement else { return }
        self.state.withLock { state in
            state.machine.fetchMeasured()
            state.measurement?.transfer = measurement
            if state.measurement?.source == .unknown { state.measurement?.source = .network }
        }
        self.measureIfDue()
    }

    /// Tells what the load took, once all is over.
    func measureIfDue() {
        guard self.readsMeasurement else { return }
        let due = self.state.withLock { state -> TransactionMeasurement? in
            guard state.machine.isDue(), var measurement = state.measurement else { return nil }
            measurement.bodyBytes = state.bodyBytes
            return measurement
        }
        guard var due else { return }
        due.request = self.order.request
        due.contentBytes = self.order.body?.length ?? 0
        due.ended = Date()
        self.observer.load(measured: due)
    }
}
