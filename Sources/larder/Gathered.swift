import Synchronization

/// What the lines of an answer come to, wherever they are heard.
final class Gathered<Value: Sendable>: Sendable {
    private let gathered: Mutex<Value>

    init(_ value: Value) {
        self.gathered = Mutex(value)
    }

    var value: Value { self.gathered.withLock { $0 } }

    func change(_ body: @Sendable (inout Value) -> Void) {
        self.gathered.withLock { body(&$0) }
    }
}
