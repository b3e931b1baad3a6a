import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// Requests for one range of what is not stored, joined to what is fetched for others.
///
/// The bytes are read out of a whole response that is arriving, where it has them or nearly so; a range
/// that lies further on is fetched, once for all that ask for the very same one meanwhile.
extension ClientExchange {
    /// How far behind the last byte that has come a range may begin that is waited for.
    ///
    /// To wait longer than a request to the origin takes would be no gain to the client.
    private static let reach: UInt64 = 1 << 20

    /// What of a response that is arriving answers this request.
    struct Taking {
        /// As of a stored response.
        var head: StoredHead
        var outcome: ClientOutcome
        /// Of the whole representation, where that is what arrives.
        var length: UInt64
        /// Which bytes of the content that arrives.
        var bytes: Range<UInt64>
    }

    /// The range asked for, where another client's fetch may bring it.
    func joinableRange(_ forward: CacheStatus.Forward) -> ByteRange? {
        // What few requests have comes first.
        guard self.request.fields.has(.range),
            self.configuration.role == .intermediary,
            self.isCollapsible(forward, ofPart: true),
            let set = RangeSet(of: self.request.fields), set.ranges.count == 1
        else { return nil }
        return set.ranges[0]
    }

    func fetch(_ range: ByteRange, _ objects: [StoredObject], _ validating: Int?) {
        self.state.withLock { $0.reach = Self.reach }
        if let whole = self.session.fillings.whole(self.key),
            self.joins(whole, for: range, validates: validating != nil)
        {
            return
        }
        self.state.withLock { $0.reach = .max }
        self.enter(
            Filling(key: self.key, window: self.configuration.window, part: .range(range)),
            objects, validating)
    }

    /// Joins the fetch of the whole, where that brings the range soon enough.
    ///
    /// - Returns: whether it did, or has nobody to do it for.
    private func joins(_ whole: Filling, for range: ByteRange, validates: Bool) -> Bool {
        switch whole.arrival {
        case .over: return false
        case .awaited:
            // A validation answers for any range of what is stored.
            guard validates || range.begins(within: Self.reach) else { return false }
            guard self.state.withLock({ $0.machine.waits(for: whole) }) else { return true }
            switch whole.join(self) {
            case .tooLate: return false
            case .waiting:
                if self.state.withLock({ $0.machine.isCancelled }) { whole.leave(self) }
            case .known(let outcome, let reader):
                self.filling(settled: outcome, reader: reader, leads: false)
            }
            return true
        case .arriving(let response, let received, let isPaused):
            guard let taking = self.taking(from: response, within: Self.reach),
                taking.bytes.lowerBound <= received &+ Self.reach,
                // Whoever keeps the origin waiting need not keep this client, too.
                !isPaused || taking.bytes.upperBound <= received
            else { return false }
            return self.reads(response, of: whole, from: taking.bytes.lowerBound, taking: taking)
        }
    }

    /// Answers with what arrives for another client.
    ///
    /// - Returns: false where some of it is gone; true, too, where nobody is there to be answered.
    func reads(
        _ response: Filling.Response, of whole: Filling, from offset: UInt64, taking: Taking? = nil
    ) -> Bool {
        guard self.state.withLock({ $0.machine.waits(for: whole) }) else { return true }
        guard let reader = whole.read(from: offset) else { return false }
        let (forward, asked) = self.state.withLock { ($0.forward, $0.reason) }
        self.relay(
            response, reader: reader, leads: false, forward: forward, because: asked,
            taking: taking)
        return true
    }

    /// Takes the range out of a response that begins to arrive for another client, or asks for it.
    func take(
        from response: Filling.Response, _ reader: FillingReader?, within reach: UInt64,
        forward: CacheStatus.Forward, because asked: PolicyReason?
    ) {
        guard let taking = self.taking(from: response, within: reach),
            taking.bytes.lowerBound <= reach
        else {
            reader?.cancel()
            return self.fetchAlone()
        }
        reader?.skip(to: taking.bytes.lowerBound)
        self.relay(
            response, reader: reader, leads: false, forward: forward, because: asked,
            taking: taking)
    }

    /// What the response has for this request, as if it were stored (RFC 9111 §4); nil where it may not
    /// be reused for it, or only the origin can say what it has.
    ///
    /// - Parameter reach: all there is where the very range was asked for.
    private func taking(from response: Filling.Response, within reach: UInt64) -> Taking? {
        if let part = response.part {
            // What is fetched as the whole may bring a part, too: the range of another client, which a
            // validation in the background keeps. And an origin may send another range than it was asked
            // for, which is no answer to who did not ask it (RFC 9111 §3.3).
            guard reach == .max, self.mayReuse(part.whole),
                let extent = part.extent, let range = extent.ranges.first,
                let set = RangeSet(of: self.request.fields), set.ranges.count == 1,
                set.ranges[0].asks(for: range, of: extent.completeLength)
            else { return nil }
            return Taking(
                head: part, outcome: .partial(range), length: range.upperBound,
                bytes: 0..<range.length)
        }
        guard case .known(let length) = response.bodyLength, let shared = response.shared,
            self.mayReuse(shared)
        else { return nil }
        let outcome = ClientCondition.evaluate(
            self.request, against: shared, bodyLength: length)
        switch outcome {
        case .full:
            return Taking(head: shared, outcome: outcome, length: length, bytes: 0..<length)
        case .partial(let range) where !range.isEmpty:
            return Taking(head: shared, outcome: outcome, length: length, bytes: range)
        case .partial, .parts, .notModified, .preconditionFailed, .rangeNotSatisfiable: return nil
        }
    }
}

extension ByteRange {
    /// Whether it begins with one of so many first bytes, however long the whole is.
    fileprivate func begins(within count: UInt64) -> Bool {
        switch self {
        case .from(let first, _): first <= count
        case .suffix: false
        }
    }

    /// Whether a representation has nothing but these bytes of what it asks for; false where its length
    /// would tell and is not known.
    fileprivate func asks(for range: Range<UInt64>, of completeLength: UInt64?) -> Bool {
        if let completeLength { return self.resolve(length: completeLength) == range }
        switch self {
        case .from(let first, through: let last?):
            return first == range.lowerBound && last == range.upperBound &- 1
        case .from(_, through: nil), .suffix: return false
        }
    }
}
