import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// One client's request on its way to an answer: the driver of `ClientMachine`.
///
/// Looks up, asks policy, and then serves what is stored, or leads or joins a filling.
final class ClientExchange: Exchange {
    private struct State: ~Copyable {
        var machine = ClientMachine()
        var forward = CacheStatus.Forward.uriMiss
        /// The rule that sent the request forward.
        var reason: PolicyReason?
        var stored: [StoredObject] = []
        /// Stored beside them, for other queries.
        var neighbours: [StoredObject] = []
    }

    let session: Session
    let request: Request
    let body: (any BodySource)?
    private let client: any ExchangeClient
    /// What the session was told when the exchange began, for its URI.
    let configuration: SessionConfiguration
    let cachePolicy: RequestCachePolicy
    let key: CacheKey
    /// The table of fillings, as it was before the store was asked.
    private let era: UInt64
    private let state = Mutex(State())

    init(
        session: Session, request: Request, body: (any BodySource)?, options: ExchangeOptions,
        client: any ExchangeClient
    ) {
        self.session = session
        self.body = body
        self.client = client
        var configuration = session.configuration
        configuration.policy = configuration.policy.resolved(for: request.uri)
        self.configuration = configuration
        self.cachePolicy = options.cachePolicy ?? configuration.cachePolicy
        self.request = self.cachePolicy.forwarded(request)
        self.key = CacheKey(
            method: request.method, uri: request.uri, partition: session.partition)
        self.era = session.fillings.era
        session.live.requests.add()
        session.live.openExchanges.add()
    }

    deinit {
        self.session.live.openExchanges.subtract()
    }

    func begin() {
        guard self.request.method == .get || self.request.method == .head else {
            return self.act(on: [], now: self.session.clock.now())
        }
        self.session.find(self.key, for: self.request.uri) { found in
            self.act(on: found.usable, now: self.session.clock.now(), isWhole: false)
        }
    }

    /// Looks where responses to several queries are stored, once the exact target has nothing to
    /// serve.
    private func search(beside objects: [StoredObject]) {
        self.session.find(self.key.withoutSearch, for: self.request.uri) { found in
            self.state.withLock { $0.neighbours = found.neighbours }
            self.act(on: objects + found.usable, now: self.session.clock.now())
        }
    }

    func cancel() {
        let (action, unanswered) = self.state.withLock { $0.machine.cancel() }
        if unanswered { self.session.live.cancelled.add() }
        switch action {
        case .leave(let filling): filling.leave(self)
        case .cancelBody(let source): source.cancel()
        case .nothing: break
        }
    }

    var policy: PolicyConfiguration { self.configuration.policy }

    // MARK: Deciding

    /// - Parameter isWhole: nothing else that is stored may answer.
    private func act(on objects: [StoredObject], now: Timestamp, isWhole: Bool = true) {
        let verdict = Reuse.decide(
            request: self.request, candidates: objects.map(\.head), now: now,
            configuration: self.policy, policy: self.cachePolicy)
        if !isWhole, verdict.mayGainByMore, self.policy.honoursNoVarySearch {
            return self.search(beside: objects)
        }
        self.session.live.reasons.add(verdict.reason)
        switch verdict {
        case .serve(let index, let freshness, let stale, let revalidates):
            guard objects.indices.contains(index) else {
                return self.fetch(objects, nil, .miss, because: nil)
            }
            guard self.covers(objects[index]) else {
                return self.fetch(objects, index, .partial, because: .bytesMissing)
            }
            let spoke =
                stale
                ?? self.policy.override(of: objects[index].head, freshness, request: self.request)
            let status = CacheStatus(
                hit: true, ttl: CacheStatus.ttl(of: freshness.remaining), detail: spoke?.rawValue)
            if !freshness.isFresh { self.session.live.staleHits.add() }
            self.session.live.hits.add()
            self.serve(objects[index], status: status, because: verdict.reason, now: now)
            if revalidates {
                self.session.revalidate(
                    self.request, self.key, objects, index, era: self.era)
            }
        case .validate(let index, let forward, let reason):
            self.fetch(objects, index, forward, because: reason)
        case .fetch(let forward, let reason):
            self.fetch(objects, nil, forward, because: reason)
        case .refuse(let reason):
            self.state.withLock { $0.reason = reason }
            self.refuse(because: reason, now: now)
        }
    }

    private func refuse(because reason: PolicyReason, now: Timestamp) {
        var detail = "not in the cache, and the request allows nothing else"
        if reason == .returnCacheDontLoad {
            self.session.noteOfflineMiss(self.request, at: now)
            detail =
                "offline: this is not in the cache, and the request cache policy "
                + "return-cache-dont-load asks no origin"
        }
        self.fail(
            ExchangeFailure(
                status: .gatewayTimeout, error: nil, detail: detail, party: .client,
                cacheStatus: CacheStatus(detail: reason.rawValue)))
    }

    // MARK: Fetching

