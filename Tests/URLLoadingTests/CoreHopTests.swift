import Foundation
import LarderHTTP
@testable import LarderProcess
import LarderSession
import Synchronization
import Testing
@testable import URLLoading

@Suite("From load to load (§1.6, §4.3, §5)")
struct CoreHopTests {
    @Test("redirections are asked about, followed, and counted, their bodies not (§5)")
    func followed() async throws {
        let s = ScriptedSession { load in
            guard load.request.url?.path == "/" else { return _ = load.answer(200, [:], "end") }
            load.answer(302, ["Location": "/next", "Content-Length": "4"], "body")
        }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        try await s.delegate?.completion()
        #expect(
            s.delegate?.messages.value
                == ["created", "redirect 302", "response", "data", "metrics", "complete"])
        #expect(task.countOfBytesReceived == 3)
        #expect(task.originalRequest?.url?.path == "/")
        #expect(task.currentRequest?.url?.path == "/next")
        #expect(task.response?.url?.path == "/next")
    }

    @Test("a redirection's own transaction is among the metrics, however late it is told of (§11)")
    func measuredLate() async throws {
        let s = ScriptedSession { load in
            guard load.request.url?.path == "/" else { return _ = load.answer(200, [:], "end") }
            load.isMeasuredLate.change { $0 = true }
            load.answer(302, ["Location": "/next"])
        }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        try await s.delegate?.messages.wait(for: "the data") { $0.contains("data") }
        await s.session.delegateQueue.settled()
        let first = try await s.loaders.load()
        first.isMeasuredLate.change { $0 = false }
        first.measure()
        try await s.delegate?.completion()
        #expect(s.delegate?.metrics.value.map(\.transactionMetrics.count) == [2])
        #expect(s.delegate?.messages.value.last == "complete")
    }

    @Test(
        "the rest of a redirection's body keeps nobody from the end of the task (§5)",
        arguments: [true, false])
    func restNeverComes(isCancelled: Bool) async throws {
        let s = ScriptedSession { load in
            let isFirst = load.request.url?.path == "/"
            if isFirst {
                load.answer(302, ["Location": "/next"], "a rest that", isWhole: false)
            } else if !isCancelled {
                load.answer(200, [:], "end")
            }
        }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        let first = try await s.loaders.load(1)
        _ = try await s.loaders.load(2)
        if isCancelled { task.cancel() }
        try await s.delegate?.completion()
        try await first.isCancelled.wait(for: "its end") { $0 }
        #expect(s.delegate?.messages.value.last == "complete")
        if !isCancelled {
            #expect(s.delegate?.metrics.value.map(\.transactionMetrics.count) == [2])
        }
    }

    @Test(
        "a redirection whose body does not come is waited for a second, and its connection given up",
        arguments: ["9", "70000", nil])
    func restIsLate(length: String?) async throws {
        let timers = FiringTimers()
        let s = ScriptedSession(delegate: nil, timers: timers)
        let ended = Event<[(any Error)?]>([])
        let task = s.session.dataTask(with: try ScriptedSession.url()) { _, _, error in
            ended.change { $0.append(error) }
        }
        task.resume()
        var fields = ["Location": "/next"]
        fields["Content-Length"] = length
        let rest = try await s.loaders.load(1).answer(302, fields, "a rest", isWhole: false)
        // Of another length nobody waits for it, but it is to keep no connection for ever either.
        #expect(s.loaders.loads.value.count == (length == "9" ? 1 : 2))
        rest.push("b")
        #expect(!rest.isCancelled.value)
        timers.fire(after: .seconds(1))
        #expect(rest.isCancelled.value)
        try #require(s.loaders.loads.value.count == 2)
        timers.fire(after: .seconds(1))
        try await s.loaders.load(2).answer(200, [:], "end")
        try await ended.wait(for: "the end") { !$0.isEmpty }
        #expect(ended.value.count == 1 && ended.value[0] == nil)
        #expect(s.loaders.loads.value.count == 2)
    }

    @Test("and is let alone where it comes in time, or the task ends before (§5)", arguments: 0..<2)
    func restIsInTime(_ end: Int) async throws {
        let timers = FiringTimers()
        let s = ScriptedSession(delegate: nil, timers: timers)
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        let rest = try await s.loaders.load(1).answer(
            302, ["Location": "/next", "Content-Length": "2"], "a", isWhole: false)
        if end == 0 {
            rest.push("b")
            rest.end()
        } else {
            task.cancel()
        }
        timers.fire(after: .seconds(1))
        #expect(s.loaders.loads.value.count == (end == 0 ? 2 : 1))
        #expect(!rest.isCancelled.value || end == 1)
        task.cancel()
    }

    @Test("a redirection that is refused is the response, without an error (§5)")
    func refused() async throws {
        let s = ScriptedSession()
        s.delegate?.redirection.withLock { $0 = { _, answer in answer(nil) } }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        try await s.loaders.load().answer(302, ["Location": "/next"], "body")
        try await s.delegate?.completion()
        #expect(
            s.delegate?.messages.value
                == ["created", "redirect 302", "response", "data", "metrics", "complete"])
        #expect(s.delegate?.data.value == Data("body".utf8))
        #expect((task.response as? HTTPURLResponse)?.statusCode == 302)
        #expect(task.error == nil)
    }

    @Test("nothing ends a redirection that nobody answers, but the time for the whole (§5)")
    func unanswered() async throws {
        let timers = FiringTimers()
        let s = ScriptedSession(timers: timers)
        s.delegate?.redirection.withLock { $0 = { _, _ in } }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        try await s.loaders.load().answer(302, ["Location": "/next"])
        try await s.delegate?.messages.wait(for: "the question") { $0.count == 2 }
        #expect(task.state == .running)
        timers.fireAll()
        try await s.delegate?.completion()
        #expect((s.delegate?.errors.value[0] as? URLError)?.code == .timedOut)
        #expect(s.delegate?.messages.value.last == "complete")
    }

    @Test(
        "the time for the whole ends a task in any stage, each at its own, but a suspended one (§2)"
    )
    func resourceTimeout() async throws {
        let timers = FiringTimers()
        let s = ScriptedSession(timers: timers)
        let url = try ScriptedSession.url()
        let done = s.session.dataTask(with: url)
        done.resume()
        try await s.loaders.load().answer()
        try await s.delegate?.completion(1)
        let waiting = s.session.dataTask(with: url)
        let suspended = s.session.dataTask(with: url)
        waiting.resume()
        suspended.resume()
        suspended.suspend()
        timers.fireAll()
        timers.fireAll()
        timers.fireAll()
        try await s.delegate?.completion(2)
        // Its own time goes on when it does.
        #expect(suspended.state == .suspended)
        suspended.resume()
        timers.fireAll()
        try await s.delegate?.completion(3)
        #expect(done.error == nil)
        for task in [waiting, suspended] {
            #expect((task.error as? URLError)?.code == .timedOut)
        }
    }

    @Test("after twenty redirections comes an error, and no response (§5)")
    func tooMany() async throws {
        let s = ScriptedSession { load in
            let number = Int(load.request.url?.lastPathComponent ?? "") ?? 0
            load.answer(302, ["Location": "/\(number + 1)", "Content-Length": "0"])
        }
        let task = s.session.dataTask(with: try ScriptedSession.url("/0"))
        task.resume()
        try await s.delegate?.completion()
        let error = try #require(s.delegate?.errors.value[0] as? URLError)
        #expect(error.code == .httpTooManyRedirects)
        #expect(error.localizedDescription == "too many HTTP redirects")
        #expect(
            error.userInfo[NSURLErrorFailingURLErrorKey] as? URL == (try ScriptedSession.url("/20"))
        )
        #expect(s.delegate?.messages.value.filter { $0.hasPrefix("redirect") }.count == 20)
        #expect(task.response == nil)
    }

    @Test("content goes again after 307, and not after 303; a stream is asked for anew (§3.3, §5)")
    func content() async throws {
        let delegate = RecordingDelegate()
        let s = ScriptedSession(delegate: delegate)
        var request = URLRequest(url: try ScriptedSession.url())
        request.httpMethod = "POST"
        let task = s.session.uploadTask(withStreamedRequest: request)
        #expect(task.countOfBytesExpectedToSend == NSURLSessionTransferSizeUnknown)
        task.resume()
        #expect(try await s.loaders.load(1).order.body != nil)
        try await s.loaders.load(1).answer(307, ["Location": "/a", "Content-Length": "0"])
        #expect(try await s.loaders.load(2).order.body != nil)
        try await s.loaders.load(2).answer(303, ["Location": "/b", "Content-Length": "0"])
        let last = try await s.loaders.load(3)
        #expect(last.order.body == nil && last.request.httpMethod == "GET")
        last.answer()
        try await delegate.completion()
        #expect(
            delegate.messages.value.filter { $0 != "metrics" } == [
                "created", "stream", "redirect 307", "stream", "redirect 303", "response",
                "complete",
            ])
        for load in s.loaders.loads.value { load.order.body?.source.cancel() }
    }

    @Test("an upload of a GET asks for its stream, and ends with dataLengthExceedsMaximum (§3.3)")
    func getUpload() async throws {
        let delegate = RecordingDelegate()
        let session = URLSession(
            configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        session.uploadTask(withStreamedRequest: URLRequest(url: try ScriptedSession.url())).resume()
        try await delegate.completion()
        #expect((delegate.errors.value[0] as? URLError)?.code == .dataLengthExceedsMaximum)
        #expect(
            delegate.messages.value.filter { $0 != "metrics" } == ["created", "stream", "complete"])
    }

    @Test("progress of the content is told before the response, and gathers (§1.6)")
    func sent() async throws {
        let s = ScriptedSession()
        var request = URLRequest(url: try ScriptedSession.url())
        request.httpMethod = "PUT"
        let task = s.session.uploadTask(with: request, from: Data(repeating: 1, count: 100))
        #expect(task.countOfBytesExpectedToSend == 100)
        task.resume()
        let load = try await s.loaders.load()
        s.session.delegateQueue.isSuspended = true
        load.hears?.load(sent: 40)
        load.hears?.load(sent: 100)
        s.session.delegateQueue.isSuspended = false
        load.answer(200, [:], "one")
        try await s.delegate?.completion()
        #expect(
            s.delegate?.messages.value
                == ["created", "sent 100", "response", "data", "metrics", "complete"])
        #expect(task.countOfBytesSent == 100)
        load.order.body?.source.cancel()
    }

    @Test(
        "progress of the content is told, however soon the end comes, and after the head, too (§3.1)"
    )
    func sentLate() async throws {
        for fails in [false, true] {
            let s = ScriptedSession()
            let results = Event(0)
            var request = URLRequest(url: try ScriptedSession.url())
            request.httpMethod = "PUT"
            let task = s.session.uploadTask(
                with: request, from: Data(repeating: 1, count: 100)
            ) { _, _, _ in results.change { $0 += 1 } }
            s.session.delegateQueue.isSuspended = true
            task.resume()
            let load = try await s.loaders.load()
            load.hears?.load(sent: 40)
            if fails {
                load.fail(.networkConnectionLost)
            } else {
                let body = load.answer(200, [:], "one", isWhole: false)
                load.hears?.load(sent: 100)
                body.end()
            }
            s.session.delegateQueue.isSuspended = false
            try await results.wait(for: "the end") { $0 == 1 }
            await s.session.delegateQueue.settled()
            let told = s.delegate?.messages.value.filter { $0.hasPrefix("sent") }
            #expect(told == (fails ? [] : ["sent 100"]))
            load.order.body?.source.cancel()
        }
    }

    @Test("a data task becomes a download, which has the rest of its life (§4.3)")
    func becomesDownload() async throws {
        let delegate = DownloadingDelegate()
        let s = ScriptedSession(delegate: delegate)
        delegate.disposition.withLock { $0 = { $0(.becomeDownload) } }
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        let storing = RecordingStoring()
        try await s.loaders.load().answer(200, [:], "one", "two", storing: storing)
        try await delegate.completion()
        #expect(delegate.content.value == "onetwo")
        #expect(
            delegate.messages.value.filter { $0 != "written" }
                == ["created", "response", "became", "finished", "metrics", "complete"])
        #expect(task.state == .completed && task.error == nil)
        #expect(storing.decisions.value == ["nothing"])
        #expect(await s.session.allTasks.isEmpty)
    }

    @Test("what is to be stored is decided by the delegate, after the data (§4.3)")
    func willCache() async throws {
        let delegate = RecordingDelegate()
        let s = ScriptedSession(delegate: delegate)
        for _ in 0..<2 { s.session.dataTask(with: try ScriptedSession.url()).resume() }
        let (first, second) = (RecordingStoring(), RecordingStoring())
        try await s.loaders.load(1).answer(200, [:], "one", storing: first)
        try await delegate.completion(1)
        #expect(
            delegate.messages.value.suffix(5)
                == ["response", "data", "storing", "metrics", "complete"])
        delegate.isRefusingToStore.change { $0 = true }
        try await s.loaders.load(2).answer(200, [:], "two", storing: second)
        try await delegate.completion(2)
        #expect(first.decisions.value == ["response"] && second.decisions.value == ["nothing"])
    }

    @Test("nothing is stored of a task that is cancelled before that was decided")
    func cancelledStoring() async throws {
        let s = ScriptedSession()
        let storing = RecordingStoring()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        try await s.loaders.load().answer(200, [:], "one", isWhole: false, storing: storing)
        try await s.delegate?.messages.wait(for: "data") { $0.contains("data") }
        task.cancel()
        try await s.delegate?.completion()
        #expect(storing.decisions.value == ["nothing"])
    }

    @Test("progress counts both bodies, ends complete, and cancels its task (§3.1)")
    func progress() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        let progress = task.progress
        task.resume()
        try await s.loaders.load().answer(200, ["Content-Length": "3"], "one")
        try await s.delegate?.completion()
        #expect(progress.fractionCompleted == 1 && progress.completedUnitCount == 3)
        let other = s.session.dataTask(with: try ScriptedSession.url())
        other.resume()
        other.progress.cancel()
        try await s.delegate?.completion(2)
        #expect((other.error as? URLError)?.code == .cancelled)
    }
}

