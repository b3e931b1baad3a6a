import Dispatch
import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import LarderTransfer
@testable import URLLoading

@Suite("Races of a task with the program (§1.2, §3.1, §4)")
struct RacesTaskTests {
    private typealias Asked = HoldingDelegate.Asked

    @Test("suspend and resume from several threads leave it running when they are even (500 times)")
    func suspensions() async throws {
        for _ in 0..<500 {
            let s = ScriptedSession()
            let delegate = try #require(s.delegate)
            let task = s.session.dataTask(with: try ScriptedSession.url())
            task.resume()
            let body = try await s.loaders.load().answer(200, [:], "one", isWhole: false)
            try await delegate.messages.wait(for: "data") { $0.contains("data") }
            let toggle: @Sendable () -> Void = {
                for _ in 0..<4 {
                    task.suspend()
                    task.resume()
                }
            }
            await Race.atOnce(toggle, toggle, toggle)
            #expect(task.state == .running)
            body.push("two")
            body.end()
            try await delegate.completion()
            #expect(delegate.data.value == Data("onetwo".utf8))
            s.session.finishTasksAndInvalidate()
        }
    }

    @Test(
        "a task that is cancelled before it began completes before its session's last message (§1.2)",
        arguments: [1, 4], [true, false])
    func unbegun(concurrency: Int, isDownload: Bool) async throws {
        for index in 0..<100 {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = concurrency
            let s = ScriptedSession(queue: queue)
            let delegate = try #require(s.delegate)
            let url = try ScriptedSession.url()
            let task: URLSessionTask =
                isDownload ? s.session.downloadTask(with: url) : s.session.dataTask(with: url)
            if index % 2 == 0, let download = task as? URLSessionDownloadTask {
                download.cancel { _ in }
            } else {
                task.cancel()
            }
            s.session.finishTasksAndInvalidate()
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
            #expect(delegate.messages.value == ["created", "metrics", "complete", "invalid"])
            #expect(s.session.guarded.withLock { $0.tasks.isEmpty })
        }
    }

    @Test("a task that is cancelled while it begins leaves no time running (1,000 times)")
    func cancelledBeginning() async throws {
        let s = ScriptedSession(delegate: nil)
        for _ in 0..<1000 {
            let ended = Event(false)
            let purpose = HandlerPurpose { _, _, _ in ended.change { $0 = true } }
            let request = URLRequest(url: try ScriptedSession.url())
            let task = s.session.make(TaskOrder(request, for: purpose))
            await Race.atOnce({ task.resume() }, { task.cancel() })
            try await ended.wait(for: "the end") { $0 }
        }
        #expect(s.session.deadlines.isEmpty)
        // Also where its time begins to run behind its end.
        let late = s.session.dataTask(with: try ScriptedSession.url())
        s.session.deadlines.begin(late.taskIdentifier)
        s.session.end(late)
        #expect(s.session.deadlines.isEmpty)
    }

    @Test("tasks that are resumed too late complete before the session's last message, if at all")
    func late() async throws {
        for _ in 0..<200 {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 4
            let s = ScriptedSession(queue: queue)
            let delegate = try #require(s.delegate)
            let running = s.session.dataTask(with: try ScriptedSession.url())
            let late = s.session.dataTask(with: try ScriptedSession.url())
            running.resume()
            let load = try await s.loaders.load()
            s.session.finishTasksAndInvalidate()
            await Race.atOnce({ late.resume() }, { late.cancel() }, { load.answer() })
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
            #expect(delegate.messages.value.last == "invalid")
            let completions = delegate.messages.value.filter { $0 == "complete" }.count
            #expect(completions == 1 || completions == 2)
            #expect(late.state == .completed || late.state == .canceling)
        }
    }

