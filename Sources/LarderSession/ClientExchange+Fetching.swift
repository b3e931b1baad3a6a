import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// What goes to the origin: leading a fetch, or joining one that is under way.
extension ClientExchange {
    /// Whether another client's fetch for the same key, perhaps under way for a while, will do.
    ///
    /// - Parameter ofPart: of what it brings this one may make its own answer.
    func isCollapsible(_ forward: CacheStatus.Forward, ofPart: Bool = false) -> Bool {
        guard self.collapses, self.request.method == .get, self.body == nil, forward != .request,
            forward != .bypass, forward != .method
        else { return false }
        let isConditional = self.request.fields.lines.contains { line in
            switch line.known {
            case .range: !ofPart
            case .ifRange, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince: true
            default: false
            }
        }
        guard !isConditional else { return false }
        guard CacheControl.isGiven(inRequest: self.request.fields) else { return true }
        var asked = CacheControl(request: self.request.fields)
        asked.ignoreReload(self.policy)
        return !asked.noCache && !asked.noStore && asked.maxAge != .zero
    }

    func fetch(
        _ objects: [StoredObject], _ validating: Int?, _ forward: CacheStatus.Forward,
        because reason: PolicyReason?
    ) {
        self.state.withLock { state in
            state.forward = forward
            state.reason = reason
            state.stored = objects
            state.validates = validating != nil && forward != .partial
            state.splicing = nil
            state.reach = nil
        }
        if validating != nil, let splicing = self.splicing(objects, validating) {
            if self.joinsWhole(splicing.splice, forward) { return }
            return self.fetch(splicing, objects, validating, forward)
        }
        if let range = self.joinableRange(forward) {
            return self.fetch(range, objects, validating)
        }
        guard self.isCollapsible(forward), self.mayShareValidation(objects, validating) else {
            return self.lead(objects, validating, isEntered: false)
        }
        self.enter(
            Filling(key: self.key, window: self.configuration.window), objects, validating)
    }

    /// Whether what a validation brings may be of use to others: they would wait in vain for what is to
    /// be validated for each request.
    private func mayShareValidation(_ objects: [StoredObject], _ validating: Int?) -> Bool {
        guard let validating, objects.indices.contains(validating) else { return true }
        return !Reuse.isValidatedForEach(objects[validating].head, configuration: self.policy)
    }

    /// Fetches what is missing of what is stored.
    private func fetch(
        _ splicing: Fetch.Splicing, _ objects: [StoredObject], _ validating: Int?,
        _ forward: CacheStatus.Forward
    ) {
        guard self.isCollapsible(forward, ofPart: true) else {
            return self.lead(objects, validating, isEntered: false)
        }
        self.state.withLock { $0.splicing = splicing }
        self.enter(
            Filling(
                key: splicing.object.key, window: self.configuration.window,
                part: .gap(Filling.Gap(splicing))),
            objects, validating)
    }

    /// Joins the fetch of the whole that has brought already what is missing first of a stored part: the
    /// client has everything as soon, and the rest is not asked for twice.
    ///
    /// - Returns: whether it did, or has nobody to do it for.
    private func joinsWhole(_ splice: Splice, _ forward: CacheStatus.Forward) -> Bool {
        guard self.isCollapsible(forward), let whole = self.session.fillings.whole(self.key),
            case .arriving(let response, let received, isPaused: false) = whole.arrival,
            splice.gap.first < received, self.mayReuse(response.shared)
        else { return false }
        return self.reads(response, of: whole, from: 0)
    }

    /// Joins the filling that brings the same, or leads this one, so that others may join it.
    func enter(_ mine: Filling, _ objects: [StoredObject], _ validating: Int?) {
        // Before others can find it: once one has joined, it must get its fetch.
        guard self.state.withLock({ $0.machine.waits(for: mine) }) else { return }
        let now = self.session.clock.now()
        let (looks, mark) = self.looked
        let mayLookAgain = looks < Self.mostLooks
        let hasMore = { mayLookAgain && self.session.storings.hasEnded(mine.key, since: mark) }
        let place =
            mine.part == nil
            ? self.session.fillings.find(
                self.key, or: { mine }, at: now, era: self.era, unless: hasMore)
            : self.session.fillings.find(part: mine, at: now, era: self.era, unless: hasMore)
        switch place {
        case .storedMeanwhile: self.lookAgain()
        // What was found may be what was removed: nobody else may have it, or wait for it.
        case .removedMeanwhile where mayLookAgain: self.lookAgain()
        case .notWorthWhile, .removedMeanwhile:
            self.lead(
                objects, validating, filling: mine.gap == nil ? mine : nil, isEntered: false)
        case .entered: self.lead(objects, validating, filling: mine, isEntered: true)
        case .existing(let filling): self.join(filling, or: objects, validating)
        }
    }

