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
        var stored: [StoredObject] = []
    }

    private let session: Session
    private let request: Request
    private let body: (any BodySource)?
    private let options: ExchangeOptions
    private let client: any ExchangeClient
    private let key: CacheKey
    /// The table of fillings, as it was before the store was asked.
    private let era: UInt64
    private let state = Mutex(State())

    init(
        session: Session, request: Request, body: (any BodySource)?, options: ExchangeOptions,
        client: any ExchangeClient
    ) {
        self.session = session
        self.request = request
        self.body = body
        self.options = options
        self.client = client
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
        if let resident = self.session.store.lookupResident(self.key) {
            return self.act(on: resident, now: self.session.clock.now())
        }
        self.session.store.lookup(self.key) { objects in
            self.act(on: objects, now: self.session.clock.now())
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

    private var policy: PolicyConfiguration { self.session.configuration.policy }

    // MARK: Deciding

    private func act(on objects: [StoredObject], now: Timestamp) {
        let verdict = Reuse.decide(
            request: self.request, candidates: objects.map(\.head), now: now,
            configuration: self.policy)
        switch verdict {
        case .serve(let index, let freshness, let stale, let revalidates):
            guard objects.indices.contains(index) else { return self.fetch(objects, nil, .miss) }
            guard self.covers(objects[index]) else {
                return self.fetch(objects, index, .partial)
            }
            var status = CacheStatus(
                hit: true, ttl: freshness.remaining.inSeconds, detail: stale?.rawValue)
            if stale != nil { self.session.live.staleHits.add() }
            status.forward = nil
            self.session.live.hits.add()
            self.serve(objects[index], status: status, now: now)
            if revalidates {
                self.session.revalidate(
                    self.request, self.key, objects, index, era: self.era)
            }
        case .validate(let index, let forward, _):
            self.fetch(objects, index, forward)
        case .fetch(let forward, _):
            self.fetch(objects, nil, forward)
        case .refuse(let reason):
            self.fail(
                ExchangeFailure(
                    status: .gatewayTimeout, error: nil,
                    detail: "not in the cache, and the request allows nothing else",
                    party: .client, cacheStatus: CacheStatus(detail: reason.rawValue)))
        }
    }

    // MARK: Fetching

    /// Whether another client's fetch for the same key, perhaps under way for a while, will do.
    private func isCollapsible(_ forward: CacheStatus.Forward) -> Bool {
        guard self.request.method == .get, self.body == nil, forward != .request,
            forward != .bypass, forward != .method
        else { return false }
        let asked = CacheControl(request: self.request.fields)
        if asked.noCache || asked.noStore || asked.maxAge == .zero { return false }
        let own: [KnownField] = [
            .range, .ifRange, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince,
        ]
        return !self.request.fields.lines.contains { own.contains($0.known) }
    }

    private func fetch(
        _ objects: [StoredObject], _ validating: Int?, _ forward: CacheStatus.Forward
    ) {
        self.state.withLock { state in
            state.forward = forward
            state.stored = objects
        }
        // What is missing for one client need not be what is missing for another.
        guard self.isCollapsible(forward), self.splicing(objects, validating) == nil else {
            return self.lead(objects, validating, isEntered: false)
        }
        let mine = Filling(key: self.key, window: self.session.configuration.window)
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
            filling ?? Filling(key: self.key, window: self.session.configuration.window)
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
                validating: splicing == nil && covers ? validating : nil, client: self.client,
                isEntered: isEntered, splicing: splicing),
            filling: filling
        ).start()
        // A client that left between the two had nobody to tell.
        if self.state.withLock({ $0.machine.isCancelled }) { filling.leave(self) }
    }

    private func plan(_ object: StoredObject) -> AnswerPlan {
        AnswerPlan.make(self.request, from: object.head, bodyLength: object.bodyLength)
    }

    private func covers(_ object: StoredObject) -> Bool {
        if case .stored = self.plan(object) { return true }
        return false
    }

    /// What is missing of a stored part that answers the request but for that.
    private func splicing(_ objects: [StoredObject], _ index: Int?) -> Fetch.Splicing? {
        guard let index, objects.indices.contains(index), self.body == nil,
            case .splice(let splice) = self.plan(objects[index])
        else { return nil }
        return Fetch.Splicing(splice: splice, object: objects[index])
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
        guard let head else { return false }
        let verdict = Reuse.decide(
            request: self.request, candidates: [head], now: self.session.clock.now(),
            configuration: self.policy)
        if case .serve(_, _, stale: nil, _) = verdict { return true }
        return false
    }

    /// What another client's fetch brought is not for this one: make one of its own.
    private func fetchAlone() {
        let objects = self.state.withLock { $0.stored }
        let verdict = Reuse.decide(
            request: self.request, candidates: objects.map(\.head),
            now: self.session.clock.now(), configuration: self.policy)
        var validating: Int?
        if case .validate(let index, _, _) = verdict { validating = index }
        self.lead(objects, validating, isEntered: false)
    }

    // MARK: Answering

    /// Answers from a stored response.
    private func serve(
        _ object: StoredObject, status: CacheStatus, now: Timestamp, isValidated: Bool = false
    ) {
        guard
            let stored = StoredExchangeAnswer.make(
                object, for: self.request, now: now, status: status, isValidated: isValidated,
                configuration: self.session.configuration)
        else { return self.lead(self.state.withLock { $0.stored }, nil, isEntered: false) }
        self.session.store.noteUse(object.id, of: self.key, at: now)
        self.session.live.bytesFromStore.add(stored.bodyBytes)
        self.answer(stored.answer)
    }

    private func answer(_ answer: Answer) {
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
        self.client.exchange(failed: failure)
    }
}

