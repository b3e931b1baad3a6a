package import LarderCookies
package import LarderHTTP
import Synchronization

/// What outlives the process.
extension SessionCookies {
    /// Puts back what the storage holds; before the first request.
    ///
    /// A cookie that the jar has already is the newer one and stays. Where the storage cannot be
    /// read it is left as it is, and the session goes on in memory alone.
    package func restore(at now: Timestamp) async {
        guard let storage = self.storage else { return }
        let cookies: [Cookie]
        do throws(CookieStorageError) {
            cookies = try await storage.load()
        } catch {
            self.cutOff(error)
            return
        }
        let starts = self.state.withLock { state in
            state.backlog.restored(cookies)
            let missing = cookies.filter { state.jar[$0.identity] == nil }
            return self.note(state.jar.restore(missing, at: now), in: &state)
        }
        if starts { self.startWriting() }
    }

    /// Takes over what the storage holds now, where other processes write to it, too.
    ///
    /// Changes of this jar's own that the storage does not have yet stand; of everything else the
    /// storage is right. Nothing may be written to it between its reading and this.
    ///
    /// - Returns: whether it made a difference.
    @discardableResult
    package func reread(_ kept: [Cookie], at now: Timestamp) -> Bool {
        let (changes, starts) = self.state.withLock { state in
            var changes: [CookieChange] = []
            for identity in state.backlog.reread(kept) {
                guard state.jar[identity]?.isPersistent == true else { continue }
                changes += state.jar.remove(identity)
            }
            let news = kept.filter { cookie in
                guard !state.backlog.isPending(cookie.identity) else { return false }
                return state.jar[cookie.identity].map { !cookie.isSame(as: $0) } ?? true
            }
            let dropped = state.jar.restore(news, at: now)
            changes += news.filter { state.jar[$0.identity] != nil }.map { .stored($0) }
            return (changes, self.note(dropped, in: &state))
        }
        if starts { self.startWriting() }
        self.tell(changes)
        return !changes.isEmpty
    }

    /// Goes on without the storage.
    private func cutOff(_ cause: CookieStorageError) {
        let waiters = self.state.withLock { state in
            state.cutOff = cause
            state.counters.storageFailures &+= 1
            state.backlog = CookieBacklog()
            defer { state.waiters = [] }
            return state.waiters
        }
        self.report(.notRestored(cause))
        for waiter in waiters { waiter.continuation.resume(returning: .failure(cause)) }
    }

    /// Removes what has expired.
    package func removeExpired(at now: Timestamp) {
        let starts = self.state.withLock { state in
            state.lastSweep = now
            return self.note(state.jar.removeExpired(at: now), in: &state)
        }
        if starts { self.startWriting() }
    }

    /// Drops the cookies of the session, and returns when all others are kept.
    package func endSession() async throws(CookieStorageError) {
        let starts = self.state.withLock { self.note($0.jar.endSession(), in: &$0) }
        if starts { self.startWriting() }
        try await self.flush()
    }

    /// Returns when all changes so far are kept; what could not be is tried once more.
    ///
    /// An attempt that is under way when it is called is not that one: where it fails, another follows.
    package func flush() async throws(CookieStorageError) {
        let result = await withCheckedContinuation { continuation in
            let (starts, result) = self.state.withLock { state in
                let starts = self.note([], in: &state)
                let waiter = Waiter(
                    turn: state.backlog.last, triesAgain: state.backlog.isInFlight,
                    continuation: continuation)
                return (starts, Self.add(waiter, to: &state))
            }
            if starts { self.startWriting() }
            if let result { continuation.resume(returning: result) }
        }
        try result.get()
    }

    /// Notes changes for the storage.
    ///
    /// - Returns: whether somebody must begin to write.
    func note(_ changes: [CookieChange], in state: inout State) -> Bool {
        guard self.storage != nil, state.cutOff == nil else { return false }
        state.backlog.note(changes)
        guard !state.isWriting, !state.backlog.isEmpty else { return false }
        state.isWriting = true
        return true
    }

    /// Writes until nothing is left.
    ///
    /// The task is nobody's child, since a response that brings cookies waits for no disk; there is
    /// one at most, it ends with the last batch, and `endSession` waits for that.
    func startWriting() {
        Task(executorPreference: HouseExecutor.shared) { await self.write() }
    }

    private func write() async {
        guard let storage = self.storage else { return }
        while let batch = self.nextBatch() {
            do throws(CookieStorageError) {
                try await storage.apply(batch)
                if self.finished(nil) { return }
            } catch {
                if self.finished(error) { return }
            }
        }
    }

    /// What is to be written next; nil where there is nothing, as when the storage was given up while
    /// the writing was about to begin: then nobody writes any more, and nobody need wait.
    private func nextBatch() -> [CookieChange]? {
        let (batch, waiters) = self.state.withLock { state -> ([CookieChange]?, [Waiter]) in
            if let batch = state.backlog.next() { return (batch, []) }
            state.isWriting = false
            defer { state.waiters = [] }
            return (nil, state.waiters)
        }
        for waiter in waiters { waiter.continuation.resume(returning: .success(())) }
        return batch
    }

    /// Notes how a batch went, and tells those who wait for it.
    ///
    /// - Returns: whether there is nothing more to write now. After a failure only what has come
    ///   meanwhile is reason enough to try again at once, or somebody who asks for just that.
    private func finished(_ failure: CookieStorageError?) -> Bool {
        let (waiters, event, isDone) = self.state.withLock { state in
            let failed = state.failure
            state.backlog.finished(succeeded: failure == nil)
            state.failure = failure
            if failure != nil { state.counters.storageFailures &+= 1 }
            let answered = state.backlog.answered
            let stays = { (waiter: Waiter) in
                waiter.turn > answered || failure != nil && waiter.triesAgain
            }
            let waiters = state.waiters.filter { !stays($0) }
            // What comes next begins after all of them came.
            state.waiters = state.waiters.filter(stays).map {
                Waiter(turn: $0.turn, continuation: $0.continuation)
            }
            let isDone =
                state.waiters.isEmpty
                && (state.backlog.isEmpty || failure != nil && state.backlog.last == answered)
            if isDone { state.isWriting = false }
            return (waiters, Self.event(before: failed, now: failure), isDone)
        }
        if let event { self.report(event) }
        for waiter in waiters {
            waiter.continuation.resume(returning: failure.map { .failure($0) } ?? .success(()))
        }
        return isDone
    }

    private static func event(
        before: CookieStorageError?, now: CookieStorageError?
    ) -> CookieEvent? {
        switch (before, now) {
        case (nil, let failure?): .notKept(failure)
        case (.some, nil): .keptAgain
        case (nil, nil), (.some, .some): nil
        }
    }

    /// Returns when the storage was asked for everything up to a turn, and has answered.
    func wait(for turn: UInt64) async throws(CookieStorageError) {
        let result = await withCheckedContinuation { continuation in
            let waiter = Waiter(turn: turn, continuation: continuation)
            let result = self.state.withLock { Self.add(waiter, to: &$0) }
            if let result { continuation.resume(returning: result) }
        }
        try result.get()
    }

    /// Has a waiter wait; what it is to be told where there is nothing to wait for.
    private static func add(
        _ waiter: Waiter, to state: inout State
    ) -> Result<Void, CookieStorageError>? {
        if let cause = state.cutOff { return .failure(cause) }
        if state.isWriting {
            state.waiters.append(waiter)
            return nil
        }
        guard !state.backlog.isEmpty, let failure = state.failure else { return .success(()) }
        return .failure(failure)
    }
}
