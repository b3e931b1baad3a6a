package import LarderHTTP

/// Asking an origin whether stored responses still hold, and what its answer changes
/// (RFC 9111 §4.3); what is asked is in `Validation+Asking`.
package enum Validation {
    // MARK: The answer 304

    /// The stored responses that a 304 says are still good (§4.3.4); empty: it speaks of none of
    /// them, and must not be used.
    ///
    /// A 304 without any validator, which §4.3.4 does not provide for where the stored response has
    /// one, selects the only response that was asked about, unless a tag of the client's was sent too:
    /// our own condition is all that it can be an answer to.
    ///
    /// - Parameters:
    ///   - candidates: the responses whose validators were sent.
    ///   - matching: the indices of those that the request selects by `Vary`; nil: all. Another one
    ///     is selected by its strong entity tag alone, and not where it sets cookies, is a part, or has a
    ///     coding that the request does not take.
    ///   - request: the client's. Where the 304 has a tag that only the client sent, it answers the
    ///     client, whatever date it shares with what is stored: files that are made reproducibly all
    ///     have the same.
    package static func selected(
        by notModified: ResponseHead, among candidates: [StoredHead], matching: [Int]? = nil,
        answering request: Request? = nil
    ) -> [Int] {
        let matching = self.confirmable(matching, of: candidates)
        let tag = EntityTag(of: notModified.fields)
        let modified = self.lastModified(notModified.fields)
        if let tag, !tag.isWeak {
            let same = candidates.indices.filter {
                (matching.contains($0)
                    || self.mayAnswer(candidates[$0], by: notModified, to: request))
                    && EntityTag(of: candidates[$0].fields)?.matchesStrongly(tag) ?? false
            }
            if !same.isEmpty { return same }
        }
        if let tag, let request, self.isForClient(notModified, of: request),
            !candidates.contains(where: { EntityTag(of: $0.fields)?.matchesWeakly(tag) ?? false })
        {
            return []
        }
        if let modified, ModificationTime.isStrong(notModified.fields) {
            // Two strong tags that differ are those of two representations, made in the same second.
            let same = matching.filter {
                self.lastModified(candidates[$0].fields) == modified
                    && !self.contradicts(tag, EntityTag(of: candidates[$0].fields))
            }
            if !same.isEmpty { return same }
        }
        // "If none of the initial set contains at least one of the same strong validators, then the
        // cache MUST NOT use the new response to update any stored responses."
        if let tag, !tag.isWeak { return [] }
        guard tag != nil || modified != nil else {
            // It may as well say that the client has what we have not.
            if let request, self.addsTags(request, to: candidates, matching) { return [] }
            let asked = matching.filter { self.hasValidator(candidates[$0].fields) }
            return asked.count == 1 ? asked : []
        }
        let same = matching.filter {
            if let tag, let stored = EntityTag(of: candidates[$0].fields) {
                return tag.matchesWeakly(stored)
            }
            return modified != nil && self.lastModified(candidates[$0].fields) == modified
        }
        return Variance.mostRecent(of: candidates, indices: same).map { [$0] } ?? []
    }

    /// Whether a 304 that selects nothing stored speaks of what the client has itself: then it is the
    /// client's (§4.3.2).
    package static func isForClient(_ notModified: ResponseHead, of request: Request) -> Bool {
        guard let tag = EntityTag(of: notModified.fields) else { return false }
        return self.clientTags(request).contains { $0.matchesWeakly(tag) }
    }

    /// Whether it could answer by what a 304 says: not where its head allows a site to read it, and the 304,
    /// as of some servers, leaves out which one it is now.
    private static func mayAnswer(
        _ head: StoredHead, by notModified: ResponseHead, to request: Request?
    ) -> Bool {
        let allowed = FieldName("Access-Control-Allow-Origin")
        return self.mayAnswer(head)
            && (request.map { self.fitsCodings(head, of: $0) } ?? true)
            && !(Variance.depends(head, on: FieldName("Origin")) && head.fields.contains(allowed)
                && !notModified.fields.contains(allowed))
    }

    /// Whether a tag that only the client has was sent with ours.
    private static func addsTags(
        _ request: Request, to candidates: [StoredHead], _ matching: [Int]
    ) -> Bool {
        guard matching.allSatisfy({ candidates[$0].extent == nil }) else { return false }
        return self.clientTags(request).contains { tag in
            !candidates.contains { EntityTag(of: $0.fields)?.matchesWeakly(tag) ?? false }
        }
    }

    private static func contradicts(_ a: EntityTag?, _ b: EntityTag?) -> Bool {
        guard let a, let b, !a.isWeak, !b.isWeak else { return false }
        return !a.matchesStrongly(b)
    }

    /// The stored head after a 304 (§3.2): each field of the 304 takes the place of the stored ones of
    /// its name.
    ///
    /// A shared cache takes over no cookies, though §3.2 excepts nothing but what is said below: an
    /// origin that gives each client a session sets it in a 304, too, and would give it to all others.
    ///
    /// Never updated are the fields that are not stored at all, those that `private="…"` names in the
    /// updated head, cookies that settings keep out, and those that describe the stored content:
    /// `Content-Length`, `Content-Encoding`, `Content-Range`. What is stored already and governs how
    /// the rest is understood stays, though `private="…"` names it now. Where the 304 has no `Age` or
    /// `Date`, those of the old response no longer count.
    ///
    /// What `Vary` names is never less than before: many an origin leaves out of a 304 what it varies
    /// by. What it names beside that is taken over, with the fields of the request that the 304
    /// answers.
    ///
    /// - Parameter request: the one that the 304 answers; nil: `Vary` stays as it is.
    package static func freshen(
        _ head: StoredHead, with notModified: ResponseHead, for request: Request? = nil,
        requestTime: Timestamp, responseTime: Timestamp,
        configuration: PolicyConfiguration = PolicyConfiguration()
    ) -> StoredHead {
        let news = StoredFields.endToEnd(
            notModified.fields,
            ResponseDirectives(notModified.fields, configuration: configuration).control,
            configuration: configuration)
        var updates = Fields()
        let takesCookies = configuration.kind != .shared
        for line in news.lines
        where self.mayUpdate(line.known) && (takesCookies || line.known != .setCookie) {
            updates.append(line, of: news)
        }
        if !updates.has(.date) { updates.append("Date", HTTPDate.format(responseTime)) }
        let old = head.fields
        var fields = Fields()
        for line in old.lines where line.known != .age && !updates.names(line, of: old) {
            fields.append(line, of: old)
        }
        fields.append(contentsOf: updates)
        StoredFields.removeWithheld(&fields, updates: updates, configuration: configuration)
        // The bytes of a part came under a weak validator: that the same date is strong by now, or
        // has a tag, must not let others be put to them.
        if head.extent != nil, StrongValidator(of: old) == nil, StrongValidator(of: fields) != nil {
            fields.remove(FieldName(.etag))
            fields.remove(FieldName(.lastModified))
        }
        var freshened = head
        freshened.fields = fields
        if let request {
            self.widenVary(of: &freshened, by: notModified, for: request)
            if request.bearsCredentials { freshened.answersCredentials = true }
        }
        freshened.requestTime = requestTime
        freshened.responseTime = responseTime
        freshened.isInvalidated = false
        return freshened
    }

    /// A freshened head as that of the variant which a request selects (§4.1): the 304 that it was freshened
    /// with says that the content is the same.
    package static func variant(_ freshened: StoredHead, for request: Request) -> StoredHead {
        var head = freshened
        head.varyingFields = Variance.fields(selectedBy: head.fields, from: request)
        head.storedTime = head.responseTime
        return head
    }

    /// A freshened head with what is withheld of the 304: for the client that it answers, and nobody
    /// else; nil where there is nothing of the kind.
    package static func addingWithheld(
        of notModified: ResponseHead, to freshened: StoredHead, configuration: PolicyConfiguration
    ) -> StoredHead? {
        let names = StoredFields.withheld(freshened.fields, configuration: configuration)
        let news = notModified.fields
        let lines = news.lines.filter { line in
            self.mayUpdate(line.known) && !StoredFields.isExcluded(line)
                && names.contains { news.matches(line, $0) }
        }
        guard !lines.isEmpty else { return nil }
        var fields = freshened.fields
        // What stays stored, as it governs, is the old one.
        for line in lines where Storability.isGoverning(line.known) {
            fields.remove(FieldName(line.known))
        }
        for line in lines { fields.append(line, of: news) }
        var head = freshened
        head.fields = fields
        return head
    }

    /// A head that an answer has freshened or added to, with the cookies that the answer sets: for the
    /// client that it answers, and nobody else; nil where it sets none, or they are stored.
    ///
    /// - Parameter head: with what is withheld, if there is any.
    package static func addingCookies(
        of answer: ResponseHead, to head: StoredHead, configuration: PolicyConfiguration
    ) -> StoredHead? {
        guard configuration.kind == .shared, answer.fields.has(.setCookie) else { return nil }
        let (news, named) = (answer.fields, HopByHop.namedFields(answer.fields))
        let lines = news.lines.filter { $0.known == .setCookie && !named.contain($0, of: news) }
        guard !lines.isEmpty else { return nil }
        var head = head
        head.fields.remove(FieldName(.setCookie))
        for line in lines { head.fields.append(line, of: news) }
        return head
    }

    /// Takes over what the 304 varies by beyond what the stored response did.
    private static func widenVary(
        of head: inout StoredHead, by notModified: ResponseHead, for request: Request
    ) {
        guard notModified.fields.has(.vary) else { return }
        let known = Variance.varies(head.fields)
        let news = notModified.fields.members(FieldName(.vary)).filter {
            !known.contains(Variance.member($0))
        }
        // What matches nothing any more need not grow.
        guard !known.contains(.any), !news.isEmpty else { return }
        head.fields.append(
            "Vary", Array(news.joined(separator: [ASCII.comma, ASCII.space])))
        // All of them: for the request of old nobody knows what the new ones would have chosen.
        head.varyingFields = Variance.fields(selectedBy: head.fields, from: request)
    }

    private static func mayUpdate(_ name: KnownField) -> Bool {
        switch name {
        case .contentLength, .contentEncoding, .contentRange, .vary: false
        default: true
        }
    }

    // MARK: The answer to a HEAD

    /// What the answer to a HEAD says about a response that a GET stored (§4.3.5).
    package enum HeadEffect: Sendable, Equatable {
        /// They agree: the stored head is freshened like by a 304.
        case freshens
        /// They differ: the stored response is to be treated as stale.
        case invalidates
        /// The answer says nothing about it.
        case none
    }

    /// Compares the answer to a HEAD with a stored response that the same request selects.
    ///
    /// They agree where a validator of both is the same: an answer without one may be of other
    /// content, and the same length says nothing of it.
    ///
    /// - Parameters:
    ///   - bodyLength: the length of the stored content.
    ///   - isConditional: the HEAD bore the validators of what is stored; an answer other than 304
    ///     that does not name the stored one's says that it is no longer current.
    package static func effect(
        ofHead response: ResponseHead, on head: StoredHead, bodyLength: UInt64,
        isConditional: Bool = false
    ) -> HeadEffect {
        guard response.status == .ok, head.status == .ok else {
            return response.status == head.status || response.status.isServerError
                ? .none : .invalidates
        }
        let newTag = EntityTag(of: response.fields)
        if let newTag, EntityTag(of: head.fields)?.matchesWeakly(newTag) != true {
            return .invalidates
        }
        let newTime = self.lastModified(response.fields)
        if let newTime, self.lastModified(head.fields) != newTime { return .invalidates }
        if let length = response.fields.first(FieldName(.contentLength)),
            UInt64(exactDigits: length) != bodyLength
        {
            return .invalidates
        }
        if isConditional, self.hasValidator(head.fields), newTag == nil,
            newTime == nil || EntityTag(of: head.fields) != nil
        {
            return .invalidates
        }
        return newTag == nil && newTime == nil ? .none : .freshens
    }
}

/// `Last-Modified` as a validator (RFC 9110 §8.8.2.2).
enum ModificationTime {
    /// Whether it is strong: at least one second before the `Date` of the same response, so that a
    /// second change within its second cannot hide behind it.
    static func isStrong(_ fields: Fields) -> Bool {
        let epoch = Timestamp(seconds: 0)
        guard let modified = fields.date(.lastModified, now: epoch),
            let date = fields.date(.date, now: epoch)
        else { return false }
        return date - modified >= .seconds(1)
    }
}
