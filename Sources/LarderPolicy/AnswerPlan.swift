package import LarderHTTP

/// How much of the answer to a request a stored response has (RFC 9111 §3.3, RFC 9110 §14.2).
package enum AnswerPlan: Sendable, Equatable {
    /// All of it.
    case stored(ClientOutcome)
    /// Some of it; what is missing can be asked for and put in its place, as long as the
    /// representation is the same.
    case splice(Splice)
    /// Nothing that would be of use.
    case uncovered

    /// - Parameter bodyLength: of the stored content, for a complete response.
    package static func make(
        _ request: Request, from head: StoredHead, bodyLength: UInt64
    ) -> AnswerPlan {
        guard let extent = head.extent else {
            return .stored(
                ClientCondition.evaluate(request, against: head, bodyLength: bodyLength))
        }
        guard let length = extent.completeLength else {
            return self.withoutLength(request, head, extent)
        }
        let outcome = ClientCondition.evaluate(request, against: head, bodyLength: length)
        switch outcome {
        case .notModified, .preconditionFailed, .rangeNotSatisfiable: return .stored(outcome)
        case .full:
            if request.method == .head { return .stored(outcome) }
            return self.covering(0..<length, isWhole: true, extent, head)
        case .partial(let range):
            return self.covering(range, isWhole: false, extent, head)
        case .parts(let ranges):
            return ranges.allSatisfy { extent.contains($0) } ? .stored(outcome) : .uncovered
        }
    }

    /// The plan for a range of a representation of known length.
    private static func covering(
        _ range: Range<UInt64>, isWhole: Bool, _ extent: StoredExtent, _ head: StoredHead
    ) -> AnswerPlan {
        if extent.contains(range) { return .stored(isWhole ? .full : .partial(range)) }
        // With nothing of it here the request may as well go forward as it is.
        guard extent.gaps(in: range) != [range], let validator = StrongValidator(of: head.fields),
            let splice = Splice(range, isWhole: isWhole, extent: extent, validator: validator)
        else { return .uncovered }
        return .splice(splice)
    }

    /// The plan while nobody has told how long the representation is: a range that is all there can
    /// be given, and one whose beginning is there can be completed.
    private static func withoutLength(
        _ request: Request, _ head: StoredHead, _ extent: StoredExtent
    ) -> AnswerPlan {
        if ClientCondition.isUnchanged(request, head) { return .stored(.notModified) }
        guard request.method == .get else { return .uncovered }
        var start: UInt64 = 0
        var end: UInt64?
        var isWhole = true
        if let set = RangeSet(of: request.fields), ClientCondition.ifRangeHolds(request, head) {
            guard set.ranges.count == 1, case .from(let first, let last)? = set.ranges.first,
                first < UInt64(Int64.max), last ?? 0 < UInt64(Int64.max)
            else { return .uncovered }
            (start, end, isWhole) = (first, last.map { $0 + 1 }, false)
        }
        if let end, start < end, extent.contains(start..<end) {
            return .stored(.partial(start..<end))
        }
        guard let validator = StrongValidator(of: head.fields),
            let splice = Splice(
                from: start, to: end, isWhole: isWhole, extent: extent, validator: validator)
        else { return .uncovered }
        return .splice(splice)
    }
}
