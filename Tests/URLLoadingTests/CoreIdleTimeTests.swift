import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The time for which a task waits for data (§2, §3.1)", .timeLimit(.minutes(10)))
struct CoreIdleTimeTests {
    /// One that reads requests, and says nothing.
    private static func silentOrigin() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            while try await connection.request() != nil {}
        }
    }

    /// Returns when what has waited for data for five seconds would have waited too long.
    ///
    /// Tasks that do so are the clock.
    private static func letTimePass() async throws {
        let origin = try await Self.silentOrigin()
        let session = URLSession.alone { $0.timeoutIntervalForRequest = 5 }
        for _ in 0..<2 {
            let other = try await session.loaded(origin.url("/"))
            #expect(other.code == .timedOut)
        }
        session.invalidateAndCancel()
        await origin.stop()
    }

    /// A task that waits five seconds for data, and is suspended when it is answered.
    private static func suspending(
        at origin: ScriptedOrigin
    ) throws -> (RecordingDelegate, URLSession, URLSessionDataTask) {
        let delegate = RecordingDelegate()
        let session = URLSession.alone(delegate) { $0.timeoutIntervalForRequest = 5 }
        let task = session.dataTask(with: try URL.of(origin.url("/")))
        delegate.disposition.withLock {
            $0 = { answer in
                task.suspend()
                answer(.allow)
            }
        }
        task.resume()
        return (delegate, session, task)
    }

    @Test(
        "stands still while it is suspended, and begins anew when it goes on",
        arguments: [true, false])
    func suspended(isAnswered: Bool) async throws {
        let goOn = Event(false)
        let isWritten = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.requestHead()
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
            try await goOn.wait(for: "leave to go on") { $0 }
            try await connection.send("b")
            isWritten.change { $0 = true }
            _ = try await connection.request()
        }
        var (delegate, session, task) = try Self.suspending(at: origin)
        // A busy machine may take longer than that to answer: asked again, then.
        for _ in 0..<20 {
            try await delegate.messages.wait(for: "the response, or the end") {
                $0.contains("response") || $0.contains("complete")
            }
            if delegate.messages.value.contains("response") { break }
            session.invalidateAndCancel()
            (delegate, session, task) = try Self.suspending(at: origin)
        }
        try #require(delegate.messages.value.contains("response"))
        try await Self.letTimePass()
        if isAnswered {
            goOn.change { $0 = true }
            try await isWritten.wait(for: "the rest") { $0 }
        }
        #expect(task.state == .suspended)
        task.resume()
        try await delegate.completion()
        #expect((task.error as? URLError)?.code == (isAnswered ? nil : .timedOut))
        #expect(delegate.data.value == Data((isAnswered ? "ab" : "a").utf8))
        goOn.change { $0 = true }
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("is the request's own where that has one, else its session's")
    func ownTime() async throws {
        let origin = try await Self.silentOrigin()
        let session = URLSession.alone { $0.timeoutIntervalForRequest = 3_600 }
        var request = URLRequest(url: try .of(origin.url("/")))
        request.timeoutInterval = 0.2
        #expect(await session.loaded(request).code == .timedOut)
        session.invalidateAndCancel()
        await origin.stop()
    }
}
