import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Messages and a program's own operations on a serial queue (§1.6)")
struct DelegateOrderTests {
    /// Whose queue the delegate is called on.
    enum Kind: CaseIterable, Sendable {
        case own, serial, onDispatchQueue, main

        func queue() -> OperationQueue? {
            switch self {
            case .own: return nil
            case .main: return .main
            case .serial: return CountingQueue()
            case .onDispatchQueue:
                let queue = CountingQueue()
                unsafe queue.underlyingQueue = queue.below
                return queue
            }
        }
    }

    private static let whole = ["response", "data", "data", "metrics", "complete"]

    private func session(
        _ delegate: RecordingDelegate, on queue: OperationQueue?
    ) -> ScriptedSession {
        ScriptedSession(delegate: delegate, queue: queue) { $0.answer(200, [:], "one", "two") }
    }

    @Test(
        "keep their order, whatever comes while a message is being delivered",
        arguments: Kind.allCases)
    func during(_ kind: Kind) async throws {
        let url = try ScriptedSession.url()
        let delegate = NextTaskDelegate { session, messages in
            session.delegateQueue.addOperation { messages.change { $0.append("op") } }
            // It is answered at once: its first message is there when this returns.
            session.dataTask(with: url).resume()
        }
        let s = self.session(delegate, on: kind.queue())
        s.session.dataTask(with: url).resume()
        try await delegate.completion(2)
        #expect(
            delegate.messages.value == ["created"] + Self.whole + ["created", "op"] + Self.whole)
        #expect(delegate.wrongQueue.value == 0)
    }

    @Test(
        "keep it with blocks on the dispatch queue below", arguments: [Kind.onDispatchQueue, .main])
    func blocks(_ kind: Kind) async throws {
        let url = try ScriptedSession.url()
        let delegate = NextTaskDelegate { session, messages in
            let below = unsafe session.delegateQueue.underlyingQueue
            below?.async { messages.change { $0.append("block") } }
            session.dataTask(with: url).resume()
        }
        let s = self.session(delegate, on: kind.queue())
        s.session.dataTask(with: url).resume()
        try await delegate.completion(2)
        #expect(
            delegate.messages.value == ["created"] + Self.whole + ["created", "block"] + Self.whole)
    }

    @Test(
        "keep it while the queue stands still, also beyond what one operation delivers",
        arguments: [Kind.own, .serial, .onDispatchQueue], [1, 40])
    func standingStill(_ kind: Kind, _ count: Int) async throws {
        let delegate = RecordingDelegate()
        let s = self.session(delegate, on: kind.queue())
        let (queue, messages) = (s.session.delegateQueue, delegate.messages)
        queue.isSuspended = true
        let url = try ScriptedSession.url()
        for round in 1...2 {
            for _ in 0..<count { s.session.dataTask(with: url).resume() }
            if round == 1 { queue.addOperation { messages.change { $0.append("op") } } }
        }
        queue.isSuspended = false
        try await delegate.completion(2 * count)
        let told = delegate.messages.value.filter { $0 != "created" }
        let first = Array(repeating: "response", count: count) + ["op"]
        #expect(Array(told.prefix(count + 1)) == first)
        #expect(told.count == 10 * count + 1)
    }

    @Test(
        "keep it when a message stops the queue", arguments: [Kind.own, .serial, .onDispatchQueue])
    func stopped(_ kind: Kind) async throws {
        let delegate = HoldingDelegate()
        let s = self.session(delegate, on: kind.queue())
        let (queue, messages) = (s.session.delegateQueue, delegate.messages)
        let isStopped = Event(false)
        delegate.disposition.withLock {
            $0 = { answer in
                if !isStopped.value { queue.isSuspended = true }
                isStopped.change { $0 = true }
                answer(.allow)
            }
        }
        queue.isSuspended = true
        for _ in 0..<2 { s.session.dataTask(with: try ScriptedSession.url()).resume() }
        queue.addOperation { messages.change { $0.append("op") } }
        queue.isSuspended = false
        try await isStopped.wait(for: "the stop") { $0 }
        queue.isSuspended = false
        try await delegate.completion(2)
        let told = delegate.messages.value.filter { $0 != "created" }
        #expect(told.prefix(3) == ["response", "response", "op"])
    }

    @Test("share operations, where a program puts none between them")
    func shared() async throws {
        let queue = CountingQueue()
        let delegate = RecordingDelegate()
        let s = self.session(delegate, on: queue)
        s.session.dataTask(with: try ScriptedSession.url()).resume()
        try await delegate.completion()
        #expect(delegate.messages.value == ["created"] + Self.whole)
        // The response comes by one, and all that it leads to while that is under way.
        #expect(queue.added.value == 1)
    }

    @Test("come one at a time for each task where the queue lets several operations run")
    func widened() async throws {
        let queue = CountingQueue()
        let delegate = RecordingDelegate()
        let s = self.session(delegate, on: queue)
        // The session has taken it for serial.
        queue.maxConcurrentOperationCount = 4
        queue.isSuspended = true
        for _ in 0..<100 {
            s.session.dataTask(with: try ScriptedSession.url()).resume()
            queue.addOperation {}
        }
        queue.isSuspended = false
        try await delegate.completion(100)
        #expect(delegate.messages.value.filter { $0 == "data" }.count == 200)
        #expect(delegate.messages.value.count == 600)
    }
}

/// A serial queue that counts what is added to it.
private final class CountingQueue: OperationQueue, @unchecked Sendable {
    let added = Event(0)
    /// Held here: an operation queue does not hold what it is on.
    let below = DispatchQueue(label: "below")

    override init() {
        super.init()
        self.maxConcurrentOperationCount = 1
    }

    override func addOperation(_ operation: Operation) {
        self.added.change { $0 += 1 }
        super.addOperation(operation)
    }
}

/// Does something when the first task is over.
private final class NextTaskDelegate: RecordingDelegate, @unchecked Sendable {
    private let act: @Sendable (URLSession, Event<[String]>) -> Void
    private let isDone = Atomic(false)

    init(_ act: @escaping @Sendable (URLSession, Event<[String]>) -> Void) {
        self.act = act
    }

    override func note(_ message: String, _ session: URLSession) {
        super.note(message, session)
        guard message == "complete", !self.isDone.exchange(true, ordering: .relaxed) else { return }
        self.act(session, self.messages)
    }
}
