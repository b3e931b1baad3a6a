import LarderHTTP
import Synchronization

@testable import LarderTransfer

/// An observer that writes down what it is told, and says what a test says.
final class RecordingObserver: TransferObserver {
    struct Record: Sendable {
        var sent: [UInt64] = []
        var measurements: [TransferMeasurement] = []
        var peers: [TLSPeer] = []
        var wants: [[[UInt8]]] = []
    }

    private struct Suspension {
        var isSuspended = false
        var resumedAgo: Duration?
        var changed: (@Sendable () -> Void)?
    }

    private let record = Mutex(Record())
    private let suspension = Mutex(Suspension())
    private let verdict: @Sendable (TLSPeer) -> TLSVerdict
    private let breaksOff: Bool
    let evaluatesServers: Bool
    let readsMeasurement: Bool
    let isMeasured = Gate()

    init(
        evaluates: Bool = true, breaksOff: Bool = false, measures: Bool = true,
        verdict: @escaping @Sendable (TLSPeer) -> TLSVerdict = { _ in .bySystem }
    ) {
        self.evaluatesServers = evaluates
        self.readsMeasurement = measures
        self.breaksOff = breaksOff
        self.verdict = verdict
    }

    var heard: Record { self.record.withLock { $0 } }

    /// Is suspended, or goes on, and tells whoever asked for that.
    func suspend(_ isSuspended: Bool) {
        let changed = self.suspension.withLock { suspension in
            suspension.isSuspended = isSuspended
            return suspension.changed
        }
        changed?()
    }

    var isSuspended: Bool { self.suspension.withLock { $0.isSuspended } }
    var resumedAgo: Duration? {
        get { self.suspension.withLock { $0.resumedAgo } }
        set { self.suspension.withLock { $0.resumedAgo = newValue } }
    }
    /// Somebody wants to hear of suspensions.
    var isFollowed: Bool { self.suspension.withLock { $0.changed != nil } }

    func transferWaits(_ changed: @escaping @Sendable () -> Void) {
        self.suspension.withLock { $0.changed = changed }
    }

    func transfer(sent total: UInt64) {
        self.record.withLock { $0.sent.append(total) }
    }

    func transfer(measured measurement: TransferMeasurement) {
        self.record.withLock { $0.measurements.append(measurement) }
        self.isMeasured.open()
    }

    func transfer(evaluates server: TLSPeer) -> TLSVerdict {
        self.record.withLock { $0.peers.append(server) }
        return self.verdict(server)
    }

    func transfer(wantsCertificateFrom issuers: [[UInt8]], host: String, port: UInt16) -> Bool {
        self.record.withLock { $0.wants.append(issuers) }
        return self.breaksOff
    }
}

extension Request {
    /// The same, looked on by an observer and with other options.
    func observed(
        by observer: (any TransferObserver)? = nil,
        _ change: (inout TransferOptions) -> Void = { _ in }
    ) -> Request {
        var request = self
        request.observer = observer
        change(&request.transfer)
        return request
    }
}
