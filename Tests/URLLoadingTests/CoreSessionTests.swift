import Foundation
@testable import LarderProcess
import Synchronization
import Testing
@testable import URLLoading

@Suite("Sessions (§1.1 to §1.3, §4.6)")
struct CoreSessionTests {
    @Test("let the delegate go when they have become invalid, and not before (§1.2)")
    func release() async throws {
        let loaders = ScriptedLoaders()
        weak var gone: RecordingDelegate?
        let messages: Event<[String]>
        let session: URLSession
        do {
            let delegate = RecordingDelegate()
            gone = delegate
            messages = delegate.messages
            session = URLSession(.default, delegate: delegate, queue: nil, loaders: loaders)
        }
        #expect(gone != nil)
        let task = session.dataTask(with: try ScriptedSession.url())
        task.resume()
        session.finishTasksAndInvalidate()
        try await loaders.load().answer()
        try await messages.wait(for: "the last message") { $0.last == "invalid" }
        // The message that lets it go is the one that is running now.
        await session.delegateQueue.settled()
        #expect(gone == nil && session.delegate == nil)
        #expect(loaders.invalidations.value >= 1)
    }

    @Test("that are dropped go with all they have, once their tasks are over")
    func dropped() async throws {
        weak var session: URLSession?
        weak var delegate: RecordingDelegate?
        weak var task: URLSessionTask?
        let loaders = ScriptedLoaders()
        let results = Event(0)
        let queue: OperationQueue
        do {
            let s = ScriptedSession()
            session = s.session
            delegate = s.delegate
        }
        #expect(session == nil && delegate == nil)
        do {
            let made = URLSession(.default, delegate: nil, queue: nil, loaders: loaders)
            session = made
            queue = made.delegateQueue
            let own = made.dataTask(with: try ScriptedSession.url()) { _, _, _ in
                results.change { $0 += 1 }
            }
            own.resume()
            task = own
        }
        // The running task keeps both.
        #expect(session != nil && task != nil)
        try await loaders.load().answer(200, [:], "one")
        try await results.wait(for: "the end") { $0 == 1 }
        loaders.loads.change { $0 = [] }
        try await loaders.invalidations.wait(for: "the session's end") { $0 == 1 }
        await queue.settled()
        #expect(session == nil && task == nil)
    }

    @Test("take no tasks when they are invalid: these complete with cancelled (§1.2)")
    func invalid() async throws {
        let s = ScriptedSession()
        s.session.invalidateAndCancel()
        s.session.invalidateAndCancel()
        let results = Event<[(any Error)?]>([])
        let task = s.session.dataTask(with: try ScriptedSession.url()) { _, _, error in
            results.change { $0.append(error) }
        }
        task.resume()
        try await results.wait(for: "the end") { $0.count == 1 }
        #expect((results.value[0] as? URLError)?.code == .cancelled)
        #expect(s.loaders.loads.value.isEmpty)
        try await s.delegate?.messages.wait(for: "the last message") { $0.contains("invalid") }
        #expect(s.delegate?.messages.value.filter { $0 == "invalid" }.count == 1)
    }

    /// What becomes of a task that was made before its session was to end.
    enum Unbegun: CaseIterable { case resumed, cancelled, dropped }

    @Test(
        "that are to finish their tasks wait for those that were never resumed (§1.2)",
        arguments: Unbegun.allCases)
    func unbegun(_ fate: Unbegun) async throws {
        let s = ScriptedSession()
        let messages = try #require(s.delegate?.messages)
        var task: URLSessionDataTask? = s.session.dataTask(with: try ScriptedSession.url())
        s.session.finishTasksAndInvalidate()
        await s.session.delegateQueue.settled()
        #expect(messages.value == ["created"])
        switch fate {
        case .resumed:
            task?.resume()
            try await s.loaders.load().answer(200, [:], "one")
        case .cancelled: task?.cancel()
        case .dropped: task = nil
        }
        try await messages.wait(for: "the last message") { $0.last == "invalid" }
        #expect(messages.value.contains("complete") == (fate != .dropped))
        #expect(messages.value.contains("data") == (fate == .resumed))
        withExtendedLifetime(task) {}
    }