    @Test("a session becomes invalid, too, where a task was over before it was no longer counted")
    func uncounted() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        s.session.finishTasksAndInvalidate()
        // As two threads have it, of which one cancels the task and the other resumes it.
        let session = try #require(task.leaveUnbegun())
        session.end(task)
        session.uncount()
        session.end(task)
        #expect(session.guarded.withLock { $0.isEnding })
        try await s.delegate?.messages.wait(for: "the end") { $0.last == "invalid" }
    }

    @Test("what is cancelled before it began tells its delegate on the queue, also an async method")
    func cancelledBefore() async throws {
        let s = ScriptedSession(delegate: nil)
        for _ in 0..<50 {
            let delegate = RecordingDelegate()
            let url = try ScriptedSession.url()
            let task = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return try await s.session.data(from: url, delegate: delegate)
            }
            let error = await #expect(throws: URLError.self) { _ = try await task.value }
            #expect(error?.code == .cancelled)
            #expect(delegate.messages.value == ["created", "metrics"])
            #expect(delegate.wrongQueue.value == 0)
        }
        #expect(s.loaders.loads.value.isEmpty)
    }

    @Test("the rest of a redirection is let go of with the task that was cancelled meanwhile")
    func drained() async throws {
        // However long it takes to cancel: the time for the rest is never over.
        let s = ScriptedSession(timers: FiringTimers())
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        let load = try await s.loaders.load()
        let body = load.answer(
            302, ["Location": "/next", "Content-Length": "10"], "abc", isWhole: false)
        try await body.pulls.wait(for: "the rest to be read") { $0 >= 2 }
        task.cancel()
        try await load.isCancelled.wait(for: "the load's end") { $0 }
        try await s.delegate?.completion()
        #expect(s.loaders.loads.value.count == 1)
    }

    @Test("a data task becomes a download while its load is still being begun")
    func becomesEarly() async throws {
        let delegate = HoldingDelegate()
        let became = DispatchSemaphore(value: 0)
        let s = ScriptedSession(delegate: delegate) { load in
            load.answer(200, [:], "one", isWhole: false)
            // The delegate's queue goes on meanwhile.
            _ = became.wait(timeout: .now() + 30)
        }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        let isBegun = Event(false)
        DispatchQueue.global().async {
            task.resume()
            isBegun.change { $0 = true }
        }
        try await delegate.questions().dispositions[0](.becomeDownload)
        try await delegate.messages.wait(for: "the download") { $0.contains("became") }
        became.signal()
        try await isBegun.wait(for: "resume to return") { $0 }
        #expect(!s.loaders.loads.value[0].isCancelled.value)
        let download = try #require(await s.session.allTasks.first as? URLSessionDownloadTask)
        download.cancel()
        try await delegate.completion()
    }

    @Test("becoming a download, cancel, invalidation and the body's end at once (400 times)")
    func becomes() async throws {
        for index in 0..<400 {
            let delegate = HoldingDelegate()
            let s = ScriptedSession(delegate: delegate)
            let task = s.session.dataTask(with: try ScriptedSession.url())
            task.resume()
            let load = try await s.loaders.load()
            let body = load.answer(200, [:], "one", isWhole: false)
            let answer = try await delegate.questions().dispositions[0]
            let ends: @Sendable () -> Void = { index % 3 == 0 ? () : task.cancel() }
            await Race.atOnce(
                { answer(.becomeDownload) }, ends, { s.session.invalidateAndCancel() },
                {
                    body.push("two")
                    load.measure()
                })
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
            let messages = delegate.messages.value
            #expect(messages.suffix(3) == ["metrics", "complete", "invalid"])
            #expect(messages.filter { $0 == "complete" }.count == 1)
            #expect(!messages.contains("data"))
            #expect(s.session.guarded.withLock { $0.tasks.isEmpty })
            #expect(delegate.wrongQueue.value == 0)
        }
    }

    @Test("of three answers to a response one counts, whichever thread brings them (300 times)")
    func dispositions() async throws {
        for _ in 0..<300 {
            let delegate = HoldingDelegate()
            let s = ScriptedSession(delegate: delegate)
            s.session.dataTask(with: try ScriptedSession.url()).resume()
            try await s.loaders.load().answer(200, [:], "one")
            let answer = try await delegate.questions().dispositions[0]
            await Race.atOnce({ answer(.allow) }, { answer(.cancel) }, { answer(.becomeDownload) })
            s.session.finishTasksAndInvalidate()
            try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
            let messages = delegate.messages.value.dropFirst(2).prefix { $0 != "metrics" }
            #expect([["data"], ["became"], []].contains(Array(messages)))
            #expect(delegate.errors.value.count == 1)
            // Late ones say nothing to anybody.
            answer(.allow)
            await s.session.delegateQueue.settled()
            #expect(delegate.messages.value.last == "invalid")
        }
    }

    @Test("of two answers to a challenge one counts (200 times)")
    func challenges() async throws {
        for _ in 0..<200 {
            let delegate = HoldingDelegate(allowsAll: true)
            let s = ScriptedSession(delegate: delegate)
            s.session.dataTask(with: try ScriptedSession.url()).resume()
            let fields = ["WWW-Authenticate": "Basic realm=\"r\"", "Content-Length": "0"]
            try await s.loaders.load().answer(401, fields)
            let answer = try await delegate.questions().challenges[0]
            let login = URLCredential(user: "u", password: "p", persistence: .none)
            await Race.atOnce(
                { answer(.useCredential, login) }, { answer(.cancelAuthenticationChallenge, nil) },
                { answer(.useCredential, login) })
            let isRepeated = delegate.errors.value.isEmpty && s.loaders.loads.value.count == 2
            if isRepeated { s.loaders.loads.value[1].answer() }
            try await delegate.completion()
            #expect(s.loaders.loads.value.count <= 2)
            #expect((delegate.errors.value[0] == nil) == (s.loaders.loads.value.count == 2))
        }
    }

    @Test("of two streams for a body one is sent, and of two decisions what to store one counts")
    func streamsAndStoring() async throws {
        for index in 0..<200 {
            let delegate = HoldingDelegate(allowsAll: true)
            let s = ScriptedSession(delegate: delegate)
            var request = URLRequest(url: try ScriptedSession.url())
            request.httpMethod = "PUT"
            let task = s.session.uploadTask(withStreamedRequest: request)
            task.resume()
            let answer = try await delegate.questions().streams[0]
            await Race.atOnce(
                { answer(InputStream(data: Data("a".utf8))) },
                { answer(InputStream(data: Data("b".utf8))) }, { answer(nil) })
            let storing = RecordingStoring()
            if delegate.errors.value.isEmpty, let load = s.loaders.loads.value.first {
                load.answer(200, [:], "one", storing: storing)
                let decide = try await delegate.questions(2).storings[0]
                let proposed = storing.proposedResponse()
                let ends: @Sendable () -> Void = { index % 2 == 0 ? () : task.cancel() }
                await Race.atOnce({ decide(nil) }, { decide(proposed) }, ends)
                #expect(storing.decisions.value.count == 1)
            }
            try await delegate.completion()
            #expect(s.loaders.loads.value.count <= 1)
            #expect(delegate.errors.value.count == 1)
        }
    }

    @Test("a handler that is never called keeps a task waiting, not alive when it is cancelled")
    func neverAnswered() async throws {
        weak var task: URLSessionTask?
        weak var session: URLSession?
        weak var delegate: HoldingDelegate?
        let messages: Event<[String]>
        let queue: OperationQueue
        do {
            let holding = HoldingDelegate()
            let s = ScriptedSession(delegate: holding)
            (session, delegate, messages, queue) = (
                s.session, holding, holding.messages, s.session.delegateQueue
            )
            let made = s.session.dataTask(with: try ScriptedSession.url())
            task = made
            made.resume()
            try await s.loaders.load().answer(200, [:], "one")
            _ = try await holding.questions()
            #expect(made.state == .running)
            s.session.invalidateAndCancel()
            holding.asked.change { $0 = Asked() }
            s.loaders.loads.change { $0 = [] }
        }
        try await messages.wait(for: "the end") { $0.last == "invalid" }
        await queue.settled()
        #expect(messages.value == ["created", "response", "metrics", "complete", "invalid"])
        #expect(task == nil && session == nil && delegate == nil)
    }
}
