import LarderHTTP
import Testing

@testable import LarderDaemon

@Suite("Cookies that are not kept")
struct KeepingNoticesTests {
    private let start = Timestamp(seconds: 1_700_000_000)

    @Test("are told once, however many principals they are of, and so is the end of it")
    func once() {
        var notices = KeepingNotices()
        #expect(notices.began(at: self.start) == .say(untold: 0))
        for _ in 0..<5_351 { #expect(notices.began(at: self.start) == .count) }
        // Of the first: the others may be out of memory, and never say so.
        #expect(notices.ended() == 5_352)
        #expect(notices.ended() == nil)
        // The next trouble is another one.
        #expect(notices.began(at: self.start) == .say(untold: 0))
        #expect(notices.ended() == 1)
    }

    @Test("are told again where it lasts, with how many were counted only")
    func lasting() {
        var notices = KeepingNotices()
        let hour = KeepingNotices.span
        #expect(notices.began(at: self.start) == .say(untold: 0))
        #expect(notices.began(at: self.start) == .count)
        #expect(notices.began(at: self.start + hour) == .say(untold: 1))
        #expect(notices.began(at: self.start + hour) == .count)
        // The clock was set back.
        #expect(notices.began(at: self.start) == .say(untold: 1))
    }
}
