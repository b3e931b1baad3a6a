package import LarderHTTP

/// An answer to be put together from stored bytes and others that are missing.
///
/// The first missing bytes are asked for before the client hears anything: only their answer tells
/// whether the representation is still the same. The others are asked for when the reading gets there.
package struct Splice: Sendable, Equatable {
    /// A stretch of the answer.
    package enum Segment: Sendable, Equatable {
        case stored(Range<UInt64>)
        /// In the response that has just begun to arrive.
        case arriving(Range<UInt64>)
        case missing(Range<UInt64>)

        /// The bytes of the representation that it is.
        package var range: Range<UInt64> {
            switch self {
            case .stored(let range), .arriving(let range), .missing(let range): range
            }
        }
    }

    /// Bytes to ask for: from `first` up to, not with, `end`; nil: all that follow.
    package struct Gap: Sendable, Equatable {
        package let first: UInt64
        package let end: UInt64?
    }

    /// An answer whose length is settled, and where its bytes are.
    package struct Answer: Sendable, Equatable {
        /// 200 with the whole, else 206 with a part.
        package let isWhole: Bool
        package let range: Range<UInt64>
        package let completeLength: UInt64?
        package let segments: [Segment]

        package init(
            isWhole: Bool, range: Range<UInt64>, completeLength: UInt64?, segments: [Segment]
        ) {
            self.isWhole = isWhole
            self.range = range
            self.completeLength = completeLength
            self.segments = segments
        }
    }

    /// The first byte that the client gets.
    package let start: UInt64
    /// Where it ends; nil: at the end of the representation, whose length is not known yet.
    package let end: UInt64?
    package let isWhole: Bool
    package let extent: StoredExtent
    package let validator: StrongValidator
    package let gap: Gap

    /// Gaps with fewer stored bytes between them are asked for as one: a request costs more.
    package static let worthwhileStretch: UInt64 = 65_536
    /// With more gaps than this, all that lies between the first and the last is asked for at once.
    package static let mostGaps = 8

    /// A splice of a representation whose length is known; nil where nothing is missing.
    package init?(
        _ range: Range<UInt64>, isWhole: Bool, extent: StoredExtent, validator: StrongValidator
    ) {
        guard let gap = Self.gaps(in: range, of: extent).first else { return nil }
        self.init(
            start: range.lowerBound, end: range.upperBound, isWhole: isWhole, extent: extent,
            validator: validator, gap: Gap(first: gap.lowerBound, end: gap.upperBound))
    }

    /// A splice of a representation of unknown length; nil where not even its first byte is stored.
    init?(
        from start: UInt64, to end: UInt64?, isWhole: Bool, extent: StoredExtent,
        validator: StrongValidator
    ) {
        guard
            let run = extent.ranges.first(where: {
                $0.lowerBound <= start && start < $0.upperBound
            }), end.map({ run.upperBound < $0 }) ?? true
        else { return nil }
        self.init(
            start: start, end: end, isWhole: isWhole, extent: extent, validator: validator,
            gap: Gap(first: run.upperBound, end: end))
    }

    private init(
        start: UInt64, end: UInt64?, isWhole: Bool, extent: StoredExtent,
        validator: StrongValidator, gap: Gap
    ) {
        self.start = start
        self.end = end
        self.isWhole = isWhole
        self.extent = extent
        self.validator = validator
        self.gap = gap
    }

    /// The request that asks for the missing bytes, and for nothing else unless the representation
    /// has changed (RFC 9110 §13.1.5).
    ///
    /// The client's own conditions stay: that they do not hold for what is stored says nothing about
    /// a representation that has taken its place.
    package func request(_ request: Request) -> Request {
        var asking = request
        asking.fields.remove(FieldName(.range))
        asking.fields.remove(FieldName(.ifRange))
        let last = self.gap.end.map { String($0 &- 1) } ?? ""
        asking.fields.append("Range", "bytes=\(self.gap.first)-\(last)")
        asking.fields.append("If-Range", self.validator.ifRange)
        return asking
    }

    /// What the answer is, now that the response to `request(_:)` has begun; nil where that does not
    /// fit: other bytes than asked for, another representation, lengths that contradict each other.
    package func answer(
        _ response: ResponseHead, bodyLength: BodyLength, to request: Request
    ) -> (Answer, PartialContent.Part)? {
        guard self.validator.matches(response.fields),
            case .part(let part) = PartialContent.read(
                response, bodyLength: bodyLength, to: self.request(request)),
            let answer = self.answer(from: part)
        else { return nil }
        return (answer, part)
    }

    /// What the answer is where another request's response brings the missing bytes.
    package func answer(from part: PartialContent.Part) -> Answer? {
        guard part.range.lowerBound == self.gap.first,
            self.gap.end.map({ part.range.upperBound <= $0 }) ?? true
        else { return nil }
        var extent = self.extent
        if let told = part.completeLength, !extent.learn(completeLength: told) { return nil }
        let length = extent.completeLength
        var end = self.end
        if let length {
            guard part.range.upperBound <= length else { return nil }
            end = min(end ?? length, length)
        }
        // Without any word on the length, only bytes that are there say that there are so many.
        guard let end, self.start < end, length != nil || part.range.upperBound == end else {
            return nil
        }
        var segments: [Segment] = []
        if self.start < self.gap.first { segments.append(.stored(self.start..<self.gap.first)) }
        segments.append(.arriving(part.range))
        if part.range.upperBound < end {
            segments += Self.segments(of: part.range.upperBound..<end, in: extent)
        }
        return Answer(
            isWhole: self.isWhole, range: self.start..<end, completeLength: length,
            segments: segments)
    }

    /// Whether the response that is asked for here brings what is asked for there, too.
    package func sharesGap(with other: Splice) -> Bool {
        self.gap == other.gap && self.extent == other.extent && self.validator == other.validator
    }

    // MARK: Gaps

    /// What is stored of a range and what is to be asked for, in order and without holes.
    package static func segments(
        of range: Range<UInt64>, in extent: StoredExtent
    ) -> [Segment] {
        var segments: [Segment] = []
        var position = range.lowerBound
        for gap in self.gaps(in: range, of: extent) {
            if position < gap.lowerBound { segments.append(.stored(position..<gap.lowerBound)) }
            segments.append(.missing(gap))
            position = gap.upperBound
        }
        if position < range.upperBound { segments.append(.stored(position..<range.upperBound)) }
        return segments
    }

    /// The missing parts of a range, those that are close to each other or too many made one.
    private static func gaps(
        in range: Range<UInt64>, of extent: StoredExtent
    ) -> [Range<UInt64>] {
        var gaps: [Range<UInt64>] = []
        for gap in extent.gaps(in: range) {
            if let last = gaps.last, gap.lowerBound - last.upperBound < self.worthwhileStretch {
                gaps[gaps.count - 1] = last.lowerBound..<gap.upperBound
            } else {
                gaps.append(gap)
            }
        }
        guard gaps.count > self.mostGaps, let first = gaps.first, let last = gaps.last else {
            return gaps
        }
        return [first.lowerBound..<last.upperBound]
    }
}
