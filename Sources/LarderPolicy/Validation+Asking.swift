package import LarderHTTP

/// What an origin is asked (RFC 9111 §4.3.1).
extension Validation {
    /// The request that validates stored responses (§4.3.1): all their entity tags, and the time of
    /// modification where one value speaks for all of them.
    ///
    /// Of many tags the most recent ones, as many as fit a line that origins take (`longestTags`).
    ///
    /// The client's own conditions and range are taken out: the answer must speak of what is stored,
    /// and a whole response must come if it no longer holds. Only its list of entity tags stays,
    /// behind ours (§4.3.2): the origin may find that the client has what we have not; but not behind
    /// that of partial content, for whose sake a client must not miss the rest. nil where nothing
    /// stored has a validator.
    ///
    /// - Parameter matching: the indices of those that the request selects by `Vary`; nil: all. Of
    ///   the others only strong entity tags are sent (§4.1): a weak one, or a time, may be that of
    ///   several representations of the resource, a strong one never is (RFC 9110 §8.8.1). A part
    ///   of one could not answer, nor one that sets the cookies of another client; and what is not
    ///   coded is not offered to who takes codings, nor what is coded to who does not take that.
    package static func conditionalRequest(
        _ request: Request, validating candidates: [StoredHead], matching: [Int]? = nil
    ) -> Request? {
        // curl knows no conditions on ftp.
        guard request.uri.scheme != .ftp else { return nil }
        let matching = self.confirmable(matching, of: candidates)
        var tags: [EntityTag] = []
        var room = Self.longestTags
        func add(_ tag: EntityTag) {
            let size = tag.bytes.count + 2
            guard !tags.contains(tag), size <= room else { return }
            room -= size
            tags.append(tag)
        }
        let others = candidates.indices.filter { index in
            !matching.contains(index) && self.mayAnswer(candidates[index])
                && self.fitsCodings(candidates[index], of: request)
        }
        for index in matching + self.newestFirst(others, candidates) {
            guard let tag = EntityTag(of: candidates[index].fields),
                matching.contains(index) || !tag.isWeak
            else { continue }
            add(tag)
        }
        let modified = self.commonLastModified(
            matching.map { candidates[$0] }, hasTags: !tags.isEmpty)
        guard !tags.isEmpty || modified != nil else { return nil }
        var conditional = self.unconditional(request)
        if !tags.isEmpty {
            if matching.allSatisfy({ candidates[$0].extent == nil }) {
                for tag in self.clientTags(request) { add(tag) }
            }
            conditional.fields.append(
                "If-None-Match",
                Array(tags.map(\.bytes).joined(separator: [ASCII.comma, ASCII.space])))
        }
        if let modified { conditional.fields.append("If-Modified-Since", modified) }
        return conditional
    }

    /// How many bytes of entity tags are sent: Apache takes lines of up to 8,190, and others what fits
    /// a head of 8 KiB.
    package static let longestTags = 4_096

    /// The request without conditions and ranges: what fetches the whole representation.
    package static func unconditional(_ request: Request) -> Request {
        var whole = request
        for name in [
            KnownField.ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .ifRange,
            .range,
        ] where whole.fields.has(name) {
            whole.fields.remove(FieldName(name))
        }
        return whole
    }

    /// Whether an origin can say of a response that it still holds.
    ///
    /// Of a failure or a redirection it cannot: it takes up no condition unless its answer would be
    /// successful (RFC 9110 §13.2.1), so a 304 would say that there is something else by now.
    static func isConfirmable(_ status: StatusCode) -> Bool { status.isSuccessful }

    /// Those of some responses, or of all, that an origin can say of that they still hold.
    static func confirmable(_ indices: [Int]?, of candidates: [StoredHead]) -> [Int] {
        (indices ?? Array(candidates.indices)).filter {
            candidates.indices.contains($0) && self.isConfirmable(candidates[$0].status)
        }
    }

    /// Whether there is something to ask about a response with.
    static func hasValidator(_ fields: Fields) -> Bool {
        EntityTag(of: fields) != nil || self.lastModified(fields) != nil
    }

    /// `Last-Modified` as it stands, if it is a date.
    static func lastModified(_ fields: Fields) -> FieldValue? {
        guard let value = fields.first(FieldName(.lastModified)),
            HTTPDate.parse(value, now: Timestamp(seconds: 0)) != nil
        else { return nil }
        return value
    }

    /// The entity tags of the client's own `If-None-Match`.
    static func clientTags(_ request: Request) -> [EntityTag] {
        guard
            case .tags(let tags)? = EntityTagCondition(
                request.fields, name: FieldName(.ifNoneMatch))
        else { return [] }
        return tags
    }

    /// Whether a response that the request does not select could answer it where the origin says so.
    static func mayAnswer(_ head: StoredHead) -> Bool {
        self.isConfirmable(head.status) && head.extent == nil && !head.fields.has(.setCookie)
    }

    /// Whether a response that varies by `Accept-Encoding` might be chosen for a request, by its coding.
    static func fitsCodings(_ head: StoredHead, of request: Request) -> Bool {
        guard Variance.depends(head, on: FieldName(.acceptEncoding)) else { return true }
        return !self.lacksCoding(head, for: request) && !self.bearsCoding(head, against: request)
    }

    /// Whether a response is not coded, as whoever asked for it took no codings, and might be for this
    /// request.
    ///
    /// Servers judge conditions before they code what they send: a tag of what is not coded would bring a
    /// 304, and the client would get more bytes than without the cache.
    private static func lacksCoding(_ head: StoredHead, for request: Request) -> Bool {
        !head.fields.has(.contentEncoding) && VaryingValue.takesCodings(request.fields)
            && !VaryingValue.takesCodings(head.varyingFields)
    }

    /// Whether a response is coded in a way that the request does not ask for by name or `*`.
    ///
    /// Origins that give coded and uncoded content the same tag, against RFC 9110 §8.8.1, would say of
    /// the one that it is the other. Who names no codings may be given any (§12.5.3), but undoes none.
    private static func bearsCoding(_ head: StoredHead, against request: Request) -> Bool {
        head.fields.members(FieldName(.contentEncoding)).contains {
            !VaryingValue.takesCoding($0, request.fields)
        }
    }

    private static func newestFirst(_ indices: [Int], _ candidates: [StoredHead]) -> [Int] {
        guard indices.count > 1 else { return indices }
        return indices.sorted {
            let (a, b) = (candidates[$0].responseTime, candidates[$1].responseTime)
            return a == b ? $0 < $1 : a > b
        }
    }

    /// The `Last-Modified` to send for all candidates.
    ///
    /// One for several responses would make a 304 speak of the wrong one, unless they agree on it.
    /// Without entity tags the most recent response's has to do.
    private static func commonLastModified(
        _ candidates: [StoredHead], hasTags: Bool
    ) -> FieldValue? {
        let values = candidates.map { self.lastModified($0.fields) }
        guard let first = values.first else { return nil }
        if values.allSatisfy({ $0 == first }) { return first }
        guard !hasTags else { return nil }
        let dated = values.indices.filter { values[$0] != nil }
        return Variance.mostRecent(of: candidates, indices: dated).flatMap { values[$0] }
    }
}
