import Synchronization

/// A bound of an upstream that was reached, and behind which fetches wait.
package enum TransferLimit: Hashable, Sendable, CaseIterable {
    /// `TransferConfiguration.nameLookups`.
    case nameLookups
    /// `TransferConfiguration.maximumConnections`.
    case connections
}

/// Says of each bound of an upstream that it was reached, once an hour at most.
final class TransferLimits: Sendable {
    static let silence = Duration.seconds(3_600)

    private let said = Mutex<[TransferLimit: MonotonicTime]>([:])
    private let report: @Sendable (TransferLimit) -> Void

    init(_ report: @escaping @Sendable (TransferLimit) -> Void = { _ in }) {
        self.report = report
    }

    func reached(_ limit: TransferLimit, at now: MonotonicTime = .read()) {
        let isNew = self.said.withLock { said in
            if let last = said[limit], now < last + Self.silence { return false }
            said[limit] = now
            return true
        }
        if isNew { self.report(limit) }
    }
}
