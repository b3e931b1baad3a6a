import LarderStore

// Who waits for a fetch, and reads what it brings: the values behind a filling's lock.
extension Filling {
    /// Who waits for the head, and hears of it.
    struct Waiting {
        let waiter: any FillingWaiter
        /// This client's request is the one that was sent to the origin.
        let leads: Bool
        /// How he reads the body, once there is one for him.
        var reader: FillingReader?
        /// He waits as long as it takes; else a while (`releaseJoined`).
        var isPatient = true
        /// He sends nothing more: he waits, or has gone.
        var mayHaveGone = false
    }

    /// What a filling knows, and what is to be done once its lock is let go of.
    struct State {
        var outcome: Outcome?
        var body: FillingState
        var waiters: [Waiting] = []
        /// Where the body had got to when the last client left; nil while there is one.
        var desertedAt: UInt64?
        var control: (any FillingControl)?
        /// How long others wait than whose fetch it is, is being measured.
        var isWaitedFor = false
        /// The store's patience is being measured.
        var isTimed = false
        /// Where those were who hold up others when their time began; empty: nobody's is measured.
        var laggards: [UInt64: UInt64] = [:]

        /// How far the sink is, the first time it alone is found to keep the origin waiting.
        mutating func startTimingSink() -> UInt64? {
            guard !self.isTimed, self.body.isHeldUpBySink else { return nil }
            self.isTimed = true
            return self.body.sinkWritten
        }

        /// What is to be done where the sink keeps the origin waiting.
        mutating func sinkStalled() -> Action? {
            let sink = self.body.sinkToHurry()
            let written = self.startTimingSink()
            return sink == nil && written == nil
                ? nil : .heldUp(self.control, at: written, hurries: sink)
        }

        /// Those who wait for the head of another's fetch, and do not as long as it takes.
        mutating func takeJoined() -> [any FillingWaiter] {
            self.isWaitedFor = false
            guard self.outcome == nil, case .streaming = self.body.phase else { return [] }
            let joined = self.waiters.filter { !$0.isPatient }.map(\.waiter)
            self.waiters.removeAll { !$0.isPatient }
            return joined
        }

        mutating func takeWaiters() -> [Waiting] {
            defer { self.waiters = [] }
            return self.waiters
        }

        /// Begins to measure the time of those who hold up others, where nobody's is measured.
        mutating func startTimingLaggards() -> Action? {
            // Who reads a gap may have far to go in what is stored before he comes to it.
            guard self.laggards.isEmpty, !self.body.readersBeginLate || !self.body.sinkGivesBack
            else { return nil }
            self.laggards = self.body.laggards
            return self.laggards.isEmpty ? nil : .lagging(self.control)
        }

        mutating func afterWriting(resumes: Bool) -> Action? {
            resumes ? .resume(self.control) : self.startTimingLaggards()
        }

        mutating func afterReading(resumes: Bool) -> Action? {
            if resumes { return .resume(self.control) }
            return self.sinkStalled() ?? self.startTimingLaggards()
        }

        /// Cuts off whoever of those has taken nothing since their time began, and gives the others
        /// theirs anew.
        mutating func endLaggardsTime() -> (cut: Int, Action?) {
            let began = Swift.exchange(&self.laggards, with: [:])
            let stuck = self.body.laggards.filter { began[$0.key] == $0.value }
            let resumes = !stuck.isEmpty && self.body.cutOff(Set(stuck.keys))
            return (stuck.count, self.afterWriting(resumes: resumes))
        }

        /// Whether all who wait for the head may have gone.
        var isDoubted: Bool {
            guard self.outcome == nil, !self.waiters.isEmpty, case .streaming = self.body.phase
            else { return false }
            return self.waiters.allSatisfy(\.mayHaveGone)
        }

        /// What is to be done where they may.
        func doubt() -> Action? { self.isDoubted ? .doubted(self.control) : nil }

        /// Notes that no client is left, once.
        mutating func desertion() -> Action? {
            guard self.waiters.isEmpty, self.body.readers.isEmpty, self.desertedAt == nil,
                case .streaming = self.body.phase, self.control != nil
            else { return nil }
            self.desertedAt = self.body.end
            return .deserted(self.control)
        }
    }

    /// What is to be told to somebody, without the lock.
    enum Action {
        case resume((any FillingControl)?)
        case deserted((any FillingControl)?)
        case doubted((any FillingControl)?)
        /// The sink keeps the origin waiting.
        ///
        /// - at: how far it is, where its time is to be measured from now on.
        /// - hurries: it may be waiting for more.
        case heldUp((any FillingControl)?, at: UInt64?, hurries: (any ObjectSink)?)
        /// Clients that take nothing keep the origin waiting, and others with it.
        case lagging((any FillingControl)?)
    }
}
