import Synchronization

/// Whether a start is to go on, asked while it does what may take long.
///
/// A signal ends it before it is over, and the service manager grants it time as long as it gets on.
final class StartWatch: Sendable {
    private struct State {
        var isEnded = false
        var toldAt: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let tell: @Sendable (String) -> Void

    private static let spacing = Duration.seconds(5)
    // sd_notify(3): "The value specified is a time in microseconds during which the service must send
    // a new message."
    private static let moreTime = "EXTEND_TIMEOUT_USEC=60000000"

    /// - Parameter tell: sends lines to the service manager; must not block.
    init(_ tell: @escaping @Sendable (String) -> Void = { ServiceManager.tell($0) }) {
        self.tell = tell
    }

    var isEnded: Bool { self.state.withLock { $0.isEnded } }

    /// Has the start end as soon as it asks.
    func end() {
        self.state.withLock { $0.isEnded = true }
    }

    /// Called by what gets on, however often.
    func mayGoOn(at now: ContinuousClock.Instant) -> Bool {
        let (mayGoOn, isDue) = self.state.withLock { state in
            if state.isEnded { return (false, false) }
            if let told = state.toldAt, now - told < Self.spacing { return (true, false) }
            state.toldAt = now
            return (true, true)
        }
        if isDue { self.tell(Self.moreTime) }
        return mayGoOn
    }
}
