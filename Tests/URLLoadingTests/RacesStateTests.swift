import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Cancel in each state (§3.1, §16)")
struct RacesStateTests {
    /// Where a task stands when it is cancelled.
    enum Standing: CaseIterable, Sendable {
        case created, awaitingStream, loading, redirected, challenged, answered, receiving, storing
        case suspended, suspendedAnswered
    }

    /// Brings a task to where it is to stand.
    private func bring(
        _ s: ScriptedSession, _ delegate: HoldingDelegate, to standing: Standing
    ) async throws -> URLSessionTask {
        var request = URLRequest(url: try ScriptedSession.url())
        if standing == .awaitingStream { request.httpMethod = "PUT" }
        let task: URLSessionTask =
            standing == .awaitingStream
            ? s.session.uploadTask(withStreamedRequest: request) : s.session.dataTask(with: request)
        guard standing != .created else { return task }
        task.resume()
        if standing == .awaitingStream {
            _ = try await delegate.questions()
            return task
        }
        let load = try await s.loaders.load()
        switch standing {
        case .created, .awaitingStream, .loading: break
        case .suspended: task.suspend()
        case .suspendedAnswered:
            task.suspend()
            load.answer(200, [:], "one")
        case .redirected: load.answer(302, ["Location": "/next", "Content-Length": "0"])
        case .challenged: load.answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        case .answered: load.answer(200, [:], "one")
        case .receiving: load.answer(200, [:], "one", isWhole: false)
        case .storing: load.answer(200, [:], "one", storing: RecordingStoring())
        }
        switch standing {
        case .created, .awaitingStream, .loading, .suspended, .suspendedAnswered: break
        case .redirected, .challenged, .answered: _ = try await delegate.questions()
        case .receiving:
            try await delegate.questions().dispositions[0](.allow)
            try await delegate.messages.wait(for: "data") { $0.contains("data") }
        case .storing:
            try await delegate.questions().dispositions[0](.allow)
            _ = try await delegate.questions(2)
        }
        return task
    }

    @Test("completes once, with cancelled, as the last message", arguments: Standing.allCases)
    func cancel(standing: Standing) async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let task = try await self.bring(s, delegate, to: standing)
        let before = delegate.messages.value
        task.cancel()
        task.cancel()
        try await delegate.completion()
        #expect(task.state == .completed)
        #expect((task.error as? URLError)?.code == .cancelled)
        // Nothing else is heard of it, whatever is answered, or done to it, now.
        delegate.asked.value.redirections.forEach { $0(nil) }
        delegate.asked.value.challenges.forEach { $0(.performDefaultHandling, nil) }
        delegate.asked.value.streams.forEach { $0(InputStream(data: Data("x".utf8))) }
        delegate.asked.value.dispositions.forEach { $0(.allow) }
        delegate.asked.value.storings.forEach { $0(nil) }
        task.resume()
        task.suspend()
        task.resume()
        task.cancel()
        s.loaders.loads.value.forEach { $0.answer(200, [:], "late") }
        s.session.finishTasksAndInvalidate()
        try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
        #expect(delegate.messages.value == before + ["metrics", "complete", "invalid"])
        #expect(task.state == .completed)
        #expect(s.loaders.loads.value.count <= 1)
        #expect(s.loaders.loads.value.allSatisfy { $0.isCancelled.value })
    }

    @Test("a failure in each state completes once, too", arguments: Standing.allCases)
    func fails(standing: Standing) async throws {
        let delegate = HoldingDelegate()
        let s = ScriptedSession(delegate: delegate)
        let task = try await self.bring(s, delegate, to: standing)
        task.resourceTimeExpired()
        task.cancel()
        try await delegate.completion()
        #expect((task.error as? URLError)?.code == .timedOut)
        s.session.finishTasksAndInvalidate()
        try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
        #expect(delegate.messages.value.suffix(3) == ["metrics", "complete", "invalid"])
        #expect(delegate.messages.value.filter { $0 == "complete" }.count == 1)
    }
}
