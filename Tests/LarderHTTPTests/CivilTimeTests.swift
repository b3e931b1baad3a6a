import Testing

@testable import LarderHTTP

@Suite("Dates and times of day")
struct CivilTimeTests {
    @Test("of every day of five centuries follow one another, and lead back to their moment")
    func days() {
        var (year, month, day, weekday) = (1700, 1, 1, 4)
        let first = CivilTime(year: year, month: month, day: day, secondsOfDay: 0).timestamp
        var seconds = first?.seconds ?? 0
        while year < 2200 {
            let (morning, night) = (
                Timestamp(seconds: seconds), Timestamp(seconds: seconds + 86_399)
            )
            for (moment, time) in [(morning, (0, 0, 0)), (night, (23, 59, 59))] {
                let told = CivilTime(moment)
                #expect((told.year, told.month, told.day) == (year, month, day))
                #expect((told.hour, told.minute, told.second) == time)
                #expect(told.weekday == weekday)
                #expect(told.timestamp == moment)
            }
            let next = CivilTime(year: year, month: month, day: day + 1, secondsOfDay: 0)
            if next.timestamp != nil {
                day += 1
            } else {
                (year, month, day) = month == 12 ? (year + 1, 1, 1) : (year, month + 1, 1)
            }
            weekday = (weekday + 1) % 7
            seconds += 86_400
        }
        // 2200-01-01.
        #expect(seconds == 7_258_118_400)
    }

    @Test(
        "have fractions cut off, and years of four digits",
        arguments: [
            (-1, [1969, 12, 31, 86_399]), (999_999, [1970, 1, 1, 0]),
            (951_782_400_000_000, [2000, 2, 29, 0]), (.min, [0, 1, 1, 0]),
            (.max, [9999, 12, 31, 86_399]),
        ] as [(Int64, [Int])])
    func bounds(microseconds: Int64, parts: [Int]) {
        let told = CivilTime(Timestamp(microseconds: microseconds))
        #expect([told.year, told.month, told.day, told.secondsOfDay] == parts)
    }
}
