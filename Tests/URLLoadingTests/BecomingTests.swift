import Foundation
import LarderHTTP
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("A task that goes on as one of another kind (§4.3)")
struct BecomingTests {
    private static func post() throws -> URLRequest {
        var request = URLRequest(url: try ScriptedSession.url())
        request.httpMethod = "POST"
        return request
    }

    private typealias Asked = (
        delegate: HoldingDelegate, session: ScriptedSession, task: URLSessionDataTask,
        answer: @Sendable (URLSession.ResponseDisposition) -> Void
    )

    /// A data task whose delegate is asked what is to become of its response.
    private static func asked() async throws -> Asked {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        try await s.loaders.load().answer(200, [:], "one", isWhole: false)
        return (delegate, s, task, try await delegate.questions().dispositions[0])
    }

    @Test("an upload has nothing to go on with then, and says so to whoever asks")
    func resumeData() async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let task = s.session.uploadTask(with: try Self.post(), from: Data("content".utf8))
        task.resume()
        try await s.loaders.load().answer(200, [:], "one", isWhole: false)
        try await delegate.questions().dispositions[0](.becomeDownload)
        try await delegate.messages.wait(for: "the download") { $0.contains("became") }
        let told = Event<[Data?]>([])
        task.cancel { data in told.change { $0.append(data) } }
        try await told.wait(for: "the answer") { !$0.isEmpty }
        #expect(told.value == [nil])
        #expect(await task.cancelByProducingResumeData() == nil)
        s.session.invalidateAndCancel()
        try await delegate.completion()
    }

    @Test("an upload says so once, whatever comes first (400 times)")
    func resumeDataMeanwhile() async throws {
        for _ in 0..<400 {
            let delegate = HoldingDelegate()
            let s = ScriptedSession(delegate: delegate)
            let task = s.session.uploadTask(with: try Self.post(), from: Data("content".utf8))
            task.resume()
            try await s.loaders.load().answer(200, [:], "one", isWhole: false)
            let answer = try await delegate.questions().dispositions[0]
            let told = Event<[Data?]>([])
            await Race.atOnce(
                { answer(.becomeDownload) },
                { task.cancel { data in told.change { $0 += [data] } } })
            try await told.wait(for: "the answer") { !$0.isEmpty }
            s.session.invalidateAndCancel()
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
            #expect(told.value == [nil])
        }
    }

    @Test("what an upload still sends counts, and stands still, with the download that it became")
    func contentStandsStill() async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let content = Data(repeating: 1, count: 300_000)
        s.session.uploadTask(with: try Self.post(), from: content).resume()
        let load = try await s.loaders.load()
        let source = try #require(load.order.body).source
        source.attach {}
        #expect(source.next().isPiece)
        let body = load.answer(200, [:], "one", isWhole: false)
        try await delegate.questions().dispositions[0](.becomeDownload)
        try await delegate.messages.wait(for: "the download") { $0.contains("became") }
        let download = try #require(await s.session.allTasks.first as? URLSessionDownloadTask)
        load.hears?.load(sent: 200_000)
        #expect(download.countOfBytesSent == 200_000)
        download.suspend()
        #expect(source.next().isPending)
        download.resume()
        #expect(source.next().isPiece)
        body.end()
        try await delegate.completion()
        s.session.invalidateAndCancel()
    }

    @Test("the stream that an upload sends is closed at the download's end")
    func contentIsClosed() async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let stream = ScriptedStream([10, 10, 10])
        let task = s.session.uploadTask(withStreamedRequest: try Self.post())
        task.resume()
        try await delegate.questions().streams[0](stream)
        let load = try await s.loaders.load()
        let source = try #require(load.order.body).source
        source.attach {}
        #expect(source.next().isPending)
        try await stream.reads.wait(for: "the first piece") { $0 == 1 }
        load.answer(200, [:], "one")
        try await delegate.questions(2).dispositions[0](.becomeDownload)
        try await delegate.completion()
        try await stream.isClosed.wait(for: "the end of the stream") { $0 }
        withExtendedLifetime((task, load, source)) {}
        s.session.invalidateAndCancel()
    }

    @Test("its progress is the same object, and goes to the end")
    func progress() async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let task = s.session.dataTask(with: try ScriptedSession.url())
        let progress = task.progress
        task.resume()
        let body = try await s.loaders.load().answer(
            200, ["Content-Length": "6"], "one", isWhole: false)
        try await delegate.questions().dispositions[0](.becomeDownload)
        try await delegate.messages.wait(for: "the download") { $0.contains("became") }
        #expect(task.progress === progress && !progress.isFinished)
        body.push("two")
        body.end()
        try await delegate.completion()
        #expect(progress.isFinished && progress.completedUnitCount == 6)
        s.session.invalidateAndCancel()
    }

    /// Does something when it gets a child.
    private final class AdoptingProgress: Progress, @unchecked Sendable {
        private let whenAdopting: @Sendable () -> Void

        init(_ whenAdopting: @escaping @Sendable () -> Void) {
            self.whenAdopting = whenAdopting
            super.init(parent: nil, userInfo: nil)
        }

        override func addChild(_ child: Progress, withPendingUnitCount unitCount: Int64) {
            super.addChild(child, withPendingUnitCount: unitCount)
            self.whenAdopting()
        }

        func adopt(_ child: () -> Progress) -> Progress {
            self.totalUnitCount = 1
            self.becomeCurrent(withPendingUnitCount: 1)
            defer { self.resignCurrent() }
            return child()
        }
    }

    @Test("its progress is that of what it became, though it is asked for just then")
    func progressMeanwhile() async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        let body = try await s.loaders.load().answer(200, [:], "one", isWhole: false)
        let answer = try await delegate.questions().dispositions[0]
        let parent = AdoptingProgress { answer(.becomeDownload) }
        let progress = parent.adopt { task.progress }
        try await delegate.messages.wait(for: "the download") { $0.contains("became") }
        let download = try #require(await s.session.allTasks.first)
        #expect(download.progress === progress && task.progress === progress)
        progress.pause()
        #expect(download.state == .suspended)
        progress.resume()
        body.end()
        try await delegate.completion()
        #expect(progress.isFinished && parent.isFinished)
        s.session.invalidateAndCancel()
    }

    @Test("its progress pauses and cancels what it became")
    func control() async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let task = s.session.dataTask(with: try ScriptedSession.url())
        let progress = task.progress
        task.resume()
        try await s.loaders.load().answer(200, [:], "one", isWhole: false)
        try await delegate.questions().dispositions[0](.becomeDownload)
        try await delegate.messages.wait(for: "the download") { $0.contains("became") }
        let download = try #require(await s.session.allTasks.first)
        progress.pause()
        #expect(download.state == .suspended)
        progress.resume()
        #expect(download.state == .running)
        progress.cancel()
        try await delegate.completion()
        #expect((download.error as? URLError)?.code == .cancelled)
        s.session.invalidateAndCancel()
    }

    /// What a program can do before it is told of the download, when it has only the data task.
    @Test("it is cancelled, suspended and resumed by what it was, too")
    func controlBeforeIntroduction() async throws {
        let (delegate, s, task, answer) = try await Self.asked()
        task.suspend()
        answer(.becomeDownload)
        let download = try #require(await s.session.allTasks.first as? URLSessionDownloadTask)
        #expect(download.state == .suspended)
        task.resume()
        #expect(download.state == .running)
        task.suspend()
        #expect(download.state == .suspended)
        task.cancel()
        try await delegate.completion()
        #expect((download.error as? URLError)?.code == .cancelled)
        #expect(delegate.messages.value.suffix(3) == ["became", "metrics", "complete"])
        s.session.invalidateAndCancel()
    }

    @Test("a cancellation at the same moment ends what it becomes (400 times)")
    func cancellationMeanwhile() async throws {
        for _ in 0..<400 {
            let (delegate, s, task, answer) = try await Self.asked()
            await Race.atOnce({ answer(.becomeDownload) }, { task.cancel() })
            try await delegate.completion()
            #expect((delegate.errors.value[0] as? URLError)?.code == .cancelled)
            s.session.finishTasksAndInvalidate()
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
        }
    }

    @Test("a time that is up while it becomes another ends that one")
    func deadline() async throws {
        let (delegate, s, task, answer) = try await Self.asked()
        // As the timer has it, which then finds a task that is none any more.
        s.session.deadlines.end(task.taskIdentifier)
        answer(.becomeDownload)
        try await delegate.completion()
        #expect((delegate.errors.value[0] as? URLError)?.code == .timedOut)
        #expect(delegate.messages.value.suffix(3) == ["became", "metrics", "complete"])
        s.session.invalidateAndCancel()
    }
}
