package import LarderCookies
package import LarderHTTP
import Synchronization

/// The cookies of a session: its jar, and the storage in which they outlive the process.
///
///     restore → (requests, responses, a person's changes)* → endSession
///
/// The jar is right at once: a request that begins after a response was taken has its cookies, and
/// no caller waits for a disk. The storage follows in the same order, batch by batch; of changes
/// that come faster than it keeps them it gets the last of each cookie. Who must know that changes
/// are kept waits: `change`, `flush`, `whenKept` and `endSession` do. Where the storage fails, the session goes
/// on in memory, and what is missing is brought to it with the next change.
///
/// Any thread may call it. No description shows a cookie's value.
package final class SessionCookies: HopCookies {
    /// How often expired cookies are looked for while responses come.
    private static let sweepInterval = Duration.seconds(60)

    private struct Waiter {
        let turn: UInt64
        let continuation: CheckedContinuation<Result<Void, CookieStorageError>, Never>
    }

    private struct State {
        var jar: CookieJar
        var handling: CookieHandling
        var backlog = CookieBacklog()
        var isWriting = false
        /// Why the last attempt to keep changes failed; nil when it did not.
        var failure: CookieStorageError?
        /// Why the storage is not used at all.
        var cutOff: CookieStorageError?
        var waiters: [Waiter] = []
        var counters = CookieCounters()
        var lastSweep: Timestamp?
    }

    private let state: Mutex<State>
    private let storage: (any CookieStorage)?
    private let suffixes: any PublicSuffixes
    private let report: @Sendable (CookieEvent) -> Void
    private let observer: (@Sendable ([CookieChange]) -> Void)?

    /// - Parameters:
    ///   - storage: nil where nothing outlives the session.
    ///   - suffixes: asked outside of any lock for requests and responses.
    ///   - report: hears what a log should; any thread, must not block.
    ///   - observer: hears what responses, and other users of the storage, have changed; any thread,
    ///     must not block.
    package init(
        _ handling: CookieHandling, storage: (any CookieStorage)? = nil,
        suffixes: any PublicSuffixes,
        report: @escaping @Sendable (CookieEvent) -> Void = { _ in },
        observer: (@Sendable ([CookieChange]) -> Void)? = nil
    ) {
        self.state = Mutex(
            State(
                jar: CookieJar(
                    acceptPolicy: handling.accept, limits: handling.limits, suffixes: suffixes),
                handling: handling))
        self.storage = storage
        self.suffixes = suffixes
        self.report = report
        self.observer = observer
    }

    // MARK: Requests and responses

    package func addCookies(to fields: inout Fields, for hop: Hop, at now: Timestamp) {
        self.addCookies(to: &fields, for: hop, by: nil, at: now)
    }

    /// The same for who has a rule of its own for the client's cookies.
    func addCookies(
        to fields: inout Fields, for hop: Hop, by merging: CookieField.Merging?,
        at now: Timestamp
    ) {
        guard hop.handlesCookies else { return }
        // Most have none, and need no look at a list of suffixes.
        let (isEmpty, handling) = self.state.withLock { ($0.jar.count == 0, $0.handling) }
        if isEmpty { return }
        let context = self.context(hop)
        let cookies = self.state.withLock { $0.jar.takeCookies(for: context, at: now) }
        let sent = CookieField.apply(cookies, to: &fields, by: merging ?? handling.merging)
        guard sent > 0 else { return }
        self.state.withLock { $0.counters.sent &+= UInt64(sent) }
    }

    package func showCookies(in fields: inout Fields, for hop: Hop, at now: Timestamp) {
        guard hop.handlesCookies else { return }
        let context = self.context(hop)
        let (cookies, merging) = self.state.withLock {
            ($0.jar.cookies(for: context, at: now), $0.handling.merging)
        }
        CookieField.apply(cookies, to: &fields, by: merging)
    }

    package var showsSetCookie: Bool { self.state.withLock { $0.handling.showsSetCookie } }

    package func takeCookies(from head: inout ResponseHead, for hop: Hop, at now: Timestamp) {
        self.takeCookies(from: head, for: hop, accept: nil, at: now)
        if hop.handlesCookies, !self.showsSetCookie { head.fields.remove(FieldName(.setCookie)) }
    }

    /// The same for who has a policy of its own, and shows its client everything.
    func takeCookies(
        from head: ResponseHead, for hop: Hop, accept: CookieAcceptPolicy?, at now: Timestamp
    ) {
        guard hop.handlesCookies else { return }
        let lines = SetCookie.lines(of: head.fields)
        guard !lines.isEmpty else { return }
        var context = self.context(hop)
        context.accept = accept
        let (outcomes, starts) = self.state.withLock { state in
            let outcomes = state.jar.store(lines, for: context, at: now)
            let starts = self.note(
                outcomes.flatMap(\.changes) + Self.sweep(&state, at: now), in: &state)
            Self.count(outcomes, in: &state.counters)
            return (outcomes, starts)
        }
        if starts { self.startWriting() }
        self.tell(outcomes.flatMap(\.differences))
        self.reportRefusals(outcomes, from: hop.uri.host)
    }

    private func tell(_ changes: [CookieChange]) {
        if !changes.isEmpty { self.observer?(changes) }
    }

    private func context(_ hop: Hop) -> CookieContext {
        if let own = hop.cookies {
            return CookieContext(
                uri: hop.uri, mainDocumentHost: own.mainDocumentHost, suffixes: self.suffixes)
        }
        return CookieContext(
            uri: hop.uri, method: hop.method, client: hop.client,
            first: hop.first ?? (hop.number == 0 ? hop.uri : nil), suffixes: self.suffixes)
    }

    private static func count(_ outcomes: [CookieOutcome], in counters: inout CookieCounters) {
        for outcome in outcomes {
            if let refusal = outcome.refusal {
                counters.refused[refusal, default: 0] &+= 1
            } else if outcome.isStored {
                counters.stored &+= 1
                counters.evicted &+= UInt64(outcome.changes.count - 1)
            }
        }
    }

    /// §5.7 wants expired cookies gone; they are not sent anyhow, so now and then is enough.
    private static func sweep(_ state: inout State, at now: Timestamp) -> [CookieChange] {
        // A clock that was set back must not put it off.
        if let last = state.lastSweep, now >= last, now - last < self.sweepInterval { return [] }
        state.lastSweep = now
        return state.jar.removeExpired(at: now)
    }

    /// One event a rule: a response may have thousands of lines.
    private func reportRefusals(_ outcomes: [CookieOutcome], from host: String) {
        var counts: [CookieRefusal: Int] = [:]
        for case let refusal? in outcomes.map(\.refusal) { counts[refusal, default: 0] += 1 }
        for refusal in CookieRefusal.allCases {
            guard let count = counts[refusal] else { continue }
            self.report(.refused(refusal, count: count, host: host))
        }
    }

    package func whenKept(_ body: @escaping @Sendable () -> Void) -> Bool {
        let turn = self.state.withLock { $0.isWriting ? $0.backlog.last : nil }
        guard let turn else { return false }
        // Nobody's child: it ends with the batch, which the storage's own answer ends.
        Task {
            try? await self.wait(for: turn)
            body()
        }
        return true
    }

    // MARK: Settings and people

    /// Takes other settings, for the requests and responses to come.
    package func update(_ handling: CookieHandling, at now: Timestamp) {
        let starts = self.state.withLock { state in
            state.handling = handling
            state.jar.acceptPolicy = handling.accept
            let evicted = state.jar.setLimits(handling.limits, at: now)
            state.counters.evicted &+= UInt64(evicted.count)
            return self.note(evicted, in: &state)
        }
        if starts { self.startWriting() }
    }

    /// All cookies that have not expired, by domain, then as they were created.
    package func snapshot(at now: Timestamp) -> [Cookie] {
        self.state.withLock { $0.jar.all(at: now) }
    }

    /// Whether the storage is being asked to keep changes.
    package var isWriting: Bool { self.state.withLock { $0.isWriting } }

    package func counters() -> CookieCounters {
        self.state.withLock { state in
            var counters = state.counters
            counters.held = state.jar.count
            counters.unkept = state.backlog.count
            return counters
        }
    }

    /// Looks at what it holds, under its lock.
    ///
    /// - Parameter body: gets the jar, what waits for the storage, whether that is being written to,
    ///   and whether there is one that is read and written.
    func look<Answer>(
        _ body: (CookieJar, CookieBacklog, _ isWriting: Bool, _ isKept: Bool) -> Answer
    ) -> Answer {
        self.state.withLock { state in
            let isKept = self.storage != nil && state.cutOff == nil
            return body(state.jar, state.backlog, state.isWriting, isKept)
        }
    }

    /// Changes the jar for a person, and returns when the change is kept.
    ///
    /// The change holds in memory also where this throws.
    ///
    /// - Parameter body: gives the changes that the jar's methods returned, in order. It runs under
    ///   this object's lock: it must neither block nor call back.
    package func change<Answer: Sendable>(
        _ body: @Sendable (inout CookieJar) -> (answer: Answer, changes: [CookieChange])
    ) async throws(CookieStorageError) -> Answer {
        let (answer, failure) = await self.changed(body)
        if let failure { throw failure }
        return answer
    }

    /// The same, with the answer also where what it tells of is not kept.
    package func changed<Answer: Sendable>(
        _ body: @Sendable (inout CookieJar) -> (answer: Answer, changes: [CookieChange])
    ) async -> (answer: Answer, failure: CookieStorageError?) {
        let (answer, turn, starts) = self.state.withLock { state in
            let (answer, changes) = body(&state.jar)
            let starts = self.note(changes, in: &state)
            return (answer, state.backlog.last, starts)
        }
        if starts { self.startWriting() }
        do throws(CookieStorageError) {
            try await self.wait(for: turn)
            return (answer, nil)
        } catch {
            return (answer, error)
        }
    }

    /// Changes the jar for a program, without waiting for the storage.
    ///
    /// - Parameter body: as in `change`.
    package func changeNow<Answer>(
        _ body: (inout CookieJar) -> (answer: Answer, changes: [CookieChange])
    ) -> Answer {
        let (answer, starts) = self.state.withLock { state in
            let (answer, changes) = body(&state.jar)
            return (answer, self.note(changes, in: &state))
        }
        if starts { self.startWriting() }
        return answer
    }

    /// The cookies for a request that somebody else sends, in order; they do not count as used.
    package func cookies(for context: CookieContext, at now: Timestamp) -> [Cookie] {
        self.state.withLock { $0.jar.cookies(for: context, at: now) }
    }

    // MARK: The storage

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
    package func flush() async throws(CookieStorageError) {
        let (turn, starts) = self.state.withLock {
            ($0.backlog.last, self.note([], in: &$0))
        }
        if starts { self.startWriting() }
        try await self.wait(for: turn)
    }

    /// Notes changes for the storage.
    ///
    /// - Returns: whether somebody must begin to write.
    private func note(_ changes: [CookieChange], in state: inout State) -> Bool {
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
    private func startWriting() {
        Task { await self.write() }
    }

    private func write() async {
        guard let storage = self.storage else { return }
        while let batch = self.state.withLock({ $0.backlog.next() }) {
            do throws(CookieStorageError) {
                try await storage.apply(batch)
                if self.finished(nil) { return }
            } catch {
                if self.finished(error) { return }
            }
        }
        // The storage was given up while this was about to begin.
        self.state.withLock { $0.isWriting = false }
    }

    /// Notes how a batch went, and tells those who wait for it.
    ///
    /// - Returns: whether there is nothing more to write now. After a failure only what has come
    ///   meanwhile is reason enough to try again at once.
    private func finished(_ failure: CookieStorageError?) -> Bool {
        let (waiters, event, isDone) = self.state.withLock { state in
            let failed = state.failure
            state.backlog.finished(succeeded: failure == nil)
            state.failure = failure
            if failure != nil { state.counters.storageFailures &+= 1 }
            let answered = state.backlog.answered
            let waiters = state.waiters.filter { $0.turn <= answered }
            state.waiters.removeAll { $0.turn <= answered }
            let isDone =
                state.backlog.isEmpty || (failure != nil && state.backlog.last == answered)
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
    private func wait(for turn: UInt64) async throws(CookieStorageError) {
        let result = await withCheckedContinuation { continuation in
            let result: Result<Void, CookieStorageError>? = self.state.withLock { state in
                if let cause = state.cutOff { return .failure(cause) }
                if state.isWriting {
                    state.waiters.append(Waiter(turn: turn, continuation: continuation))
                    return nil
                }
                guard !state.backlog.isEmpty, let failure = state.failure else {
                    return .success(())
                }
                return .failure(failure)
            }
            if let result { continuation.resume(returning: result) }
        }
        try result.get()
    }
}
