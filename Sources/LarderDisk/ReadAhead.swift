/// What the kernel is told beforehand of a body that has to come from the disk: a value.
///
/// ```
///            offset            told
///   ───────────┼────────────────┼──────────────────────▶ end
///    handed out│◀── window at most ──▶│
/// ```
///
/// As long as all is in memory nothing is told. The first miss opens a window of a few segments, which
/// doubles with each further telling, as a body that is read on is likely to be read to its end.
/// Whenever half of it is used up the next stretch is told, so that the disk always has work while the
/// reader goes on; what a reader that stops has made the kernel read in vain is one window.
struct ReadAhead: Sendable, Equatable {
    private static let firstWindow = UInt64(4 * Segment.payloadSize)
    /// 4 MiB: what a reader that stops has made the kernel read in vain at most.
    static let widestWindow = UInt64(64 * Segment.payloadSize)

    private var window: UInt64 = 0
    /// The kernel knows of everything below.
    private var told: UInt64 = 0

    /// The bytes at `offset` are not in memory; what to tell, the missing ones included.
    mutating func missed(at offset: UInt64, end: UInt64) -> Range<UInt64>? {
        self.widen()
        return self.tell(from: offset, end: end)
    }

    /// Everything below `offset` has been handed out; what to tell now, if anything.
    mutating func advanced(to offset: UInt64, end: UInt64) -> Range<UInt64>? {
        guard self.window > 0, self.told < end,
            self.told < offset || self.told - offset <= self.window / 2
        else { return nil }
        self.widen()
        return self.tell(from: offset, end: end)
    }

    private mutating func widen() {
        self.window =
            self.window == 0 ? Self.firstWindow : min(self.window * 2, Self.widestWindow)
    }

    private mutating func tell(from offset: UInt64, end: UInt64) -> Range<UInt64>? {
        let start = max(offset, self.told)
        let (wanted, overflow) = offset.addingReportingOverflow(self.window)
        let stop = overflow ? end : min(end, wanted)
        guard start < stop else { return nil }
        self.told = stop
        return start..<stop
    }
}
