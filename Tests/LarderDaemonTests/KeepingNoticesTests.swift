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
        #expect(notices.ended(at: self.start) == 5_352)
        #expect(notices.ended(at: self.start) == nil)
    }

    @Test("are told once a span where small changes fit and large ones do not, and so is the end")
    func flipping() {
        var notices = KeepingNotices()
        let hour = KeepingNotices.span
        #expect(notices.began(at: self.start) == .say(untold: 0))
        #expect(notices.ended(at: self.start) == 1)
        for _ in 0..<100 {
            #expect(notices.began(at: self.start + .seconds(3_599)) == .count)
            // The log says that they are kept, and had not said anything else since.
            #expect(notices.ended(at: self.start + .seconds(3_599)) == nil)
        }
        #expect(notices.ended(at: self.start + hour) == nil)
        // One that fails still is said at the latest with the next that fails.
        #expect(notices.began(at: self.start + hour) == .say(untold: 100))
        #expect(notices.began(at: self.start + hour) == .count)
        #expect(notices.ended(at: self.start + hour) == 102)
    }

    @Test("have their end told later where the last one was told just before")
    func endHeldBack() {
        var notices = KeepingNotices()
        let hour = KeepingNotices.span
        #expect(notices.began(at: self.start) == .say(untold: 0))
        #expect(notices.ended(at: self.start + .seconds(3_000)) == 1)
        #expect(notices.began(at: self.start + hour) == .say(untold: 0))
        #expect(notices.ended(at: self.start + hour) == nil)
        #expect(notices.began(at: self.start + hour) == .count)
        #expect(notices.ended(at: self.start + hour + .seconds(3_000)) == 2)
        #expect(notices.ended(at: self.start + hour + hour) == nil)
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
