package import LarderHTTP

/// What of a stored response a client gets.
package enum ClientOutcome: Sendable, Equatable {
    /// The whole, with the stored status.
    case full
    /// 304: the client has it.
    case notModified
    /// 412. A cache never evaluates the conditions that lead here; see `ClientCondition`.
    case preconditionFailed
    /// 206 with these bytes.
    case partial(Range<UInt64>)
    /// 206 with several parts, as `multipart/byteranges` in this order.
    case parts([Range<UInt64>])
    /// 416: the content has none of the bytes asked for.
    case rangeNotSatisfiable
}

/// The conditions and ranges of a client's request, against a stored response that may be used
/// (RFC 9111 §4.3.2, RFC 9110 §13.2.2).
///
/// `If-Match` and `If-Unmodified-Since` are not for a cache to evaluate: a request that has them is
/// forwarded (`Reuse`), and they are not looked at here.
package enum ClientCondition {
    /// Evaluates in the order of RFC 9110 §13.2.2.
    ///
    /// - Parameter bodyLength: the length of the stored content.
    package static func evaluate(
        _ request: Request, against head: StoredHead, bodyLength: UInt64
    ) -> ClientOutcome {
        if self.isUnchanged(request, head) { return .notModified }
        return self.range(request, head, bodyLength)
    }

    /// Whether the client's condition says that it has what is stored: 304.
    static func isUnchanged(_ request: Request, _ head: StoredHead) -> Bool {
        // §13.2.1: preconditions count only where the response would be a success without them.
        guard head.status.isSuccessful, request.method == .get || request.method == .head else {
            return false
        }
        if let condition = EntityTagCondition(request.fields, name: FieldName(.ifNoneMatch)) {
            return condition.matchesWeakly(EntityTag(of: head.fields))
        }
        return self.isUnmodified(request, head)
    }

    /// `If-Modified-Since` (RFC 9110 §13.1.3): a single valid date, not before the modification.
    ///
    /// A response without `Last-Modified` was last modified at its `Date`, or when it was received
    /// (RFC 9111 §4.3.2).
    private static func isUnmodified(_ request: Request, _ head: StoredHead) -> Bool {
        let values = request.fields.values(FieldName(.ifModifiedSince))
        guard values.count == 1,
            let since = HTTPDate.parse(values[0], now: head.responseTime)
        else { return false }
        let modified =
            head.facts.lastModified ?? head.facts.date
            ?? Timestamp(seconds: head.responseTime.seconds)
        return modified <= since
    }

    // MARK: Ranges

    /// RFC 9110 §14.2: `Range` counts for GET only, and where the answer would be 200.
    ///
    /// A set that costs more than it saves gets the whole, as the RFC always allows.
    private static func range(
        _ request: Request, _ head: StoredHead, _ bodyLength: UInt64
    ) -> ClientOutcome {
        guard request.method == .get, head.status == .ok, let set = RangeSet(of: request.fields),
            self.ifRangeHolds(request, head)
        else { return .full }
        guard let parts = set.parts(length: bodyLength) else { return .full }
        switch parts.count {
        case 0: return .rangeNotSatisfiable
        case 1: return .partial(parts[0])
        default: return .parts(parts)
        }
    }

    /// `If-Range` (RFC 9110 §13.1.5): strong comparison with the tag, or exactly the
    /// `Last-Modified` where that is a strong validator.
    ///
    /// Absent, it holds.
    static func ifRangeHolds(_ request: Request, _ head: StoredHead) -> Bool {
        let values = request.fields.values(FieldName(.ifRange))
        guard let value = values.first else { return true }
        guard values.count == 1 else { return false }
        if let tag = EntityTag(parsing: value) {
            return EntityTag(of: head.fields)?.matchesStrongly(tag) ?? false
        }
        guard let date = HTTPDate.parse(value, now: head.responseTime),
            let modified = head.facts.lastModified
        else { return false }
        return date == modified && ModificationTime.isStrong(head.fields)
    }
}