@Suite("The progress of a task (§3.1)")
struct TaskProgressTests {
    @Test(
        "cancels the task, though the program has a handler of its own there, which is called once",
        arguments: [false, true])
    func cancelling(byParent: Bool) async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        #expect(task.progress.isCancellable)
        let calls = Event(0)
        task.progress.cancellationHandler = { calls.change { $0 += 1 } }
        let all = Progress(totalUnitCount: 1)
        all.addChild(task.progress, withPendingUnitCount: 1)
        task.resume()
        if byParent { all.cancel() } else { task.progress.cancel() }
        try await calls.wait(for: "the program's handler") { $0 > 0 }
        try #require(task.state == .canceling || task.state == .completed)
        try await s.delegate?.completion()
        #expect((task.error as? URLError)?.code == .cancelled)
        #expect(task.progress.isCancelled)
        #expect(calls.value == 1)
    }

    @Test("that is made in one that is cancelled already cancels the task")
    func cancelledParent() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        let all = Progress(totalUnitCount: 1)
        all.cancel()
        let progress = Self.progress(of: task, in: all)
        try #require(progress.isCancelled)
        try await s.delegate?.completion()
        #expect((task.error as? URLError)?.code == .cancelled)
    }

    /// Apart, as a progress is current on a thread, and an async function may change its own.
    private static func progress(of task: URLSessionTask, in all: Progress) -> Progress {
        all.becomeCurrent(withPendingUnitCount: 1)
        defer { all.resignCurrent() }
        return task.progress
    }

    @Test("stays at what was the case last, in whatever order that is shown")
    func order() throws {
        let task = ScriptedSession().session.dataTask(with: try ScriptedSession.url())
        let progress = PausingProgress(of: task)
        progress.show(TaskProgress(number: 1, total: 10, completed: 4))
        progress.show(TaskProgress(number: 3, total: 10, completed: 10))
        progress.show(TaskProgress(number: 2, total: -1, completed: 5))
        #expect(progress.isFinished)
        #expect(progress.totalUnitCount == 10 && progress.completedUnitCount == 10)
    }
}

