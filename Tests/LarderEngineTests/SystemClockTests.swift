import LarderEngine
import LarderHTTP
import Testing

@Suite("The machine's clock")
struct SystemClockTests {
    @Test("tells the time of day, not that since a start")
    func now() {
        let clock = SystemClock()
        let first = clock.now()
        #expect(first > Timestamp(seconds: 1_700_000_000))
        #expect(clock.now() >= first)
    }
}
