import LarderHTTP
import Testing

@testable import LarderSession

@Suite("Date for responses that come without one (RFC 9110 §6.6.1)")
struct DateLinesTests {
    @Test("is that of the second in which each came, also of one before the last")
    func seconds() {
        let dates = DateLines()
        for microseconds in [0, 999_999, 1_000_000, 60_000_000, 999_999, -1] as [Int64] {
            let moment = Timestamp(microseconds: microseconds)
            var expected = Fields()
            expected.append("Date", HTTPDate.format(moment))
            #expect(dates.line(at: moment) == expected)
        }
    }
}
