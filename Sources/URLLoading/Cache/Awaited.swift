import Dispatch
import Synchronization

/// What is told by a callback, for a caller who has to wait for it.
///
/// Blocks the thread of the program that asked, and no other: never used on a thread of Larder's own.
final class Awaited<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    /// Begins something and waits until it has called back; `begin` may do so before it returns.
    @discardableResult
    static func of(_ begin: (@escaping @Sendable (Value) -> Void) -> Void) -> Value {
        let awaited = Awaited()
        begin { value in
            let isFirst = awaited.value.withLock { held in
                if held != nil { return false }
                held = value
                return true
            }
            if isFirst { awaited.semaphore.signal() }
        }
        while true {
            awaited.semaphore.wait()
            if let value = awaited.value.withLock({ $0 }) { return value }
        }
    }
}
