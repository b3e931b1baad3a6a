import Foundation
import Synchronization

/// The measurement of a load that the engine has no part in, told once.
final class MeasuredOnce: Sendable {
    private let measurement: Mutex<TransactionMeasurement?>
    private let observer: any LoadObserver

    init(_ request: URLRequest, _ observer: any LoadObserver) {
        var measurement = TransactionMeasurement()
        measurement.request = request
        self.measurement = Mutex(measurement)
        self.observer = observer
    }

    func note(_ response: URLResponse, from source: TransactionMeasurement.Source = .unknown) {
        self.measurement.withLock { measurement in
            measurement?.response = response
            measurement?.source = source
        }
    }

    /// Tells the observer, the first time.
    func tell(bodyBytes: Int64 = 0) {
        guard var measurement = self.measurement.withLock({ $0.take() }) else { return }
        measurement.ended = Date()
        measurement.bodyBytes = bodyBytes
        self.observer.load(measured: measurement)
    }
}
