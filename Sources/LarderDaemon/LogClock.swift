import LarderHTTP

/// Moments as logs write them, in UTC.
enum LogClock {
    /// Reads as `10/Oct/2000:13:55:36 +0000`.
    static func common(_ moment: Timestamp) -> String {
        let parts = Parts(moment)
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        return text(parts.day, 2) + "/" + months[parts.month - 1] + "/" + text(parts.year, 4) + ":"
            + text(parts.hour, 2) + ":" + text(parts.minute, 2) + ":" + text(parts.second, 2)
            + " +0000"
    }

    /// Reads as `2000-10-10T13:55:36.000123Z` (RFC 3339).
    static func internet(_ moment: Timestamp) -> String {
        let parts = Parts(moment)
        return text(parts.year, 4) + "-" + text(parts.month, 2) + "-" + text(parts.day, 2) + "T"
            + text(parts.hour, 2) + ":" + text(parts.minute, 2) + ":" + text(parts.second, 2) + "."
            + text(parts.microsecond, 6) + "Z"
    }

    static func padded(_ number: UInt64, _ width: Int) -> [UInt8] {
        let digits = Array(String(number).utf8)
        return [UInt8](repeating: 0x30, count: max(0, width - digits.count)) + digits
    }

    private static func text(_ number: Int, _ width: Int) -> String {
        String(decoding: Self.padded(UInt64(clamping: number), width), as: UTF8.self)
    }

    /// A moment's date and time of day in the Gregorian calendar.
    private struct Parts {
        var year: Int
        var month: Int
        var day: Int
        var hour: Int
        var minute: Int
        var second: Int
        var microsecond: Int

        /// Years 0 to 9999; what lies beyond is that bound.
        init(_ moment: Timestamp) {
            let seconds = Int(min(max(moment.seconds, -62_167_219_200), 253_402_300_799))
            let remainder = moment.microseconds % 1_000_000
            self.microsecond = Int(remainder < 0 ? remainder + 1_000_000 : remainder)
            let days = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
            let time = seconds - days * 86_400
            self.hour = time / 3600
            self.minute = time / 60 % 60
            self.second = time % 60
            // Days since 0000-03-01: years that begin in March have their leap day last, and 400 of
            // them have 146,097 days.
            let shifted = days + 719_468
            let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
            let dayOfEra = shifted - era * 146_097
            let yearOfEra =
                (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
            let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
            let shiftedMonth = (5 * dayOfYear + 2) / 153
            self.day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
            self.month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
            self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
        }
    }
}
