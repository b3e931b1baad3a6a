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

    struct Waiter {
        let turn: UInt64
        /// Whether one failure of the storage, in an attempt that began before it came, is not its answer.
        var triesAgain = false
        let continuation: CheckedContinuation<Result<Void, CookieStorageError>, Never>
    }

    struct State {
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

    let state: Mutex<State>
    let storage: (any CookieStorage)?
    private let suffixes: any PublicSuffixes
    let report: @Sendable (CookieEvent) -> Void
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

    package var mayAddCookies: Bool { self.state.withLock { $0.jar.count > 0 } }

    package func addCookies(to fields: inout Fields, for hop: Hop, at now: Timestamp) {
        self.addCookies(to: &fields, for: hop, by: nil, at: now)
    }

    /// Adds cookies for who has a rule of its own for the client's cookies.
    func addCookies(
        to fields: inout Fields, for hop: Hop, by merging: CookieField.Merging?,
        at now: Timestamp
    ) {
        guard hop.handlesCookies else { return }
        // Most have none, and need no look at a list of suffixes.
        let (isEmpty, handling) = self.state.withLock { ($0.jar.count == 0, $0.handling) }
        if isEmpty { return }
        let context = self.sendingContext(hop)
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

    /// Takes cookies for who has a policy of its own, and shows its client everything.
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

    func tell(_ changes: [CookieChange]) {
        if !changes.isEmpty { self.observer?(changes) }
    }

    /// For a request alone: one that is its own main document needs no look at a list of suffixes.
    private func sendingContext(_ hop: Hop) -> CookieContext {
        guard let own = hop.cookies, own.mainDocumentHost == nil else { return self.context(hop) }
        var context = CookieContext(uri: hop.uri)
        context.isLaxByDefault = false
        return context
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
        Task(executorPreference: HouseExecutor.shared) {
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

    /// Changes the jar for a person, with the answer also where what it tells of is not kept.
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
}
