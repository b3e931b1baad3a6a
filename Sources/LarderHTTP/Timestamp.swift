/// A moment in wall-clock time.
///
/// Microseconds since 1970-01-01T00:00:00Z, without leap seconds. Arithmetic saturates: dates and
/// ages come from strangers, and an absurd one must not trap.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
    /// Microseconds since the Unix epoch.
    package var microseconds: Int64

    package init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// A moment given in whole seconds since the Unix epoch; saturates.
    package init(seconds: Int64) {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        self.microseconds = overflow ? (seconds < 0 ? .min : .max) : product
    }

    /// Whole seconds since the Unix epoch, rounded down.
    package var seconds: Int64 {
        var quotient = self.microseconds / 1_000_000
        if self.microseconds % 1_000_000 < 0 { quotient -= 1 }
        return quotient
    }

    // All four, and open to other modules: what the protocol would make of the first alone is two
    // calls through its table, and every hit compares several times.
    @inlinable
    package static func < (a: Timestamp, b: Timestamp) -> Bool { a.microseconds < b.microseconds }
    @inlinable
    package static func > (a: Timestamp, b: Timestamp) -> Bool { a.microseconds > b.microseconds }
    @inlinable
    package static func <= (a: Timestamp, b: Timestamp) -> Bool {
        a.microseconds <= b.microseconds
    }
    @inlinable
    package static func >= (a: Timestamp, b: Timestamp) -> Bool {
        a.microseconds >= b.microseconds
    }

    package static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        let (sum, overflow) = moment.microseconds.addingReportingOverflow(duration.inMicroseconds)
        return Timestamp(microseconds: overflow ? (duration < .zero ? .min : .max) : sum)
    }

    package static func - (moment: Timestamp, duration: Duration) -> Timestamp {
        let (sum, overflow) = moment.microseconds.subtractingReportingOverflow(
            duration.inMicroseconds)
        return Timestamp(microseconds: overflow ? (duration < .zero ? .max : .min) : sum)
    }

    /// The time from `earlier` to `later`; negative when they are the other way round.
    package static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        let (difference, overflow) = later.microseconds.subtractingReportingOverflow(
            earlier.microseconds)
        return .microseconds(overflow ? (later < earlier ? Int64.min : .max) : difference)
    }
}

extension Duration {
    /// Whole microseconds, saturating at the bounds of `Int64`.
    package var inMicroseconds: Int64 {
        let (seconds, attoseconds) = self.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, overflowed) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return overflowed ? (seconds < 0 ? .min : .max) : sum
    }

    /// Whole seconds, rounded toward zero: what a `delta-seconds` can say (RFC 9111 §1.2.2).
    package var inSeconds: Int64 { self.components.seconds }
}
