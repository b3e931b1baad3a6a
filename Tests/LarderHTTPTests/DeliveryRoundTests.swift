import Dispatch
import Foundation
import LarderHTTP
import Synchronization
import Testing

@Suite("A round of deliveries")
struct DeliveryRoundTests {
    private final class End: RoundEnd {
        let name: String
        let notes: Notes

        init(_ name: String, _ notes: Notes) {
            self.name = name
            self.notes = notes
        }

        func roundEnded() { self.notes.add("\(self.name) ends") }
    }

    private final class Notes: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { self.lines.withLock { $0.append(line) } }
        var all: [String] { self.lines.withLock { $0 } }
    }

    @Test("outside of one nothing is put off")
    func outside() {
        #expect(!DeliveryRound.putOff(End("a", Notes())))
    }

    @Test("what is put off happens once, at its end, in order; the next round knows nothing of it")
    func order() {
        let notes = Notes()
        let round = DeliveryRound()
        for number in 0..<2 {
            round.perform {
                for name in ["a", "b"] {
                    #expect(DeliveryRound.putOff(End("\(name)\(number)", notes)))
                }
                notes.add("body \(number)")
            }
        }
        round.perform {}
        #expect(!DeliveryRound.putOff(End("late", notes)))
        #expect(
            notes.all == ["body 0", "a0 ends", "b0 ends", "body 1", "a1 ends", "b1 ends"])
    }

    @Test("one within another is part of that")
    func nested() {
        let notes = Notes()
        DeliveryRound().perform {
            DeliveryRound().perform { #expect(DeliveryRound.putOff(End("a", notes))) }
            notes.add("still")
        }
        #expect(notes.all == ["still", "a ends"])
    }

    @Test("at its end it is over: what an end puts off is not lost")
    func over() {
        final class Asking: RoundEnd {
            let answer = Mutex<Bool?>(nil)
            func roundEnded() {
                let isPutOff = DeliveryRound.putOff(self)
                self.answer.withLock { $0 = isPutOff }
            }
        }
        let asking = Asking()
        DeliveryRound().perform { #expect(DeliveryRound.putOff(asking)) }
        #expect(asking.answer.withLock { $0 } == false)
    }

    @Test("other threads are not in it")
    func threads() async {
        let notes = Notes()
        let isOther = await withCheckedContinuation { continuation in
            let semaphore = DispatchSemaphore(value: 0)
            DeliveryRound().perform {
                Thread.detachNewThread {
                    continuation.resume(returning: DeliveryRound.putOff(End("a", notes)))
                    semaphore.signal()
                }
                semaphore.wait()
            }
        }
        #expect(!isOther)
        #expect(notes.all.isEmpty)
    }
}
