/// Work that one thread does at a time: another one that brings a reason for it only says so, and does not
/// wait.
///
/// Lies in the state of whoever works, under its lock:
///
///     guard state.withLock({ $0.turn.begins() }) else { return }
///     repeat { work() } while state.withLock { $0.turn.goesOn() }
package struct OneAtATime: Sendable {
    private var isUnderWay = false
    /// There was a reason meanwhile.
    private var isWantedAgain = false

    package init() {}

    /// - Returns: whether the caller is to work; else who is at it does so once more.
    package mutating func begins() -> Bool {
        if self.isUnderWay { self.isWantedAgain = true }
        defer { self.isUnderWay = true }
        return !self.isUnderWay
    }

    /// - Returns: whether the caller, who has worked, is to do so once more; else others may begin.
    package mutating func goesOn() -> Bool {
        defer { self.isWantedAgain = false }
        self.isUnderWay = self.isWantedAgain
        return self.isWantedAgain
    }
}
