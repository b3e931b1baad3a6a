/// `HTTP-date`: a moment in whole seconds of GMT (RFC 9110 §5.6.7).
package enum HTTPDate {
    private static let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    /// What the long names add to the short ones.
    private static let dayEndings = ["day", "sday", "nesday", "rsday", "day", "urday", "day"]
    private static let packedDays = Self.days.map { Self.packed($0.utf8) }
    private static let packedZone = Self.packed("gmt".utf8)
    private static let packedMonths = CivilTime.months.map { Self.packed($0.utf8) }

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
        return CivilTime(year: year, month: month + 1, day: day, secondsOfDay: time).timestamp
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

    /// The moment of a date and a time of day in GMT; nil where the day does not exist.
    ///
    /// For the other date of HTTP, the one in `Set-Cookie` (RFC 6265 §5.1.1). Months count from 1.
    package static func moment(year: Int, month: Int, day: Int, secondsOfDay: Int) -> Timestamp? {
        guard (0...9999).contains(year), (0..<86_400).contains(secondsOfDay) else { return nil }
        return CivilTime(year: year, month: month, day: day, secondsOfDay: secondsOfDay).timestamp
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
            return CivilTime(year: year, month: month + 1, day: day, secondsOfDay: time).timestamp
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
            let thisYear = CivilTime(now).year
            var year = thisYear - thisYear % 100 + shortYear
            if year > thisYear + 50 { year -= 100 }
            if year <= thisYear - 50 { year += 100 }
            return CivilTime(year: year, month: month + 1, day: day, secondsOfDay: time).timestamp
        }

        /// `SP Nov SP  6 SP 08:49:37 SP 1994`, what follows `Sun`.
        mutating func asctime() -> Timestamp? {
            guard self.skip(" "), let month = self.name(in: HTTPDate.packedMonths), self.skip(" "),
                let day = self.skip(" ") ? self.digits(1) : self.digits(2),
                self.skip(" "), let time = self.time(),
                self.skip(" "), let year = self.digits(4), self.rest.isEmpty
            else { return nil }
            return CivilTime(year: year, month: month + 1, day: day, secondsOfDay: time).timestamp
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

    /// The moment as the bytes of an IMF-fixdate.
    ///
    /// Byte for byte into a form of it: put together from strings a date took 7,000 instructions, from
    /// pieces of text 2,900, and each response that comes without one gets it.
    package static func bytes(_ moment: Timestamp) -> [UInt8] {
        let time = CivilTime(moment)
        var text = self.fixdateForm
        var bytes = text.mutableSpan
        self.write(self.days[time.weekday], at: 0, in: &bytes)
        self.write(time.day, at: 5, in: &bytes)
        self.write(CivilTime.months[time.month - 1], at: 8, in: &bytes)
        self.write(time.year / 100, at: 12, in: &bytes)
        self.write(time.year % 100, at: 14, in: &bytes)
        self.write(time.hour, at: 17, in: &bytes)
        self.write(time.minute, at: 20, in: &bytes)
        self.write(time.second, at: 23, in: &bytes)
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
}