    /// Whether another client's fetch for the same key, perhaps under way for a while, will do.
    private func isCollapsible(_ forward: CacheStatus.Forward) -> Bool {
        guard self.request.method == .get, self.body == nil, forward != .request,
            forward != .bypass, forward != .method
        else { return false }
        let asked = CacheControl(request: self.request.fields).ignoringReload(self.policy)
        if asked.noCache || asked.noStore || asked.maxAge == .zero { return false }
        let own: [KnownField] = [
            .range, .ifRange, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince,
        ]
        return !self.request.fields.lines.contains { own.contains($0.known) }
    }

    private func fetch(
        _ objects: [StoredObject], _ validating: Int?, _ forward: CacheStatus.Forward,
        because reason: PolicyReason?
    ) {
        self.state.withLock { state in
            state.forward = forward
            state.reason = reason
            state.stored = objects
        }
        // What is missing for one client need not be what is missing for another.
        guard self.isCollapsible(forward), self.splicing(objects, validating) == nil else {
            return self.lead(objects, validating, isEntered: false)
        }
        let mine = Filling(key: self.key, window: self.configuration.window)
        // Before others can find it: once one has joined, it must get its fetch.
        guard self.state.withLock({ $0.machine.waits(for: mine) }) else { return }
        let now = self.session.clock.now()
        switch self.session.fillings.find(self.key, or: { mine }, at: now, era: self.era) {
        case .notWorthWhile: self.lead(objects, validating, isEntered: false)
        case .entered: self.lead(objects, validating, filling: mine, isEntered: true)
        case .existing(let filling): self.join(filling, or: objects, validating)
        }
    }

    private func lead(
        _ objects: [StoredObject], _ validating: Int?, filling: Filling? = nil, isEntered: Bool
    ) {
        let filling =
            filling ?? Filling(key: self.key, window: self.configuration.window)
        // A filling that others may have joined is fetched for, whoever has left.
        guard self.state.withLock({ $0.machine.waits(for: filling) }) || isEntered else { return }
        _ = filling.join(self, leads: true)
        let splicing = self.splicing(objects, validating)
        // A part that lacks what is asked for and cannot be completed is not worth validating.
        let covers =
            validating.map { objects.indices.contains($0) && self.covers(objects[$0]) } ?? false
        Fetch(
            session: self.session,
            order: Fetch.Order(
                request: self.request, body: self.body, key: self.key, stored: objects,
                neighbours: self.state.withLock { $0.neighbours },
                validating: splicing == nil && covers ? validating : nil, client: self.client,
                isEntered: isEntered, cachePolicy: self.cachePolicy,
                asksForVariants: splicing == nil && self.asksForVariants(validating),
                splicing: splicing),
            filling: filling
        ).start()
        // A client that left between the two had nobody to tell.
        if self.state.withLock({ $0.machine.isCancelled }) { filling.leave(self) }
    }

    /// Whether the origin is to say if another variant than the request selects would do.
    private func asksForVariants(_ validating: Int?) -> Bool {
        validating == nil && self.state.withLock { $0.forward } == .varyMiss
            && !self.request.fields.contains(FieldName(.range))
    }

    private func join(_ filling: Filling, or objects: [StoredObject], _ validating: Int?) {
        guard self.state.withLock({ $0.machine.waits(for: filling) }) else { return }
        switch filling.join(self) {
        case .waiting:
            if self.state.withLock({ $0.machine.isCancelled }) { filling.leave(self) }
        case .known(.response(let response), let reader) where !self.mayReuse(response.shared):
            reader?.cancel()
            self.lead(objects, validating, isEntered: false)
        case .known(let outcome, let reader):
            self.filling(settled: outcome, reader: reader, leads: false)
        case .tooLate:
            self.lead(objects, validating, isEntered: false)
        }
    }

    /// Whether a response whose head came before this request may answer it: as if it were stored.
    ///
    /// Those who waited for the head need not ask: it came after them, as from a validation.
    private func mayReuse(_ head: StoredHead?) -> Bool {
        guard let head = head.map({ self.session.judged($0, at: self.request.uri) }) else {
            return false
        }
        let verdict = Reuse.decide(
            request: self.request, candidates: [head], now: self.session.clock.now(),
            configuration: self.policy, policy: self.cachePolicy)
        if case .serve(_, _, stale: nil, _) = verdict { return true }
        return false
    }

    /// What another client's fetch brought is not for this one: make one of its own.
    private func fetchAlone() {
        let objects = self.state.withLock { $0.stored }
        let verdict = Reuse.decide(
            request: self.request, candidates: objects.map(\.head),
            now: self.session.clock.now(), configuration: self.policy,
            policy: self.cachePolicy)
        var validating: Int?
        if case .validate(let index, _, _) = verdict { validating = index }
        self.lead(objects, validating, isEntered: false)
    }

    // MARK: Answering

    /// Answers from a stored response.
    private func serve(
        _ object: StoredObject, status: CacheStatus, because reason: PolicyReason?,
        now: Timestamp, isValidated: Bool = false
    ) {
        var status = status
        status.key = self.shownKey
        guard
            let stored = StoredExchangeAnswer.make(
                object, for: self.request, now: now, status: status, isValidated: isValidated,
                configuration: self.configuration)
        else { return self.lead(self.state.withLock { $0.stored }, nil, isEntered: false) }
        self.session.store.noteUse(object.id, of: object.key, at: now)
        self.session.live.bytesFromStore.add(stored.bodyBytes)
        self.note(stored.answer, at: now, because: reason, storage: nil)
        self.answer(stored.answer)
    }

