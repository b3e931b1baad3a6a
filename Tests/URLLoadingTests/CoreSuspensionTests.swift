import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProcess
@testable import LarderTransfer
@testable import URLLoading

@Suite("What a suspended task sends (§3.1)")
struct CoreSuspensionTests {
    private func request(_ method: String) throws -> URLRequest {
        var request = URLRequest(url: try ScriptedSession.url())
        request.httpMethod = method
        return request
    }

    @Test("is nothing, until it is resumed and whoever sends is told of it")
    func standsStill() async throws {
        let s = ScriptedSession()
        let task = s.session.uploadTask(
            with: try self.request("PUT"), from: Data(repeating: 1, count: 100_000))
        task.resume()
        let load = try await s.loaders.load()
        let source = try #require(load.order.body).source
        let wakes = Event(0)
        source.attach { wakes.change { $0 += 1 } }
        #expect(source.next().isPiece)
        task.suspend()
        task.suspend()
        #expect(source.next().isPending)
        task.resume()
        #expect(source.next().isPending && wakes.value == 0)
        task.resume()
        try await wakes.wait(for: "the wake") { $0 == 1 }
        #expect(source.next().isPiece)
        load.answer()
        try await s.delegate?.completion()
    }

    /// The time for a load is up while its task stands still, which is then resumed to its end.
    private static func timeIsUp(
        _ load: ScriptedLoad, of task: URLSessionTask, _ s: ScriptedSession, beginsAnew: Bool
    ) async throws {
        task.suspend()
        load.fail(.timedOut)
        task.resume()
        if beginsAnew { try await s.loaders.load(2).answer() }
        try await s.delegate?.completion()
        #expect(s.loaders.loads.value.count == (beginsAnew ? 2 : 1))
    }

    @Test(
        "goes once where it may not be done twice, however long nothing is answered (RFC 9110 §9.2.2)",
        arguments: [
            ("POST", true, false), ("PATCH", true, false), ("POST", false, true),
            ("PUT", true, true),
        ])
    func overdue(_ method: String, _ isOut: Bool, _ beginsAnew: Bool) async throws {
        let s = ScriptedSession()
        let task = s.session.uploadTask(
            with: try self.request(method), from: Data(repeating: 1, count: 100_000))
        task.resume()
        let load = try await s.loaders.load()
        let source = try #require(load.order.body).source
        // Both pieces, and not the end: whoever knows the length does not ask for that.
        for _ in 0..<(isOut ? 2 : 1) { #expect(source.next().isPiece) }
        try await Self.timeIsUp(load, of: task, s, beginsAnew: beginsAnew)
        #expect((task.error as? URLError)?.code == (beginsAnew ? nil : .timedOut))
    }

    @Test("goes once, too, where it has no content and may not be done twice")
    func overdueWithoutContent() async throws {
        for (method, beginsAnew) in [("POST", false), ("DELETE", true)] {
            let s = ScriptedSession()
            let task = s.session.dataTask(with: try self.request(method))
            task.resume()
            let load = try await s.loaders.load()
            try await Self.timeIsUp(load, of: task, s, beginsAnew: beginsAnew)
        }
    }

    @Test("is all out at its end, where nobody knows how long it is, and not where that broke off")
    func unknownLength() {
        for (last, isSpent) in [
            (BodyStep.end(trailers: Fields()), true), (.failed(.cancelled), false),
        ] {
            let content = ScriptedContent([.piece(ByteBuffer(string: "x")), last])
            let source = SuspendableSource(UploadSource(source: content, length: nil))
            #expect(source.next().isPiece && !source.isSpent)
            _ = source.next()
            #expect(source.isSpent == isSpent)
            #expect(source.failure?.code == .fileDoesNotExist)
        }
    }

    @Test("is given up with the task, also while that stands still")
    func givenUp() {
        let content = ScriptedContent([])
        let source = SuspendableSource(UploadSource(source: content, length: 9))
        source.isPaused = true
        source.cancel()
        #expect(content.isCancelled.value && !source.isSpent)
    }

    @Test(
        "is no request, either, where it waits for a connection: others get that, until it goes on",
        arguments: [false, true])
    func passedOver(waitsAlready: Bool) async throws {
        let goOn = Event(false)
        let origin = try await ScriptedOrigin.answering { request in
            if request.target == "/a" { try await goOn.wait(for: "leave to answer") { $0 } }
            return response(body: "done")
        }
        let other = try await ScriptedOrigin.answering { _ in response(body: "done") }
        let delegate = RecordingDelegate()
        let session = URLSession.alone(delegate) {
            $0.httpMaximumConnectionsPerHost = 1
            $0.urlCache = nil
        }
        let tasks = try ["/a", "/b", "/c"].map { path in
            session.dataTask(with: try URL.of(origin.url(path)))
        }
        // All that was asked of the transfers before has been done when one to elsewhere is through.
        let pass = { (number: Int) in
            session.dataTask(with: try URL.of(other.url("/"))).resume()
            try await delegate.completion(number)
        }
        tasks[0].resume()
        try await origin.requests.wait(for: "the first") { $0.count == 1 }
        tasks[1].resume()
        if waitsAlready { try await pass(1) }
        tasks[1].suspend()
        tasks[2].resume()
        if !waitsAlready { try await pass(1) }
        goOn.change { $0 = true }
        try await delegate.completion(3)
        #expect(origin.requests.value.map(\.target) == ["/a", "/c"])
        tasks[1].resume()
        try await delegate.completion(4)
        #expect(origin.requests.value.map(\.target) == ["/a", "/c", "/b"])
        #expect(tasks.allSatisfy { $0.error == nil })
        session.invalidateAndCancel()
        for stopped in [origin, other] { await stopped.stop() }
    }

    @Test("goes on over HTTP, and comes out whole")
    func whole() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "thanks") }
        let delegate = SuspendingDelegate()
        let session = URLSession.alone(delegate)
        let bytes = pattern(8 << 20)
        var request = URLRequest(url: try .of(origin.url("/up")))
        request.httpMethod = "POST"
        let task = session.uploadTask(with: request, from: Data(bytes))
        task.resume()
        try await delegate.isSuspended.wait(for: "some of it to be sent") { $0 }
        task.resume()
        try await delegate.completion()
        #expect(task.error == nil)
        #expect(origin.requests.value.first?.body == bytes)
        session.invalidateAndCancel()
        await origin.stop()
    }
}

/// Content of which each step is known, and why it fails.
private final class ScriptedContent: BodySource, UploadFailing {
    let isCancelled = Event(false)
    private let steps: Event<[BodyStep]>
    let failure: URLError? = URLError(.fileDoesNotExist)

    init(_ steps: [BodyStep]) {
        self.steps = Event(steps)
    }

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        let next = self.steps.value.first ?? .pending
        self.steps.change { $0 = Array($0.dropFirst()) }
        return next
    }

    func cancel() { self.isCancelled.change { $0 = true } }
}

/// Suspends its task when something has been sent; once.
private final class SuspendingDelegate: RecordingDelegate, @unchecked Sendable {
    let isSuspended = Event(false)

    override func note(_ message: String, _ session: URLSession) {
        super.note(message, session)
        guard message.hasPrefix("sent"), !self.isSuspended.value else { return }
        session.guarded.withLock { $0.tasks.entries.first?.value }?.suspend()
        self.isSuspended.change { $0 = true }
    }
}

extension BodyStep {
    var isPiece: Bool { if case .piece = self { true } else { false } }
    var isPending: Bool { if case .pending = self { true } else { false } }
}
