import LarderHTTP

/// Moments as logs write them, in UTC.
///
/// Keeps what it wrote of the last second: most lines tell of the same one.
struct LogClock {
    /// Reads as `2000-10-10T13:55:36.000123Z` (RFC 3339).
    static func internet(_ moment: Timestamp) -> String {
        var line: [UInt8] = []
        var clock = Self()
        clock.internet(moment, &line)
        return String(decoding: line, as: UTF8.self)
    }

    /// The second that `common` and `internet` tell of; nil before the first.
    private var second: Int64?
    private var common: [UInt8] = []
    private var internet: [UInt8] = []

    /// Adds a moment that reads as `10/Oct/2000:13:55:36 +0000`.
    mutating func common(_ moment: Timestamp, _ line: inout [UInt8]) {
        self.tell(moment)
        line += self.common
    }

    /// Adds a moment that reads as `2000-10-10T13:55:36.000123Z` (RFC 3339).
    mutating func internet(_ moment: Timestamp, _ line: inout [UInt8]) {
        self.tell(moment)
        line += self.internet
        line.append(UInt8(ascii: "."))
        let remainder = moment.microseconds % 1_000_000
        line.add(
            decimal: UInt64(clamping: remainder < 0 ? remainder + 1_000_000 : remainder), width: 6)
        line.append(UInt8(ascii: "Z"))
    }

    private mutating func tell(_ moment: Timestamp) {
        let second = moment.seconds
        guard second != self.second else { return }
        self.second = second
        let time = CivilTime(moment)
        self.common.removeAll(keepingCapacity: true)
        self.common.add(decimal: time.day, width: 2)
        self.common += "/\(CivilTime.months[time.month - 1])/".utf8
        self.common.add(decimal: time.year, width: 4)
        self.common.append(UInt8(ascii: ":"))
        self.common.add(clockOf: time)
        self.common += " +0000".utf8
        self.internet.removeAll(keepingCapacity: true)
        self.internet.add(decimal: time.year, width: 4)
        self.internet.append(UInt8(ascii: "-"))
        self.internet.add(decimal: time.month, width: 2)
        self.internet.append(UInt8(ascii: "-"))
        self.internet.add(decimal: time.day, width: 2)
        self.internet.append(UInt8(ascii: "T"))
        self.internet.add(clockOf: time)
    }
}

extension [UInt8] {
    /// Adds a time of day that reads as `13:55:36`.
    fileprivate mutating func add(clockOf time: CivilTime) {
        self.add(decimal: time.hour, width: 2)
        self.append(UInt8(ascii: ":"))
        self.add(decimal: time.minute, width: 2)
        self.append(UInt8(ascii: ":"))
        self.add(decimal: time.second, width: 2)
    }

    /// Adds what a calendar says, which is never negative.
    fileprivate mutating func add(decimal number: Int, width: Int) {
        self.add(decimal: UInt64(clamping: number), width: width)
    }
}
