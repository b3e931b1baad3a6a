import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Delegate queues (§1.1, §1.6)")
struct RacesQueueTests {
    private static let whole = ["created", "response", "data", "data", "metrics", "complete"]

    /// A redirection, then a body of two pieces.
    private static func redirectOnce(_ load: ScriptedLoad) {
        if load.request.url?.path == "/" {
            load.answer(302, ["Location": "/next", "Content-Length": "0"])
        } else {
            load.answer(200, [:], "one", "two")
        }
    }

    private func serial() -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    @Test("the main queue is one like any other")
    func main() async throws {
        let s = ScriptedSession(queue: .main) { $0.answer(200, [:], "one", "two") }
        let delegate = try #require(s.delegate)
        s.session.dataTask(with: try ScriptedSession.url()).resume()
        try await delegate.completion()
        #expect(delegate.messages.value == Self.whole)
        #expect(delegate.wrongQueue.value == 0)
        s.session.finishTasksAndInvalidate()
        try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
    }

    @Test(
        "one that is suspended, also by a delegate in the midst of a message, keeps them in order")
    func suspended() async throws {
        let queue = self.serial()
        queue.isSuspended = true
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate, queue: queue) {
            $0.answer(200, [:], "one", "two")
        }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        #expect(delegate.messages.value == ["created"])
        delegate.disposition.withLock {
            $0 = { answer in
                queue.isSuspended = true
                answer(.allow)
            }
        }
        queue.isSuspended = false
        try await delegate.messages.wait(for: "the response") { $0.contains("response") }
        // What follows waits; so does the end of a task that is cancelled meanwhile.
        task.cancel()
        #expect(task.state == .canceling)
        #expect(delegate.messages.value == ["created", "response"])
        queue.isSuspended = false
        try await delegate.completion()
        #expect(delegate.messages.value == ["created", "response", "metrics", "complete"])
    }

    @Test(
        "a serial one that several sessions share has one message at a time, each task's in order")
    func shared() async throws {
        let queue = self.serial()
        let turns = Turns()
        let sessions = (0..<4).map { _ in
            ScriptedSession(delegate: TurnDelegate(turns), queue: queue) {
                $0.answer(200, [:], "one", "two")
            }
        }
        for s in sessions {
            for _ in 0..<50 { s.session.dataTask(with: try ScriptedSession.url()).resume() }
        }
        for s in sessions {
            let delegate = try #require(s.delegate)
            try await delegate.completion(50)
            #expect(delegate.wrongQueue.value == 0)
            #expect(delegate.messages.value.filter { $0 == "data" }.count == 100)
            s.session.finishTasksAndInvalidate()
            try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
        }
        #expect(turns.overlaps.value == 0)
    }

    @Test("a session of a delegate that does a hundred things in each message goes its way")
    func reentrant() async throws {
        let delegate = BusyDelegate()
        let s = ScriptedSession(delegate: delegate) { Self.redirectOnce($0) }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
        let others: Set<String> = ["created", "metrics", "invalid"]
        let own = delegate.messages.value.filter { !others.contains($0) }
        #expect(own == ["redirect 302", "response", "data", "data", "complete"])
        #expect(delegate.wrongQueue.value == 0)
        #expect(delegate.errors.value.count == 1 && task.error == nil)
        try await delegate.others.wait(for: "what it began") { $0.begun == $0.ended }
        #expect(delegate.others.value.begun > 0)
    }

    @Test("what goes on in a callback may end everything: nothing comes behind it but the end")
    func ending() async throws {
        for message in ["redirect 302", "response", "data"] {
            let delegate = BusyDelegate(ending: message)
            let s = ScriptedSession(delegate: delegate) { Self.redirectOnce($0) }
            s.session.dataTask(with: try ScriptedSession.url()).resume()
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
            let own = delegate.messages.value.filter { $0 != "created" && $0 != "metrics" }
            #expect(own.suffix(3) == [message, "complete", "invalid"])
            #expect((delegate.errors.value[0] as? URLError)?.code == .cancelled)
        }
    }
}

/// Whether several delegates ever have a message at the same time.
private final class Turns: Sendable {
    let overlaps = Event(0)
    private let busy = Mutex(false)

    func take(_ body: () -> Void) {
        let wasBusy = self.busy.withLock { busy in
            defer { busy = true }
            return busy
        }
        if wasBusy { self.overlaps.change { $0 += 1 } }
        body()
        self.busy.withLock { $0 = false }
    }
}

private final class TurnDelegate: RecordingDelegate, @unchecked Sendable {
    private let turns: Turns

    init(_ turns: Turns) {
        self.turns = turns
    }

    override func note(_ message: String, _ session: URLSession) {
        self.turns.take { super.note(message, session) }
    }
}

/// Calls back into the API with each message.
private final class BusyDelegate: RecordingDelegate, @unchecked Sendable {
    struct Others: Sendable {
        var begun = 0
        var ended = 0
    }

    /// Tasks with handlers that it has begun.
    let others = Event(Others())
    private let end: String?

    /// - Parameter end: the message with which it invalidates the session.
    init(ending end: String? = nil) {
        self.end = end
    }

    override func note(_ message: String, _ session: URLSession) {
        super.note(message, session)
        if message == self.end { return session.invalidateAndCancel() }
        guard message != "invalid" else { return }
        if message == "complete" { return session.finishTasksAndInvalidate() }
        session.getAllTasks { [others] tasks in
            for task in tasks {
                task.suspend()
                _ = (task.state, task.progress.fractionCompleted, task.currentRequest)
                task.priority = 1
                task.resume()
            }
            others.change { $0.ended += 1 }
        }
        self.others.change { $0.begun += 1 }
        // The delegate hears of the metrics of these, too.
        guard message != "metrics", let url = URL(string: "unknown://origin.test/") else { return }
        self.others.change { $0.begun += 1 }
        session.dataTask(with: url) { [others] _, _, _ in
            others.change { $0.ended += 1 }
        }.resume()
    }
}
