import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// Bytes that are missing from what is stored, and parts that are stored.
extension Fetch {
    /// What the head means for the gap that was asked for.
    func fit(_ head: ResponseHead, _ bodyLength: BodyLength) -> FetchMachine.Fit {
        guard self.state.withLock({ $0.asksForGap }), let splicing = self.order.splicing else {
            return .notAsked
        }
        if head.status == .partialContent, self.isOfSameResource(splicing.object.head, head),
            splicing.splice.answer(head, bodyLength: bodyLength, to: self.order.request) != nil
        {
            return .fits
        }
        if splicing.hasBegun { return .tooLate }
        let fields = self.order.request.fields
        let hasCondition =
            fields.contains(FieldName(.ifNoneMatch)) || fields.contains(FieldName(.ifModifiedSince))
        switch head.status {
        case .partialContent, .rangeNotSatisfiable: return .repeats
        // To a condition that nobody sent.
        case .notModified where !hasCondition: return .repeats
        default: return .relays
        }
    }

    /// Asks for what the client asked for, as nothing that came can be put together with what is
    /// stored.
    func repeatAsAsked() {
        self.leaveTable()
        self.state.withLock { $0.asksForGap = false }
        self.send(self.order.request)
    }

    /// The representation is not what the client has the beginning of.
    func breakSplice() {
        self.cancelUpstream()
        self.leaveTable()
        // Others may still make use of the new representation: this is a failure for this one alone.
        self.settle(
            .failed(
                ExchangeFailure(
                    UpstreamFailure(
                        .httpResponseIncomplete, party: .client,
                        detail: "the representation has changed"))),
            sink: nil)
        _ = self.filling.finished(.failed(.cancelled))
        self.upstreamEnded()
    }

    /// Puts what arrives together with what is stored, and into the store.
    func splice(_ head: ResponseHead, bodyLength: BodyLength, origin: NextHop, now: Timestamp) {
        guard let splicing = self.order.splicing,
            let (answer, part) = splicing.splice.answer(
                head, bodyLength: bodyLength, to: self.order.request)
        else { return }
        self.session.live.gapFetches.add()
        let asking = self.answered(splicing.splice.request(self.order.request))
        self.expect(.known(part.length), of: head.status)
        self.state.withLock { state in
            state.resumption = Resumption(
                range: part.range, completeLength: answer.completeLength,
                validator: splicing.splice.validator)
            state.counted = part.length
            state.isKept = true
            state.isSpliced = true
        }
        var object = splicing.object
        let verdict = Storability.judge(
            request: asking, response: head, bodyLength: bodyLength, now: now,
            configuration: self.policy)
        let sink: (any ObjectSink)?
        (object.head, sink) = self.combine(
            object, head, part, isStored: verdict == .storable, now: now)
        let withheld = Validation.addingWithheld(
            of: head, to: object.head, configuration: self.policy)
        let cookies = Validation.addingCookies(
            of: head, to: withheld ?? object.head, configuration: self.policy)
        if sink != nil {
            self.offerToOwner(length: part.length, from: part.range.lowerBound)
        }
        self.settle(
            .spliced(
                Filling.Spliced(
                    object: object, own: cookies ?? withheld, answer: answer, part: part,
                    status: head.status, isStored: sink != nil, origin: origin)),
            sink: sink)
        self.afterSettling()
    }

    /// Takes the fields of a new part over, and begins to add its bytes to the stored ones.
    private func combine(
        _ object: StoredObject, _ response: ResponseHead, _ part: PartialContent.Part,
        isStored: Bool, now: Timestamp
    ) -> (StoredHead, (any ObjectSink)?) {
        let (requestTime, removals) = self.state.withLock { ($0.requestTime, $0.removals) }
        var head = Combination.head(
            object.head, combinedWith: response, for: self.answered(self.order.request),
            requestTime: requestTime, responseTime: now, configuration: self.policy)
        guard isStored else { return (head, nil) }
        var kept = object
        kept.head = head
        self.keep(kept)
        if let length = part.completeLength { _ = head.extent?.learn(completeLength: length) }
        guard let extent = object.head.extent, !extent.contains(part.range) else {
            return (head, nil)
        }
        let storing = Storing(
            head, for: object.key, range: part.range, length: part.length, from: self.filling,
            isAddition: true)
        let sink = self.beginning(storing) {
            self.session.store.extend(
                object.id, of: object.key, at: part.range.lowerBound, length: part.length,
                completeLength: part.completeLength ?? extent.completeLength, begun: removals,
                observer: self)
        }
        return (head, sink)
    }

    /// Begins to store the part that a 206 to the client's own range brings.
    func beginStoringPart(
        _ head: ResponseHead, _ bodyLength: BodyLength, now: Timestamp
    ) -> (sink: (any ObjectSink)?, stored: StoredHead?, reason: PolicyReason?) {
        let request = self.order.request
        switch PartialContent.read(head, bodyLength: bodyLength, to: request) {
        case .notStorable(let reason): return (nil, nil, reason)
        case .part(let part):
            self.state.withLock { state in
                state.counted = part.length
                state.endsWithConnection =
                    bodyLength == .unknown && !head.fields.has(.transferEncoding)
                    && state.connection.version != .http2
            }
            // What another part brought while this one was on its way is there already.
            var stored = self.order.stored
            if let resident = self.session.store.lookupResident(self.order.key),
                !self.order.key.leavesOutSearch
            {
                stored = resident + stored.filter { $0.key != self.order.key }
            }
            stored = stored.filter { self.isOfSameResource($0.head, head) }
            switch Combination.of(
                part, head, to: request, with: stored.map(\.head),
                bodyLengths: stored.map(\.bodyLength), configuration: self.policy)
            {
            case .extends(let index):
                let own = self.storedHead(of: head, part, now: now)
                let (_, sink) = self.combine(stored[index], head, part, isStored: true, now: now)
                return (sink, own, nil)
            case .begins where PartialContent.hasAllFields(head, to: request):
                let own = self.storedHead(of: head, part, now: now)
                return (self.beginStoring(own, length: part.length, among: stored), own, nil)
            case .begins, .unrelated: return (nil, nil, .partialResponse)
            }
        }
    }

    private func storedHead(
        of response: ResponseHead, _ part: PartialContent.Part, now: Timestamp
    ) -> StoredHead {
        let requestTime = self.state.withLock { $0.requestTime }
        var head = StoredHead(
            storing: response, part: part, to: self.answered(self.order.request),
            requestTime: requestTime,
            responseTime: now, configuration: self.policy)
        self.noteTrail(in: &head)
        return head
    }

    /// Whether a stored response has all that answers the request.
    func covers(_ object: StoredObject) -> Bool {
        let plan = AnswerPlan.make(
            self.order.request, from: object.head, bodyLength: object.bodyLength)
        if case .stored = plan { return true }
        return false
    }
}
