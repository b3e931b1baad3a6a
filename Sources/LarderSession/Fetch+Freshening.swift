import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// What an answer says of responses that are stored: that they still hold (304), that they agree with it
/// (HEAD), or that it supersedes them.
extension Fetch {
    /// Gives the clients what a 304 says is still good, and the store what it changes of that
    /// (RFC 9111 §4.3.4).
    ///
    /// - Parameter indices: those of `order.stored` that it selects.
    func freshen(
        with head: ResponseHead, indices: [Int], origin: NextHop, now: Timestamp
    ) {
        let requestTime = self.state.withLock { $0.requestTime }
        let answered = self.answered(self.order.request)
        var chosen: StoredObject?
        var own: StoredHead?
        var reason: PolicyReason?
        var isChosenShared = false
        // What the 304 says of another variant than the request's holds for this request alone.
        let isSelected = { self.matching.contains($0) }
        var variant: StoredObject?
        for index in indices.filter(isSelected) + indices.filter({ !isSelected($0) })
        where self.order.stored.indices.contains(index) {
            var object = self.order.stored[index]
            object.head = Validation.freshen(
                object.head, with: head, for: answered, requestTime: requestTime,
                responseTime: now, configuration: self.policy)
            if !isSelected(index) {
                if chosen != nil { break }
                object.head = Validation.variant(object.head, for: answered)
            }
            self.noteTrail(in: &object.head)
            let isShared = self.mayUpdate(to: object)
            if isShared, isSelected(index) { self.keep(object) }
            if isShared, !isSelected(index) { variant = object }
            let isBetter = chosen.map { !self.answers($0) && self.answers(object) } ?? true
            if isBetter || index == self.order.validating {
                reason = isShared ? nil : .requestAuthorization
                if let own = Validation.addingWithheld(
                    of: head, to: object.head, configuration: self.policy)
                {
                    object.head = own
                    reason = .responsePrivate
                }
                own = Validation.addingCookies(
                    of: head, to: object.head, configuration: self.policy)
                chosen = object
                isChosenShared = isShared
            }
        }
        guard let chosen else { return }
        if isChosenShared { self.dropDeselected(by: head, indices) }
        let copy = variant.flatMap { self.storeVariant($0, now: now) }
        self.settle(
            Filling.Stored(
                object: chosen, own: own, isValidated: true, status: head.status, reason: reason,
                origin: origin))
        // Who waits comes first.
        copy?()
    }

    /// Removes what the request selects and a 304 did not, which names another entity tag: the origin has
    /// said that another response is the current one (RFC 9111 §4.3.4).
    ///
    /// Left where it is it would be preferred again, never be current, and stand in as old content.
    private func dropDeselected(by head: ResponseHead, _ indices: [Int]) {
        guard let named = EntityTag(of: head.fields) else { return }
        for index in self.matching
        where !indices.contains(index) && self.order.stored.indices.contains(index) {
            let object = self.order.stored[index]
            guard self.isOfTarget(object), let tag = EntityTag(of: object.head.fields),
                !tag.matchesWeakly(named)
            else { continue }
            self.drop(object.key, object.id)
        }
    }

    /// Whether it is whole, or all of it that is asked for.
    private func answers(_ object: StoredObject) -> Bool {
        object.head.extent == nil || self.covers(object)
    }

    /// Whether a stored head may be replaced for all by what the answer to this request made of it.
    private func mayUpdate(to object: StoredObject) -> Bool {
        Storability.mayUpdate(
            self.answered(self.order.request), to: object.head.fields, configuration: self.policy)
    }

    /// The answer to a HEAD speaks of what a GET stored (RFC 9111 §4.3.5).
    func compare(_ head: ResponseHead, now: Timestamp) {
        let (requestTime, isFirst) = self.state.withLock { ($0.requestTime, $0.requests == 1) }
        for object in self.order.stored
        where Variance.matches(object.head, self.order.request, configuration: self.policy)
            && self.isOfSameResource(object.head, head)
        {
            var object = object
            // Of a part whose length nobody knows the HEAD's own word cannot be wrong.
            let told = head.fields.first(FieldName(.contentLength)).flatMap {
                UInt64(exactDigits: $0)
            }
            let isDecoded =
                self.policy.storesDecoded
                && object.head.fields.contains(FieldName(.contentEncoding))
            let length =
                isDecoded ? told : object.head.completeLength(bodyLength: object.bodyLength) ?? told
            switch Validation.effect(
                ofHead: head, on: object.head, bodyLength: length ?? object.bodyLength,
                // What is asked again goes without conditions.
                isConditional: isFirst && self.conditional != nil)
            {
            // Of the answer to a request with no-store nothing is kept (§5.2.1.5).
            case .freshens where CacheControl(self.order.request.fields).noStore: continue
            case .freshens:
                object.head = Validation.freshen(
                    object.head, with: head, for: self.order.request, requestTime: requestTime,
                    responseTime: now, configuration: self.policy)
                guard self.mayUpdate(to: object) else { continue }
            case .invalidates where object.head.isInvalidated: continue
            case .invalidates:
                object.head.isInvalidated = true
                // Nor may anybody join what brought it, if that is still on its way to the disk.
                self.session.fillings.forget(object.key)
            case .none: continue
            }
            self.keep(object)
        }
    }

    /// A full answer to a validation says that none of what was nominated will do (RFC 9111 §4.3.3);
    /// so does one where nothing had a validator to nominate it by.
    ///
    /// Where it is not stored itself, what it supersedes would come back from behind it, as stale
    /// content that stands in; so that has to be validated before it is used again.
    func supersede(by status: StatusCode) {
        for object in self.superseded(by: status) { self.invalidate(object) }
    }

    /// The same for an answer whose head came a while ago: what has changed meanwhile is left alone.
    func supersedeLate(by status: StatusCode) {
        for object in self.superseded(by: status) {
            self.session.store.lookup(object.key) { current in
                guard current.contains(where: { $0.id == object.id && $0.head == object.head })
                else { return }
                self.invalidate(object)
            }
        }
    }

    private func superseded(by status: StatusCode) -> [StoredObject] {
        guard self.order.validating != nil, self.order.request.method == .get else { return [] }
        switch status.rawValue {
        case 200, 203, 204, 301, 308, 404, 410: break
        default: return []
        }
        return self.matching.filter(self.order.stored.indices.contains)
            .map { self.order.stored[$0] }.filter { !$0.head.isInvalidated }
    }

    private func invalidate(_ object: StoredObject) {
        var object = object
        object.head.isInvalidated = true
        self.session.fillings.forget(self.order.key, but: self.filling)
        self.keep(object, but: self.filling)
    }
}
