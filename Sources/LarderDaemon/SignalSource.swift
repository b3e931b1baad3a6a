import Dispatch
import Glibc

/// Unix signals as an asynchronous sequence.
///
/// The signals are taken from their default action for the rest of the process's life.
struct SignalSource: Sendable {
    /// The signals named, as they come; ends when the task that reads it is cancelled.
    ///
    /// - Parameter hears: called at once with each, before it can be read; must not block.
    static func signals(
        _ numbers: [CInt], hears: @escaping @Sendable (CInt) -> Void = { _ in }
    ) -> AsyncStream<CInt> {
        AsyncStream { continuation in
            let pass: @Sendable (CInt) -> Void = { number in
                hears(number)
                continuation.yield(number)
            }
            if let key = SignalThread.add(numbers, pass) {
                continuation.onTermination = { _ in SignalThread.remove(key) }
            } else {
                let held = Held(numbers, pass)
                continuation.onTermination = { _ in held.cancel() }
            }
        }
    }

    /// Sources of Dispatch's, for want of a thread or a pipe of our own.
    ///
    /// They are heard once Dispatch finds a thread; a signal that comes before that may still end the
    /// process. They may be cancelled from any thread.
    private struct Held: @unchecked Sendable {
        let sources: [any DispatchSourceSignal]

        init(_ numbers: [CInt], _ pass: @escaping @Sendable (CInt) -> Void) {
            let queue = DispatchQueue(label: "larder.signals")
            self.sources = numbers.map { number in
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler { pass(number) }
                source.activate()
                return source
            }
        }

        func cancel() {
            for source in self.sources { source.cancel() }
        }
    }
}