    @Test("that were cancelled do not wait for tasks that were never resumed (§1.2)")
    func unbegunWhenCancelled() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        s.session.invalidateAndCancel()
        try await s.delegate?.messages.wait(for: "the last message") { $0.last == "invalid" }
        task.resume()
        #expect(s.loaders.loads.value.isEmpty)
    }

    @Test("that are the shared one cannot be invalidated (§1.2)")
    func shared() {
        URLSession.shared.finishTasksAndInvalidate()
        URLSession.shared.invalidateAndCancel()
        #expect(URLSession.shared.guarded.withLock { !$0.isInvalidated })
        #expect(URLSession.shared === URLSession.shared)
        #expect(URLSession.shared.delegate == nil)
    }

    @Test("list what runs or is suspended, by kind, and not what was never resumed (§1.3)")
    func enumeration() async throws {
        let s = ScriptedSession()
        let url = try ScriptedSession.url()
        var post = URLRequest(url: url)
        post.httpMethod = "POST"
        let data = s.session.dataTask(with: url)
        let upload = s.session.uploadTask(with: post, from: Data("x".utf8))
        let download = s.session.downloadTask(with: url)
        let unresumed = s.session.dataTask(with: url)
        unresumed.suspend()
        unresumed.resume()
        #expect(await s.session.allTasks.isEmpty)
        for task in [data, upload, download] { task.resume() }
        download.suspend()
        let (first, second, third) = await s.session.tasks
        #expect(first == [data] && second == [upload] && third == [download])
        let listed = Event<[URLSessionTask]?>(nil)
        s.session.getAllTasks { tasks in listed.change { $0 = tasks } }
        try await listed.wait(for: "the list") { $0 != nil }
        #expect(listed.value == [data, upload, download])
        data.cancel()
        #expect(await s.session.allTasks == [upload, download])
        s.session.invalidateAndCancel()
        #expect(await s.session.allTasks.isEmpty)
    }

    @Test("are themselves their copies, and their configuration is one (§1.1)")
    func copies() throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 5
        let session = URLSession(configuration: configuration)
        configuration.timeoutIntervalForRequest = 6
        #expect(session.configuration.timeoutIntervalForRequest == 5)
        session.configuration.timeoutIntervalForRequest = 7
        #expect(session.configuration.timeoutIntervalForRequest == 5)
        #expect(session.configuration.httpCookieStorage === configuration.httpCookieStorage)
        #expect(session.copy() as? URLSession === session)
        let task = session.dataTask(with: try ScriptedSession.url())
        #expect(task.isEqual(task.copy()))
        #expect(session.delegateQueue.maxConcurrentOperationCount == 1)
        session.sessionDescription = "label"
        #expect(session.sessionDescription == "label")
    }

    @Test("deliver one message of a task at a time on a queue that is concurrent (§1.1)")
    func concurrentQueue() async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 8
        let delegate = OverlapDelegate()
        let s = ScriptedSession(delegate: delegate, queue: queue) { load in
            load.answer(200, [:], "1", "2", "3", "4", "5", "6")
        }
        for _ in 0..<50 { s.session.dataTask(with: try ScriptedSession.url()).resume() }
        try await delegate.completion(50)
        #expect(delegate.overlaps.value == 0)
        #expect(delegate.messages.value.filter { $0 == "data" }.count == 300)
        #expect(delegate.wrongQueue.value == 0)
    }

    @Test("tell a queue's messages also when somebody cancels its operations")
    func cancelledOperations() async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let s = ScriptedSession(queue: queue) { $0.answer(200, [:], "one") }
        s.session.dataTask(with: try ScriptedSession.url()).resume()
        queue.cancelAllOperations()
        queue.isSuspended = false
        try await s.delegate?.completion()
        #expect(s.delegate?.data.value == Data("one".utf8))
    }

    @Test("tell the task's own delegate first, and their own what that one lacks (§4.6)")
    func taskDelegate() async throws {
        let s = ScriptedSession { $0.answer(200, [:], "one") }
        let own = PartialDelegate()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.delegate = own
        task.resume()
        // Too late.
        task.delegate = RecordingDelegate()
        try await own.completed.wait(for: "the end") { $0 == 1 }
        #expect(s.delegate?.messages.value == ["created", "response", "data", "metrics"])
    }

    @Test("empty what they keep, and say so on the delegate queue (§1.2)")
    func reset() async throws {
        let s = ScriptedSession()
        let queue = s.session.delegateQueue
        let done = Event<[Bool]>([])
        s.session.reset { done.change { $0.append(OperationQueue.current === queue) } }
        s.session.flush { done.change { $0.append(OperationQueue.current === queue) } }
        try await done.wait(for: "both") { $0.count == 2 }
        #expect(done.value == [true, true])
        #expect(s.loaders.resets.value == 1)
    }
}

/// Notices two messages of one task at a time.
private final class OverlapDelegate: RecordingDelegate, @unchecked Sendable {
    let overlaps = Event(0)
    private let busy = Mutex<Set<Int>>([])

    override func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
        let isAlone = self.busy.withLock { $0.insert(dataTask.taskIdentifier).inserted }
        if !isAlone { self.overlaps.change { $0 += 1 } }
        super.urlSession(session, dataTask: dataTask, didReceive: data)
        self.busy.withLock { _ = $0.remove(dataTask.taskIdentifier) }
    }
}

/// Implements the completion, and nothing else.
private final class PartialDelegate: NSObject, URLSessionDataDelegate {
    let completed = Event(0)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.completed.change { $0 += 1 }
    }
}
