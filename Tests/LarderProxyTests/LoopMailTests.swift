import LarderHTTP
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import LarderProxy

@Suite("Letters to an event loop")
struct LoopMailTests {
    private final class Notes: Sendable {
        private let lines = Mutex<[Int]>([])
        func add(_ line: Int) { self.lines.withLock { $0.append(line) } }
        var all: [Int] { self.lines.withLock { $0 } }
    }

    private static let loop = MultiThreadedEventLoopGroup.singleton.next()

    @Test("are read on the loop, each once, in their order")
    func order() async throws {
        let notes = Notes()
        let mail = LoopMail(Self.loop)
        for number in 0..<100 {
            mail.post {
                Self.loop.preconditionInEventLoop()
                notes.add(number)
            }
        }
        try await Self.loop.submit {}.get()
        #expect(notes.all == Array(0..<100))
    }

    @Test("those of a round are sent at its end, and those of others meanwhile with them")
    func round() async throws {
        let notes = Notes()
        let mail = LoopMail(Self.loop)
        DeliveryRound().perform {
            mail.post { notes.add(1) }
            try? Self.loop.submit {}.wait()
            #expect(notes.all.isEmpty)
            mail.post { notes.add(2) }
        }
        try await Self.loop.submit {}.get()
        #expect(notes.all == [1, 2])
        mail.post { notes.add(3) }
        try await Self.loop.submit {}.get()
        #expect(notes.all == [1, 2, 3])
    }

    @Test("a letter that is written while another is read comes in the next turn")
    func answering() async throws {
        let notes = Notes()
        let mail = LoopMail(Self.loop)
        mail.post {
            mail.post { notes.add(2) }
            notes.add(1)
        }
        try await Self.loop.submit {}.get()
        try await Self.loop.submit {}.get()
        #expect(notes.all == [1, 2])
    }

    @Test("of many threads none is lost")
    func many() async throws {
        let notes = Notes()
        let mail = LoopMail(Self.loop)
        await withTaskGroup(of: Void.self) { group in
            for sender in 0..<8 {
                group.addTask {
                    for number in 0..<200 { mail.post { notes.add(sender * 1000 + number) } }
                }
            }
        }
        try await Self.loop.submit {}.get()
        let all = notes.all
        #expect(all.count == 1600)
        for sender in 0..<8 {
            let own = all.filter { $0 / 1000 == sender }
            #expect(own == own.sorted())
        }
    }
}
