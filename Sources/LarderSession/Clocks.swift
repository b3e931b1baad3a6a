package import LarderHTTP

/// Tells the time of day.
///
/// Tests own one that stands still.
package protocol WallClock: Sendable {
    func now() -> Timestamp
}

/// Runs something later.
///
/// Tests own one that fires when they say so.
package protocol Timers: Sendable {
    /// Calls `work` once, on a thread of its own choosing, no sooner than after `delay`, unless the
    /// token is cancelled before. `work` must not block.
    func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any TimerToken
}

/// Takes back a scheduled call.
///
/// Harmless after the call, also twice.
package protocol TimerToken: Sendable {
    func cancel()
}
