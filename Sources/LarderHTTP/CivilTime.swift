/// A date of the proleptic Gregorian calendar and a time of day, in GMT.
package struct CivilTime: Sendable {
    /// The names that HTTP, mail and logs give to the months.
    package static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    package let year: Int
    /// From 1, like days.
    package let month: Int
    package let day: Int
    package let secondsOfDay: Int
    /// Since 1970-01-01.
    private let days: Int

    /// - Parameter year: of four digits, like all the numbers of what is too short for more.
    init(year: Int, month: Int, day: Int, secondsOfDay: Int) {
        self.year = year
        self.month = month
        self.day = day
        self.secondsOfDay = secondsOfDay
        // The inverse of what follows.
        let y = month <= 2 ? year - 1 : year
        let era = (y >= 0 ? y : y - 399) / 400
        let yearOfEra = y - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        self.days = era * 146_097 + dayOfEra - 719_468
    }

    /// The date and time of a moment, fractions of a second cut off.
    ///
    /// Years 0 to 9999, which four digits can say: what lies beyond is that bound.
    package init(_ moment: Timestamp) {
        let seconds = Int(min(max(moment.seconds, -62_167_219_200), 253_402_300_799))
        let days = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
        // Days since 0000-03-01: years that begin in March have their leap day last, and 400 of them
        // have 146,097 days.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        self.month = month
        self.year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        self.secondsOfDay = seconds - days * 86_400
        self.days = days
    }

    package var hour: Int { self.secondsOfDay / 3600 }
    package var minute: Int { self.secondsOfDay / 60 % 60 }
    package var second: Int { self.secondsOfDay % 60 }

    /// From Monday, which is 0.
    var weekday: Int {
        // 1970-01-01 was a Thursday.
        ((self.days + 3) % 7 + 7) % 7
    }

    /// Nil where the day does not exist.
    var timestamp: Timestamp? {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
        let length =
            switch self.month {
            case 2: leap ? 29 : 28
            case 4, 6, 9, 11: 30
            default: 31
            }
        guard (1...12).contains(self.month), (1...length).contains(self.day) else { return nil }
        return Timestamp(seconds: Int64(self.days * 86_400 + self.secondsOfDay))
    }
}
