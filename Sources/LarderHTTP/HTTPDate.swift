/// `HTTP-date`: a moment in whole seconds of GMT (RFC 9110 §5.6.7).
package enum HTTPDate {
    private static let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    /// What the long names add to the short ones.
    private static let dayEndings = ["day", "sday", "nesday", "rsday", "day", "urday", "day"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let packedDays = Self.days.map { Self.packed($0.utf8) }
    private static let packedZone = Self.packed("gmt".utf8)
    private static let packedMonths = Self.months.map { Self.packed($0.utf8) }

    /// Three letters in lower case as one number: a date is read on every hit, and comparing text
    /// took most of the time it needed.
    private static func packed(_ letters: some Collection<UInt8>) -> UInt32 {
        letters.reduce(0) { $0 << 8 | UInt32(ASCII.lowercased($1)) }
    }

    // MARK: Reading

    /// The moment that the bytes name, or nil where they are none of the three forms.
    ///
    /// Case is set aside, as RFC 9111 §4.2 asks of a cache; everything else is exact: the zone is
    /// `GMT`, the day exists in its month, and nothing stands before or after. Whether the name of
    /// the day fits the date is not looked at: it adds nothing, and senders get it wrong.
    ///
    /// - Parameter now: settles the century of a two-digit year (§5.6.7).
    package static func parse(_ bytes: FieldValue, now: Timestamp) -> Timestamp? {
        if let moment = self.fixdate(bytes.span) { return moment }
        var cursor = Cursor(rest: bytes)
        guard let day = cursor.name(in: self.packedDays) else { return nil }
        if cursor.skip(",") { return cursor.fixdate() }
        return cursor.skip(self.dayEndings[day]) ? cursor.rfc850(now: now) : cursor.asctime()
    }

    /// The moment that the bytes name; see `parse(_:now:)` over a field value.
    package static func parse(_ bytes: some Collection<UInt8>, now: Timestamp) -> Timestamp? {
        self.parse(Array(bytes)[...], now: now)
    }

    /// An IMF-fixdate, as all write it today, by its places; nil where it may be another form.
    private static func fixdate(_ text: Span<UInt8>) -> Timestamp? {
        guard text.count == 29, text[3] == ASCII.comma, text[4] == ASCII.space,
            text[7] == ASCII.space, text[11] == ASCII.space, text[16] == ASCII.space,
            text[19] == ASCII.colon, text[22] == ASCII.colon, text[25] == ASCII.space,
            self.letters(text, 26) == self.packedZone,
            self.packedDays.contains(self.letters(text, 0)),
            let day = self.number(text, 5..<7),
            let month = self.packedMonths.firstIndex(of: self.letters(text, 8)),
            let year = self.number(text, 12..<16),
            let hour = self.number(text, 17..<19), hour < 24,
            let minute = self.number(text, 20..<22), minute < 60,
            let second = self.number(text, 23..<25), second <= 60
        else { return nil }
        let time = hour * 3600 + minute * 60 + second
        return Parts(year: year, month: month + 1, day: day, secondsOfDay: time).timestamp
    }

    private static func number(_ text: Span<UInt8>, _ places: Range<Int>) -> Int? {
        var number = 0
        for i in places {
            guard ASCII.isDigit(text[i]) else { return nil }
            number = number * 10 + Int(text[i] &- 0x30)
        }
        return number
    }

    private static func letters(_ text: Span<UInt8>, _ start: Int) -> UInt32 {
        var packed: UInt32 = 0
        for i in start..<start + 3 { packed = packed << 8 | UInt32(ASCII.lowercased(text[i])) }
        return packed
    }

    private struct Parts {
        var year = 0
        var month = 0
        var day = 0
        var secondsOfDay = 0

        /// Nil where the day does not exist.
        var timestamp: Timestamp? {
            let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
            let length =
                switch self.month {
                case 2: leap ? 29 : 28
                case 4, 6, 9, 11: 30
                default: 31
                }
            guard (1...12).contains(self.month), (1...length).contains(self.day) else {
                return nil
            }
            let days = HTTPDate.days(year: self.year, month: self.month, day: self.day)
            return Timestamp(seconds: Int64(days * 86_400 + self.secondsOfDay))
        }
    }

    /// The moment of a date and a time of day in GMT; nil where the day does not exist.
    ///
    /// For the other date of HTTP, the one in `Set-Cookie` (RFC 6265 §5.1.1). Months count from 1.
    package static func moment(year: Int, month: Int, day: Int, secondsOfDay: Int) -> Timestamp? {
        guard (0...9999).contains(year), (0..<86_400).contains(secondsOfDay) else { return nil }
        return Parts(year: year, month: month, day: day, secondsOfDay: secondsOfDay).timestamp
    }

    /// Reads a date from the front, step by step; a step that does not fit yields nil or false.
    private struct Cursor {
        var rest: FieldValue

        /// `SP 06 SP Nov SP 1994 SP 08:49:37 SP GMT`, what follows `Sun,`.
        mutating func fixdate() -> Timestamp? {
            guard self.skip(" "), let day = self.digits(2),
                self.skip(" "), let month = self.name(in: HTTPDate.packedMonths),
                self.skip(" "), let year = self.digits(4),
                self.skip(" "), let time = self.time(),
                self.skip(" gmt"), self.rest.isEmpty
            else { return nil }
            let parts = Parts(year: year, month: month + 1, day: day, secondsOfDay: time)
            return parts.timestamp
        }

        /// `, 06-Nov-94 08:49:37 GMT`, what follows `Sunday`.
        ///
        /// A year that appears to be more than 50 years ahead is the most recent one in the past
        /// with the same last two digits.
        mutating func rfc850(now: Timestamp) -> Timestamp? {
            guard self.skip(", "), let day = self.digits(2),
                self.skip("-"), let month = self.name(in: HTTPDate.packedMonths),
                self.skip("-"), let shortYear = self.digits(2),
                self.skip(" "), let time = self.time(),
                self.skip(" gmt"), self.rest.isEmpty
            else { return nil }
            let thisYear = HTTPDate.civil(days: HTTPDate.daysAndSeconds(now).days).year
            var year = thisYear - thisYear % 100 + shortYear
            if year > thisYear + 50 { year -= 100 }
            if year <= thisYear - 50 { year += 100 }
            let parts = Parts(year: year, month: month + 1, day: day, secondsOfDay: time)
            return parts.timestamp
        }

        /// `SP Nov SP  6 SP 08:49:37 SP 1994`, what follows `Sun`.
        mutating func asctime() -> Timestamp? {
            guard self.skip(" "), let month = self.name(in: HTTPDate.packedMonths), self.skip(" "),
                let day = self.skip(" ") ? self.digits(1) : self.digits(2),
                self.skip(" "), let time = self.time(),
                self.skip(" "), let year = self.digits(4), self.rest.isEmpty
            else { return nil }
            let parts = Parts(year: year, month: month + 1, day: day, secondsOfDay: time)
            return parts.timestamp
        }

        /// `08:49:37` in seconds; 60 is a leap second, counted as the one that follows.
        mutating func time() -> Int? {
            guard let hour = self.digits(2), hour < 24, self.skip(":"),
                let minute = self.digits(2), minute < 60, self.skip(":"),
                let second = self.digits(2), second <= 60
            else { return nil }
            return hour * 3600 + minute * 60 + second
        }

        mutating func digits(_ count: Int) -> Int? {
            guard self.rest.count >= count else { return nil }
            var number = 0
            for byte in self.rest.prefix(count) {
                guard ASCII.isDigit(byte) else { return nil }
                number = number * 10 + Int(byte - 0x30)
            }
            self.rest = self.rest.dropFirst(count)
            return number
        }

        mutating func skip(_ lowercase: String) -> Bool {
            let count = lowercase.utf8.count
            guard self.rest.prefix(count).spells(lowercase) else { return false }
            self.rest = self.rest.dropFirst(count)
            return true
        }

        /// The index of the three-letter name that comes next.
        mutating func name(in names: [UInt32]) -> Int? {
            let letters = self.rest.prefix(3)
            guard letters.count == 3, let index = names.firstIndex(of: HTTPDate.packed(letters))
            else { return nil }
            self.rest = self.rest.dropFirst(3)
            return index
        }
    }

    // MARK: Writing

    /// The moment as an IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`, fractions cut off.
    ///
    /// Years outside 0…9999 have no such form: the nearest moment that has one is written.
    package static func format(_ moment: Timestamp) -> String {
        String(decoding: self.bytes(moment), as: UTF8.self)
    }

    /// The same as the bytes that it is.
    ///
    /// Byte for byte into a form of it: put together from strings a date took 7,000 instructions, from
    /// pieces of text 2,900, and each response that comes without one gets it.
    package static func bytes(_ moment: Timestamp) -> [UInt8] {
        let bounded = min(max(moment.seconds, -62_167_219_200), 253_402_300_799)
        let (days, seconds) = self.daysAndSeconds(Timestamp(seconds: bounded))
        let (year, month, day) = self.civil(days: days)
        // 1970-01-01 was a Thursday.
        let weekday = ((days + 3) % 7 + 7) % 7
        var text = self.fixdateForm
        var bytes = text.mutableSpan
        self.write(self.days[weekday], at: 0, in: &bytes)
        self.write(day, at: 5, in: &bytes)
        self.write(self.months[month - 1], at: 8, in: &bytes)
        self.write(year / 100, at: 12, in: &bytes)
        self.write(year % 100, at: 14, in: &bytes)
        self.write(seconds / 3600, at: 17, in: &bytes)
        self.write(seconds / 60 % 60, at: 20, in: &bytes)
        self.write(seconds % 60, at: 23, in: &bytes)
        return text
    }

    private static let fixdateForm = Array("Thu, 01 Jan 1970 00:00:00 GMT".utf8)

    /// A name of three letters.
    private static func write(_ name: String, at place: Int, in text: inout MutableSpan<UInt8>) {
        let letters = name.utf8.span
        for i in letters.indices { text[place + i] = letters[i] }
    }

    /// The last two digits of a number.
    private static func write(_ number: Int, at place: Int, in text: inout MutableSpan<UInt8>) {
        text[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10 % 10)
        text[place + 1] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10)
    }

    // MARK: The calendar

    private static func daysAndSeconds(_ moment: Timestamp) -> (days: Int, seconds: Int) {
        let all = Int(moment.seconds)
        let days = all >= 0 ? all / 86_400 : (all + 1) / 86_400 - 1
        return (days, all - days * 86_400)
    }

    /// Days since 1970-01-01 of a date in the proleptic Gregorian calendar.
    ///
    /// Years are counted from March, so that the leap day is the last of its year.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let y = month <= 2 ? year - 1 : year
        let era = (y >= 0 ? y : y - 399) / 400
        let yearOfEra = y - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// The inverse of `days(year:month:day:)`.
    private static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}
