package import LarderHTTP
import Synchronization

/// A body that cannot be read: the reason is all that it gives.
package final class FailedSource: BodySource {
    private let failure: Mutex<BodyFailure>

    package init(_ failure: BodyFailure) {
        self.failure = Mutex(failure)
    }

    package func attach(wake: @escaping @Sendable () -> Void) {}

    package func next() -> BodyStep { .failed(self.failure.withLock { $0 }) }

    package func cancel() {
        self.failure.withLock { $0 = .cancelled }
    }
}