    func answer(_ answer: Answer) {
        var source: (any BodySource)?
        if case .source(let body) = answer.body { source = body }
        guard self.state.withLock({ $0.machine.answer(with: source) }) else {
            source?.cancel()
            return
        }
        self.client.exchange(answered: answer)
    }

    private func fail(_ failure: ExchangeFailure) {
        guard self.state.withLock({ $0.machine.answer(with: nil) }) else { return }
        self.session.live.failed.add()
        self.note(failure)
        self.client.exchange(failed: failure)
    }
}

extension ClientExchange {
    /// The key as `Cache-Status` shows it; nil where it is not to be shown.
    var shownKey: String? {
        guard self.configuration.showsCacheKey else { return nil }
        let parts = self.key.parts
        return "\(parts.method) \(parts.uri)"
    }

    private func note(_ failure: ExchangeFailure) {
        let reason = self.state.withLock { $0.reason }
        self.note(failure, at: self.session.clock.now(), because: reason)
    }
}

extension ClientExchange: FillingWaiter {
    func filling(settled outcome: Filling.Outcome, reader: FillingReader?, leads: Bool) {
        let (forward, asked) = self.state.withLock { ($0.forward, $0.reason) }
        switch outcome {
        case .response(let response):
            guard leads || self.isServed(by: response.shared) else {
                reader?.cancel()
                return self.fetchAlone()
            }
            self.relay(
                response, reader: reader, leads: leads, forward: forward, because: asked)
        case .spliced(let spliced):
            guard leads, let reader else {
                reader?.cancel()
                return self.fetchAlone()
            }
            self.splice(spliced, reader: reader, forward: forward, because: asked)
        case .stored(let object, let validated, let status, let reason):
            guard leads || self.isServed(by: object.head) else { return self.fetchAlone() }
            guard self.covers(object) else {
                // Another one than was asked about: as if nothing were stored.
                let objects = self.state.withLock { $0.stored }
                return self.lead(objects, nil, isEntered: false)
            }
            let now = self.session.clock.now()
            let freshness = Freshness.of(object.head, at: now, configuration: self.policy)
            if validated {
                self.session.live.validated.add()
            } else {
                self.session.live.hits.add()
                self.session.live.staleHits.add()
            }
            if !leads { self.session.live.collapsed.add() }
            self.serve(
                object,
                status: CacheStatus(
                    forward: forward, forwardStatus: status,
                    ttl: CacheStatus.ttl(of: freshness.remaining), collapsed: !leads,
                    detail: (reason ?? asked)?.rawValue),
                because: reason ?? asked, now: now, isValidated: validated)
        case .failed(var failure):
            failure.cacheStatus.forward = forward
            failure.cacheStatus.collapsed = !leads
            failure.cacheStatus.detail = asked?.rawValue
            if failure.party != .client { failure.nextHop = self.request.uri.host }
            self.fail(failure)
        }
    }

    private func isServed(by head: StoredHead?) -> Bool {
        guard let head,
            Storability.forbidsKeeping(head.fields, configuration: self.policy) == nil
        else { return false }
        return Variance.matches(head, self.request, configuration: self.policy)
    }

    /// Passes on what the origin answers, while it comes in.
    private func relay(
        _ response: Filling.Response, reader: FillingReader?, leads: Bool,
        forward: CacheStatus.Forward, because asked: PolicyReason?
    ) {
        let now = self.session.clock.now()
        var status = CacheStatus(
            forward: forward, forwardStatus: response.head.status, stored: response.isStored,
            collapsed: !leads, detail: (response.reason ?? asked)?.rawValue)
        status.key = self.shownKey
        var head = response.head
        if let shared = response.shared {
            let freshness = Freshness.of(shared, at: now, configuration: self.policy)
            status.ttl = CacheStatus.ttl(of: freshness.remaining)
            if !leads {
                // As from the store: without the fields that are the first client's alone.
                head = StoredAnswer.head(
                    for: shared, outcome: .full, bodyLength: 0, age: freshness.currentAge,
                    now: now, configuration: self.policy)
            }
        }
        head.fields.append(
            "Cache-Status", status.member(named: self.configuration.cacheName))
        var body = Answer.Body.none
        let isBodyless =
            self.request.method == .head || head.status.forbidsContent
            || response.bodyLength == .known(0) || response.bodyLength == .none
        if !isBodyless, let reader { body = .source(reader) } else { reader?.cancel() }
        if leads { self.session.live.forwarded.add() } else { self.session.live.collapsed.add() }
        let answer = Answer(
            head: head, bodyLength: response.announcedLength, body: body, cacheStatus: status,
            origin: response.origin)
        self.note(
            answer, at: now, because: asked,
            storage: response.shared == nil ? response.reason : nil)
        self.answer(answer)
    }
}
