import Glibc
import LarderHTTP

/// A moment of the machine's monotonic clock, in nanoseconds.
struct MonotonicTime: Comparable, Sendable {
    var nanoseconds: UInt64

    /// Reads the clock (clock_gettime(2)).
    static func read() -> MonotonicTime {
        var time = timespec()
        // Fails only for a clock that does not exist.
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        let seconds = UInt64(clamping: time.tv_sec)
        return MonotonicTime(
            nanoseconds: seconds &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec))
    }

    static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }

    static func + (moment: MonotonicTime, duration: Duration) -> MonotonicTime {
        moment.adding(duration.inNanoseconds)
    }

    static func - (moment: MonotonicTime, duration: Duration) -> MonotonicTime {
        let (difference, overflow) = moment.nanoseconds.subtractingReportingOverflow(
            duration.inNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? 0 : difference)
    }

    /// What is added for each transfer is kept as a number: a `Duration` is one of 128 bits, to be
    /// divided each time.
    func adding(_ nanoseconds: UInt64) -> MonotonicTime {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(nanoseconds)
        return MonotonicTime(nanoseconds: overflow ? .max : sum)
    }

    /// Whole milliseconds from `self` to `later`, rounded up, so that waiting that long is enough.
    func milliseconds(until later: MonotonicTime) -> Int32 {
        guard later > self else { return 0 }
        let difference = later.nanoseconds - self.nanoseconds
        return Int32(clamping: difference / 1_000_000 + (difference % 1_000_000 == 0 ? 0 : 1))
    }
}

extension Duration {
    /// To the microsecond, and none where it is negative; saturates.
    var inNanoseconds: UInt64 {
        let microseconds = UInt64(clamping: self.inMicroseconds)
        let (nanoseconds, overflow) = microseconds.multipliedReportingOverflow(by: 1000)
        return overflow ? .max : nanoseconds
    }

    /// Whole milliseconds for libcurl, at least 1: it takes 0 for "use the default".
    var inMilliseconds: Int {
        Int(clamping: Swift.max(1, self.inMicroseconds / 1000))
    }
}

extension Timestamp {
    /// Reads the wall's clock (clock_gettime(2)).
    static func read() -> Timestamp {
        var time = timespec()
        // Fails only for a clock that does not exist.
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        let second = Timestamp(seconds: Int64(time.tv_sec)).microseconds
        let (sum, overflow) = second.addingReportingOverflow(Int64(time.tv_nsec) / 1000)
        return Timestamp(microseconds: overflow ? .max : sum)
    }
}
