package import LarderHTTP

/// `WARC-Date` (ISO 28500:2017 §5.4): a moment in UTC, as W3C's profile of ISO 8601 writes it.
package enum WARCDate {
    /// A year alone, or as much more as is known: `2017`, `2017-03`, `2017-03-06`,
    /// `2017-03-06T04:03Z`, with seconds, and with a fraction of up to nine digits.
    ///
    /// What is left out counts as its beginning. Nil for anything else.
    package static func parse(_ text: FieldValue) -> Timestamp? {
        var rest = text
        guard let year = self.number(&rest, digits: 4) else { return nil }
        var month = 1
        var day = 1
        var seconds = 0
        var fraction: Int64 = 0
        if !rest.isEmpty {
            guard self.skip("-", &rest), let number = self.number(&rest, digits: 2) else {
                return nil
            }
            month = number
        }
        if !rest.isEmpty {
            guard self.skip("-", &rest), let number = self.number(&rest, digits: 2) else {
                return nil
            }
            day = number
        }
        if !rest.isEmpty {
            guard self.skip("T", &rest), let time = self.time(&rest) else { return nil }
            (seconds, fraction) = time
            guard self.skip("Z", &rest), rest.isEmpty else { return nil }
        }
        guard (1...12).contains(month), (1...31).contains(day),
            let moment = HTTPDate.moment(
                year: year, month: month, day: day, secondsOfDay: min(seconds, 86_399))
        else { return nil }
        let leap = Int64(max(0, seconds - 86_399)) * 1_000_000
        return Timestamp(microseconds: moment.microseconds + leap + fraction)
    }

    /// `hh:mm`, `hh:mm:ss` or `hh:mm:ss.f`: seconds of the day, and microseconds.
    private static func time(_ rest: inout FieldValue) -> (Int, Int64)? {
        guard let hour = self.number(&rest, digits: 2), hour < 24, self.skip(":", &rest),
            let minute = self.number(&rest, digits: 2), minute < 60
        else { return nil }
        var seconds = hour * 3600 + minute * 60
        guard self.skip(":", &rest) else { return (seconds, 0) }
        guard let second = self.number(&rest, digits: 2), second <= 60 else { return nil }
        seconds += second
        guard self.skip(".", &rest) else { return (seconds, 0) }
        let digits = rest.prefix { ASCII.isDigit($0) }
        guard (1...9).contains(digits.count) else { return nil }
        rest = rest.dropFirst(digits.count)
        var fraction: Int64 = 0
        for place in 0..<6 {
            let digit = place < digits.count ? digits[digits.startIndex + place] - 0x30 : 0
            fraction = fraction * 10 + Int64(digit)
        }
        return (seconds, fraction)
    }

    private static func number(_ rest: inout FieldValue, digits: Int) -> Int? {
        guard rest.count >= digits else { return nil }
        var number = 0
        for byte in rest.prefix(digits) {
            guard ASCII.isDigit(byte) else { return nil }
            number = number * 10 + Int(byte - 0x30)
        }
        rest = rest.dropFirst(digits)
        return number
    }

    private static func skip(_ mark: Unicode.Scalar, _ rest: inout FieldValue) -> Bool {
        guard rest.first == UInt8(ascii: mark) else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// The moment with six digits of fraction, so that none is lost: WARC 1.1 allows up to nine.
    ///
    /// Years outside 0…9999 have no such form: the nearest moment that has one is written.
    package static func format(_ moment: Timestamp) -> String {
        let bounded = min(
            max(moment.microseconds, -62_167_219_200_000_000), 253_402_300_799_999_999)
        let time = CivilTime(Timestamp(microseconds: bounded))
        let fraction = (bounded % 1_000_000 + 1_000_000) % 1_000_000
        let day = [self.padded(time.year, 4), self.padded(time.month, 2), self.padded(time.day, 2)]
        let clock = [
            self.padded(time.hour, 2), self.padded(time.minute, 2), self.padded(time.second, 2),
        ]
        return day.joined(separator: "-") + "T" + clock.joined(separator: ":") + "."
            + self.padded(Int(fraction), 6) + "Z"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
