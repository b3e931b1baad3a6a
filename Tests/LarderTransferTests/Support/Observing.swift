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

    private let record = Mutex(Record())
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