    /// Fetches alone, as if nothing were stored that the origin could be asked about.
    func leadUnconditionally() {
        let objects = self.state.withLock { $0.stored }
        self.lead(objects, nil, isEntered: false, asksForVariants: false)
    }

    func lead(
        _ objects: [StoredObject], _ validating: Int?, filling: Filling? = nil, isEntered: Bool,
        asksForVariants: Bool = true
    ) {
        let filling =
            filling ?? Filling(key: self.key, window: self.configuration.window)
        // A filling that others may have joined is fetched for, whoever has left.
        guard self.state.withLock({ $0.machine.waits(for: filling) }) || isEntered else { return }
        _ = filling.join(self, leads: true)
        let splicing = validating == nil ? nil : self.splicing(objects, validating)
        // A part that lacks what is asked for and cannot be completed is not worth validating.
        let covers =
            validating.map { objects.indices.contains($0) && self.covers(objects[$0]) } ?? false
        let (marks, neighbours) = self.state.withLock { ($0.marks, $0.neighbours) }
        Fetch(
            session: self.session,
            order: Fetch.Order(
                request: self.request, snapshot: self.snapshot, body: self.body, key: self.key,
                stored: objects, mark: marks.storings, removals: marks.removals,
                neighbours: neighbours,
                validating: splicing == nil && covers ? validating : nil, client: self.client,
                isEntered: isEntered, cachePolicy: self.cachePolicy,
                asksForVariants: asksForVariants && splicing == nil
                    && self.asksForVariants(validating),
                splicing: splicing, gate: self.gate,
                mayBeAnsweredAtOnce: self.mayBeAnsweredAtOnce, source: self.source,
                owner: self.owner),
            filling: filling
        ).start()
        // A client that left between the two had nobody to tell.
        if self.state.withLock({ $0.machine.isCancelled }) { filling.leave(self) }
    }

    /// Whether the origin is to say if another variant than the request selects would do.
    func asksForVariants(_ validating: Int?) -> Bool {
        validating == nil && self.state.withLock { $0.forward } == .varyMiss
            && !self.request.fields.has(.range)
    }

    func join(_ filling: Filling, or objects: [StoredObject], _ validating: Int?) {
        let (waits, hasWaited, mayHaveGone) = self.state.withLock {
            ($0.machine.waits(for: filling), $0.hasWaited, $0.mayHaveGone)
        }
        guard waits else { return }
        let isPatient = hasWaited || filling.part != nil
        switch filling.join(self, isPatient: isPatient) {
        case .waiting:
            if self.state.withLock({ $0.machine.isCancelled }) { return filling.leave(self) }
            if mayHaveGone { filling.doubt(self) }
            if !isPatient, filling.beginsWaiting() { self.session.timeWaiting(for: filling) }
        case .known(.response(let response), let reader)
        where self.state.withLock({ $0.reach }) == nil && !self.mayReuse(response.shared):
            reader?.cancel()
            self.lead(objects, validating, isEntered: false)
        case .known(.spliced(let spliced), let reader)
        where !self.mayReuse(spliced.object.head.whole):
            reader?.cancel()
            self.lead(objects, validating, isEntered: false)
        case .known(let outcome, let reader):
            self.filling(settled: outcome, reader: reader, leads: false)
        case .tooLate:
            if self.looksAgain(beyond: objects) { return }
            self.lead(objects, validating, isEntered: false)
        }
    }

    /// Whether the response that another client's request led to may answer this one: as if it were
    /// stored (RFC 9111 §4).
    ///
    /// Also for those who waited for its head: requests are combined only as far as the response may
    /// be reused for each of them, and one with `no-cache`, or stale as it comes, answers no other
    /// request without a validation. A validation is everybody's who waits for it where it makes the
    /// response fresh (`Reuse.isReusable`).
    func mayReuse(_ head: StoredHead?) -> Bool {
        guard let head = head.map({ self.session.judged($0, at: self.request.uri) }),
            self.session.mayShow(head, for: self.request)
        else { return false }
        let verdict = Reuse.decide(
            request: self.request, candidates: [head], now: self.session.clock.now(),
            configuration: self.policy, policy: self.cachePolicy)
        if case .serve(_, _, stale: nil, _) = verdict { return true }
        return false
    }
}
