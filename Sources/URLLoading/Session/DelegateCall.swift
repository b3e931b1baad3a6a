import Synchronization

/// A call of the library's to a method of a delegate.
///
/// What a delegate does not implement falls through by the default implementation of the method. That is
/// so for calls of the library's: a program that calls a delegate's method itself, in handing on what its
/// own delegate heard, means that delegate and nobody else, and would come back to itself for ever.
final class DelegateCall: Sendable {
    /// The methods that may fall through.
    enum Method {
        case created, delayedRequest, connectivity, redirection, challenge, sessionChallenge
        case bodyStream, bodyStreamFrom, sent, informational, metrics, completion
        case response, becameDownload, becameStream, data, caching
        case written, resumed
        case readClosed, writeClosed, betterRoute, captured
        case opened, closed
    }

    @TaskLocal private static var current: DelegateCall?

    private let delegate: ObjectIdentifier
    private let method: Method
    /// The default implementation has not been reached, nor has the call returned.
    private let isOpen = Atomic(true)

    private init(_ delegate: AnyObject, _ method: Method) {
        self.delegate = ObjectIdentifier(delegate)
        self.method = method
    }

    /// Makes a call that may fall through.
    static func make(to delegate: AnyObject, _ method: Method, _ call: () -> Void) {
        let current = Self(delegate, method)
        Self.$current.withValue(current) { call() }
        // A Swift task that the delegate has begun inherits it.
        current.isOpen.store(false, ordering: .relaxed)
    }

    /// Whether a default implementation was called by the library; asked once.
    static func isMade(to delegate: AnyObject, _ method: Method) -> Bool {
        guard let current = Self.current, current.method == method,
            current.delegate == ObjectIdentifier(delegate)
        else { return false }
        return current.isOpen.exchange(false, ordering: .relaxed)
    }
}

extension TaskDelegates {
    /// Calls one of them; only from here does what a task's own lacks fall through to the session's.
    func call(_ method: DelegateCall.Method, _ call: (Self) -> Void) {
        // Mostly there is but one.
        guard let own = self.own, let common = self.common, own !== common else {
            return call(self)
        }
        DelegateCall.make(to: own, method) { call(self) }
    }
}
