import LarderHTTP
import Testing

@testable import LarderDaemon

@Suite("Damaged entries in a session's log")
struct DamageNoticesTests {
    @Test("are named one by one up to the bound, then counted, and told of an hour later")
    func bound() {
        var notices = DamageNotices()
        var verdicts: [DamageNotices.Verdict] = []
        for second in 0..<100 {
            verdicts.append(notices.verdict(at: Timestamp(seconds: 1_000 + Int64(second))))
        }
        let last = DamageNotices.bound - 1
        #expect(verdicts[..<last].allSatisfy { $0 == .say(untold: 0) })
        #expect(verdicts[last] == .sayAsLast)
        #expect(verdicts[(last + 1)...].allSatisfy { $0 == .count })
        #expect(notices.verdict(at: Timestamp(seconds: 4_599)) == .count)
        #expect(notices.verdict(at: Timestamp(seconds: 4_600)) == .say(untold: 81))
        #expect(notices.verdict(at: Timestamp(seconds: 4_601)) == .say(untold: 0))
    }

    @Test(
        "are named again where the clock was set", arguments: [0, Int64.min, Int64.max])
    func clock(microseconds: Int64) {
        var notices = DamageNotices()
        for _ in 0..<30 { _ = notices.verdict(at: Timestamp(seconds: 1_000)) }
        let verdict = notices.verdict(at: Timestamp(microseconds: microseconds))
        #expect(verdict == .say(untold: 10))
    }
}