extension ClientExchange: FillingWaiter {
    func filling(settled outcome: Filling.Outcome, reader: FillingReader?, leads: Bool) {
        let forward = self.state.withLock { $0.forward }
        switch outcome {
        case .response(let response):
            guard leads || self.isServed(by: response.shared) else {
                reader?.cancel()
                return self.fetchAlone()
            }
            self.relay(response, reader: reader, leads: leads, forward: forward)
        case .spliced(let spliced):
            guard leads, let reader else {
                reader?.cancel()
                return self.fetchAlone()
            }
            self.splice(spliced, reader: reader, forward: forward)
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
                    forward: forward, forwardStatus: status, ttl: freshness.remaining.inSeconds,
                    collapsed: !leads, detail: reason?.rawValue),
                now: now, isValidated: validated)
        case .failed(var failure):
            failure.cacheStatus.forward = forward
            failure.cacheStatus.collapsed = !leads
            self.fail(failure)
        }
    }

    private func isServed(by head: StoredHead?) -> Bool {
        guard let head else { return false }
        return Variance.matches(head, self.request, configuration: self.policy)
    }

    /// Answers with what is stored and what comes in, put together.
    private func splice(
        _ spliced: Filling.Spliced, reader: FillingReader, forward: CacheStatus.Forward
    ) {
        let now = self.session.clock.now()
        let stored = StoredExchangeAnswer.make(
            spliced, reader: reader,
            opener: GapFetch.opener(self.session, self.request, spliced.object), now: now,
            forward: forward, configuration: self.session.configuration)
        self.session.store.noteUse(spliced.object.id, of: self.key, at: now)
        self.session.live.forwarded.add()
        self.session.live.bytesFromStore.add(stored.bodyBytes)
        self.answer(stored.answer)
    }

    /// Passes on what the origin answers, while it comes in.
    private func relay(
        _ response: Filling.Response, reader: FillingReader?, leads: Bool,
        forward: CacheStatus.Forward
    ) {
        let status = CacheStatus(
            forward: forward, forwardStatus: response.head.status, stored: response.isStored,
            collapsed: !leads, detail: response.reason?.rawValue)
        var head = response.head
        if !leads, let shared = response.shared {
            let age = Freshness.of(
                shared, at: self.session.clock.now(), configuration: self.policy
            ).currentAge
            head.fields.set("Age", String(max(0, age.inSeconds)))
        }
        head.fields.append(
            "Cache-Status", status.member(named: self.session.configuration.cacheName))
        var body = Answer.Body.none
        let isBodyless =
            self.request.method == .head || head.status.forbidsContent
            || response.bodyLength == .known(0) || response.bodyLength == .none
        if !isBodyless, let reader { body = .source(reader) } else { reader?.cancel() }
        if leads { self.session.live.forwarded.add() } else { self.session.live.collapsed.add() }
        self.answer(
            Answer(
                head: head, bodyLength: response.announcedLength, body: body, cacheStatus: status,
                origin: response.origin))
    }
}
