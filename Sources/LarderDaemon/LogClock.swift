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
        let parts = Parts(second)
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        self.common.removeAll(keepingCapacity: true)
        self.common.add(decimal: parts.day, width: 2)
        self.common += "/\(months[Int(parts.month) - 1])/".utf8
        self.common.add(decimal: parts.year, width: 4)
        self.common.append(UInt8(ascii: ":"))
        parts.time(&self.common)
        self.common += " +0000".utf8
        self.internet.removeAll(keepingCapacity: true)
        self.internet.add(decimal: parts.year, width: 4)
        self.internet.append(UInt8(ascii: "-"))
        self.internet.add(decimal: parts.month, width: 2)
        self.internet.append(UInt8(ascii: "-"))
        self.internet.add(decimal: parts.day, width: 2)
        self.internet.append(UInt8(ascii: "T"))
        parts.time(&self.internet)
    }

    /// A moment's date and time of day in the Gregorian calendar.
    private struct Parts {
        let year: UInt64
        let month: UInt64
        let day: UInt64
        private let hour: UInt64
        private let minute: UInt64
        private let second: UInt64

        /// - Parameter second: since 1970. Years 0 to 9999; what lies beyond is that bound.
        init(_ second: Int64) {
            let seconds = min(max(second, -62_167_219_200), 253_402_300_799)
            let days = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
            let time = seconds - days * 86_400
            self.hour = UInt64(clamping: time / 3600)
            self.minute = UInt64(clamping: time / 60 % 60)
            self.second = UInt64(clamping: time % 60)
            // Days since 0000-03-01: years that begin in March have their leap day last, and 400 of
            // them have 146,097 days.
            let shifted = days + 719_468
            let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
            let dayOfEra = shifted - era * 146_097
            let yearOfEra =
                (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
            let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
            let shiftedMonth = (5 * dayOfYear + 2) / 153
            self.day = UInt64(clamping: dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
            let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
            self.month = UInt64(clamping: month)
            self.year = UInt64(clamping: yearOfEra + era * 400 + (month <= 2 ? 1 : 0))
        }

        func time(_ text: inout [UInt8]) {
            text.add(decimal: self.hour, width: 2)
            text.append(UInt8(ascii: ":"))
            text.add(decimal: self.minute, width: 2)
            text.append(UInt8(ascii: ":"))
            text.add(decimal: self.second, width: 2)
        }
    }
}
