package import LarderHTTP

/// The date of an `Expires` attribute, read as leniently as RFC 6265bis §5.1.1 demands.
///
/// The bytes are cut at delimiters, and the first piece that looks like a time, a day, a month, a
/// year is taken for it, in whatever order they come. Zones and weekdays are not looked at.
package enum CookieDate {
    /// The moment that the bytes name, or nil where a part is missing or no such moment exists.
    package static func parse(_ bytes: FieldValue) -> Timestamp? {
        var parts = Parts()
        for piece in bytes.split(whereSeparator: self.isDelimiter) {
            parts.take(piece)
        }
        return parts.moment
    }

    /// `%x09 / %x20-2F / %x3B-40 / %x5B-60 / %x7B-7E`.
    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    private struct Parts {
        var time: (hour: Int, minute: Int, second: Int)?
        var day: Int?
        var month: Int?
        var year: Int?

        /// Takes a piece for the first part that it fits and that is still missing.
        mutating func take(_ piece: FieldValue) {
            if self.time == nil, let time = CookieDate.time(piece) {
                self.time = time
            } else if self.day == nil, let day = CookieDate.number(piece, digits: 1...2) {
                self.day = day
            } else if self.month == nil, let month = CookieDate.month(piece) {
                self.month = month
            } else if self.year == nil, let year = CookieDate.number(piece, digits: 2...4) {
                self.year = year
            }
        }

        var moment: Timestamp? {
            guard let time = self.time, let day = self.day, let month = self.month,
                var year = self.year
            else { return nil }
            if (70...99).contains(year) { year += 1900 }
            if (0...69).contains(year) { year += 2000 }
            guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59 else {
                return nil
            }
            return HTTPDate.moment(
                year: year, month: month, day: day,
                secondsOfDay: time.hour * 3600 + time.minute * 60 + time.second)
        }
    }

    /// `hms-time [ non-digit *OCTET ]`, each field one or two digits.
    private static func time(_ piece: FieldValue) -> (hour: Int, minute: Int, second: Int)? {
        let fields = piece.split(
            separator: ASCII.colon, maxSplits: 2, omittingEmptySubsequences: false)
        guard fields.count == 3, let hour = self.whole(fields[0]),
            let minute = self.whole(fields[1]), let second = self.number(fields[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    private static func whole(_ field: FieldValue) -> Int? {
        field.allSatisfy(ASCII.isDigit) ? self.number(field, digits: 1...2) : nil
    }

    /// The number that begins the piece, where it has so many digits and no more.
    private static func number(_ piece: FieldValue, digits: ClosedRange<Int>) -> Int? {
        let number = piece.prefix(while: ASCII.isDigit)
        guard digits.contains(number.count) else { return nil }
        return number.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func month(_ piece: FieldValue) -> Int? {
        self.months.firstIndex { piece.prefix(3).spells($0) }.map { $0 + 1 }
    }
}
