import NIOCore
import Testing

@testable import LarderProxy

@Suite("The order of look-ups of names")
struct NameQueueTests {
    private static let now = NIODeadline.uptimeNanoseconds(1_000_000_000)

    /// Clients by letter, names by the letter of their client: `a1` is asked for by `a`.
    private struct Script {
        var queue: NameQueue
        var now = NameQueueTests.now
        private var number: UInt64 = 0

        init(threads: Int, queued: Int = 1_024) {
            self.queue = NameQueue(NameQueue.Limits(threads: threads, queued: queued))
        }

        static func client(_ letter: Character) -> ClientSource {
            .v4(UInt128(letter.asciiValue ?? 0))
        }

        @discardableResult
        mutating func ask(_ name: String, as letter: Character? = nil) -> NameQueue.Verdict {
            self.number += 1
            let client = Self.client(letter ?? name.first ?? "-")
            return self.queue.ask(name, self.number, for: client, self.now)
        }

        /// What is begun now that a look-up has ended.
        mutating func end(_ name: String, isFound: Bool = true) -> [String] {
            self.queue.ended(name, isFound: isFound, self.now).next
        }
    }

    private struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let threads: Int
        let asked: [String]
        let begun: [String]
        /// What is begun as one look-up ends after the other, in the order in which they began.
        let then: [[String]]

        init(
            _ description: String, threads: Int, _ asked: [String], begun: [String],
            then: [[String]]
        ) {
            self.testDescription = description
            self.threads = threads
            self.asked = asked
            self.begun = begun
            self.then = then
        }
    }

    @Test(
        "is by turns",
        arguments: [
            Case("one thread", threads: 1, ["a1", "a2"], begun: ["a1"], then: [["a2"], []]),
            Case(
                "by client, not by coming", threads: 1, ["a1", "a2", "a3", "a4", "b1", "c1", "b2"],
                begun: ["a1"], then: [["a2"], ["b1"], ["c1"], ["a3"], ["b2"], ["a4"], []]),
            Case(
                "a client has twice what it leaves", threads: 3, ["a1", "a2", "a3", "b1"],
                begun: ["a1", "a2", "b1"], then: [["a3"], [], [], []]),
            Case(
                "a thread left free for others is none for one that has its share", threads: 3,
                ["a1", "a2", "a3", "a4"], begun: ["a1", "a2"], then: [["a3"], ["a4"], [], []]),
            Case(
                "one end may begin several", threads: 5, ["b1", "b2", "a1", "a2", "a3", "b3"],
                begun: ["b1", "b2", "a1", "a2"], then: [["a3", "b3"], [], [], [], [], []]),
        ])
    private func turns(_ c: Case) {
        var script = Script(threads: c.threads)
        var begun = c.asked.filter { script.ask($0) == .begin }
        #expect(begun == c.begun)
        var then: [[String]] = []
        while !begun.isEmpty {
            let next = script.end(begun.removeFirst())
            then.append(next)
            begun += next
        }
        #expect(then == c.then)
        #expect(script.queue.waiting == 0)
    }

    @Test("leaves a thread and a place to wait in for another client, however many one asks for")
    func share() {
        var script = Script(threads: 64, queued: 64)
        let verdicts = (0..<1_000).map { script.ask("a\($0)") }
        #expect(verdicts.count { $0 == .begin } == 43)
        #expect(verdicts.count { $0 == .wait } == 43)
        #expect(verdicts.count { $0 == .refuse } == 914)
        let others = (0..<40).map { script.ask("b\($0)") }
        #expect(others.count { $0 == .begin } == 14)
        #expect(others.count { $0 == .wait } == 14)
        #expect(script.ask("c") == .begin)
    }

    @Test("is the better place of two, where two clients wait for one name")
    func shared() {
        var script = Script(threads: 1)
        for name in ["a1", "a2", "a3"] { script.ask(name) }
        #expect(script.ask("a3", as: "b") == .wait)
        #expect(script.end("a1") == ["a2"])
        let ending = script.end("a2")
        #expect(ending == ["a3"])
        #expect(script.queue.ended("a3", isFound: true, script.now).waiters == [3, 4])
        #expect(script.queue.waiting == 0)
    }

    @Test("begins for another client at once what waits for the first")
    func overtaken() {
        var script = Script(threads: 3)
        for name in ["a1", "a2", "a3"] { script.ask(name) }
        #expect(script.ask("a3", as: "b") == .begin)
        #expect(script.queue.ended("a3", isFound: true, script.now).waiters == [3, 4])
        #expect(script.end("a1") == [])
        #expect(script.end("a2") == [])
    }

    @Test("forgets who has left, but for what was begun")
    func left() {
        var script = Script(threads: 1, queued: 2)
        for name in ["a1", "a2"] { script.ask(name) }
        #expect(script.ask("a2", as: "b") == .wait)
        #expect(script.ask("c1") == .refuse)
        script.queue.leave("a2", 2, hasTimedOut: true, script.now)
        #expect(script.ask("c1") == .wait)
        script.queue.leave("a1", 1, hasTimedOut: false, script.now)
        script.queue.leave("a2", 3, hasTimedOut: true, script.now)
        #expect(script.ask("a1", as: "c") == .wait)
        let ending = script.queue.ended("a1", isFound: true, script.now)
        #expect(ending == NameQueue.Ending(waiters: [6], next: ["c1"]))
        // It was not looked for, so that nobody knows how long it takes.
        #expect(script.ask("a2") == .wait)
    }

    @Test("answers for 5 s that a name took too long which was looked for all the time")
    func silence() {
        var script = Script(threads: 1)
        script.ask("a1")
        script.ask("a2")
        script.now = script.now + .seconds(10)
        script.queue.leave("a1", 1, hasTimedOut: true, script.now)
        script.queue.leave("a2", 2, hasTimedOut: true, script.now)
        #expect(script.ask("a1", as: "b") == .timedOut)
        // It failed: nothing is known that was not before.
        #expect(script.end("a1", isFound: false) == [])
        script.now = script.now + .nanoseconds(4_999_999_999)
        #expect(script.ask("a1", as: "b") == .timedOut)
        script.now = script.now + .nanoseconds(1)
        #expect(script.ask("a1", as: "b") == .begin)
        script.queue.leave("a1", 5, hasTimedOut: true, script.now)
        #expect(script.ask("a1") == .timedOut)
        #expect(script.end("a1") == [])
        #expect(script.ask("a1") == .begin)
    }

    @Test("goes on without a thread that cannot be had, and ends where there is none")
    func threads() {
        var script = Script(threads: 3)
        for name in ["a1", "a2", "a3"] { script.ask(name) }
        #expect(script.queue.threadFailed("a2") == [2])
        #expect(script.queue.threadFailed("a1") == [1, 3])
        #expect(script.queue.waiting == 0)
        #expect(script.ask("a3") == .begin)
    }
}
