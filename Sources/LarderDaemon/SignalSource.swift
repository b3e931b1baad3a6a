import Dispatch
import Glibc

/// Unix signals as an asynchronous sequence.
///
/// The signals are taken from their default action for the rest of the process's life. One that comes
/// before Dispatch has done that, on a thread of its own, still ends the process: ignored meanwhile it
/// would be lost.
struct SignalSource: Sendable {
    /// The signals named, as they come; ends when the task that reads it is cancelled.
    ///
    /// - Parameter hears: called at once with each, before it can be read; must not block.
    static func signals(
        _ numbers: [CInt], hears: @escaping @Sendable (CInt) -> Void = { _ in }
    ) -> AsyncStream<CInt> {
        AsyncStream { continuation in
            let queue = DispatchQueue(label: "larder.signals")
            let sources = numbers.map { number in
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler {
                    hears(number)
                    continuation.yield(number)
                }
                source.activate()
                return source
            }
            let held = Held(sources: sources)
            continuation.onTermination = { _ in held.cancel() }
        }
    }

    /// Dispatch sources may be cancelled from any thread.
    private struct Held: @unchecked Sendable {
        let sources: [any DispatchSourceSignal]

        func cancel() {
            for source in self.sources { source.cancel() }
        }
    }
}