/// Timers that fire when a test says so.
final class FiringTimers: Timers {
    private struct Token: TimerToken {
        let work: Event<(@Sendable () -> Void)?>

        func cancel() { self.work.change { $0 = nil } }
    }

    private struct Work {
        let delay: Duration
        let event: Event<(@Sendable () -> Void)?>
    }

    private let works = Event<[Work]>([])

    func schedule(
        after delay: Duration, _ work: @escaping @Sendable () -> Void
    ) -> any TimerToken {
        let event = Event<(@Sendable () -> Void)?>(work)
        self.works.change { $0.append(Work(delay: delay, event: event)) }
        return Token(work: event)
    }

    func fireAll() { self.fire { _ in true } }

    /// Fires those that were set to just that time.
    func fire(after delay: Duration) { self.fire { $0 == delay } }

    private func fire(_ isDue: (Duration) -> Bool) {
        let due = self.works.value.filter { isDue($0.delay) }
        self.works.change { works in works.removeAll { isDue($0.delay) } }
        for work in due { work.event.value?() }
    }
}

/// Writes down what is decided about a response that could be stored.
final class RecordingStoring: PendingStoring {
    let isPossible = true
    let decisions = Event<[String]>([])

    func proposedResponse() -> CachedURLResponse {
        let url = URL(fileURLWithPath: "/proposed")
        let response = URLResponse(
            url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        return CachedURLResponse(response: response, data: Data(), storagePolicy: .allowed)
    }

    func decide(_ response: CachedURLResponse?, then done: @escaping @Sendable () -> Void) {
        self.decisions.change { $0.append(response == nil ? "nothing" : "response") }
        done()
    }
}

private final class DownloadingDelegate: RecordingDelegate, URLSessionDownloadDelegate,
    @unchecked Sendable
{
    let content = Event("")

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        self.note("written", session)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        self.note("finished", session)
        let text = (try? String(contentsOf: location, encoding: .utf8)) ?? "no file"
        self.content.change { $0 = text }
    }
}
