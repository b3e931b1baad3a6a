import LarderControl
import LarderDisk
import LarderEngine
import LarderHTTP
import Testing

@testable import LarderDaemon

@Suite("The last trouble of a session's disk")
struct DiskTroubleNoteTests {
    private let start = Timestamp(seconds: 1_700_000_000)
    private let full = StoreError(.noSpace, path: "/c", cause: "full", remedy: "free some")
    private let broken = StoreError(.failed, path: "/c", cause: "broken", remedy: "see the log")

    @Test("is over when a disk is open at last that could not be opened at the start")
    func opened() {
        let note = DiskTroubleNote()
        note.note(.withoutDisk(self.broken), at: self.start)
        #expect(note.trouble?.isOver == false)
        note.note(.disk(.opened), at: self.start + .seconds(60))
        #expect(note.trouble?.isOver == true)
    }

    @Test("is what happens now, though the log says one that comes back in turns once")
    func now() {
        let note = DiskTroubleNote()
        #expect(note.trouble == nil)
        let second = self.start + .seconds(20)
        let events: [(DiskEvent, Timestamp, String, Bool)] = [
            (.failed(self.full), self.start, "full", false),
            (.recovered, self.start + .seconds(10), "full", true),
            (.failedAgain(self.broken), second, "broken", false),
            (.recovered, second + .seconds(10), "broken", true),
            (.settled, second + .seconds(900), "broken", true),
        ]
        for (event, time, cause, isOver) in events {
            note.note(.disk(event), at: time)
            let began = cause == "full" ? self.start : second
            #expect(
                note.trouble
                    == DiskTrouble(
                        cause: "/c: \(cause)", microseconds: began.microseconds, isOver: isOver))
        }
    }
}
