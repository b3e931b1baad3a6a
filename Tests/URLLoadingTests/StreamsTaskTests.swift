import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Hears of stream tasks.
final class StreamRecorder: RecordingDelegate, URLSessionStreamDelegate, @unchecked Sendable {
    struct Streams: @unchecked Sendable {
        let input: InputStream
        let output: OutputStream
    }

    let streams = Event<Streams?>(nil)

    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        self.note("read closed", session)
    }

    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        self.note("write closed", session)
    }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask,
        didBecome inputStream: InputStream, outputStream: OutputStream
    ) {
        self.note("streams", session)
        let streams = Streams(input: inputStream, output: outputStream)
        self.streams.change { $0 = streams }
    }
}

@Suite("Stream tasks (§3.6)")
struct StreamsTaskTests {
    private static func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    /// An origin that gives each line back, and ends when the client does.
    private static func echo() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            while true {
                let line = try await connection.wire.read(through: "\n")
                try await connection.send(line)
            }
        }
    }

    private static func text(_ result: (Data?, Bool)) -> String {
        String(decoding: result.0 ?? Data(), as: UTF8.self) + (result.1 ? "|" : "")
    }

    @Test(
        "writes and reads, also what was asked before it was resumed; closing both sides completes")
    func conversation() async throws {
        let origin = try await Self.echo()
        let delegate = StreamRecorder()
        let session = Self.session(delegate)
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        let first = Event<String?>(nil)
        task.readData(ofMinLength: 6, maxLength: 100, timeout: 0) { data, atEnd, error in
            #expect(error == nil)
            first.change { $0 = Self.text((data, atEnd)) }
        }
        #expect(task.state == .suspended && task.originalRequest == nil)
        task.resume()
        try await task.write(Data("hello\n".utf8), timeout: 60)
        try await first.wait(for: "the echo") { $0 == "hello\n" }
        try await task.write(Data("again\n".utf8), timeout: 60)
        #expect(
            Self.text(try await task.readData(ofMinLength: 3, maxLength: 3, timeout: 60)) == "aga")
        #expect(
            Self.text(try await task.readData(ofMinLength: 1, maxLength: 9, timeout: 60)) == "in\n")
        task.closeWrite()
        #expect(
            Self.text(try await task.readData(ofMinLength: 1, maxLength: 9, timeout: 60)) == "|")
        try await delegate.completion()
        #expect(delegate.errors.value.first.flatMap { $0 } == nil)
        #expect(task.state == .completed)
        #expect(
            Set(delegate.messages.value) == [
                "created", "write closed", "read closed", "metrics", "complete",
            ])
        #expect(delegate.messages.value.last == "complete")
        #expect(delegate.wrongQueue.value == 0)
        #expect(task.countOfBytesSent == 12 && task.countOfBytesReceived == 12)
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test("a megabyte goes both ways, in pieces as they come")
    func volume() async throws {
        let size = 1 << 20
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.wire.send(try await connection.wire.read(size))
        }
        let session = Self.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.resume()
        let sent = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try await task.write(sent, timeout: 60)
        var got = Data()
        while true {
            let (data, atEnd) = try await task.readData(
                ofMinLength: 1, maxLength: 100_000, timeout: 60)
            got.append(data ?? Data())
            if atEnd { break }
        }
        #expect(got == sent)
        task.cancel()
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("a read whose time is up fails alone, and the task goes on")
    func timeout() async throws {
        let origin = try await Self.echo()
        let session = Self.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.resume()
        await #expect(throws: URLError(.timedOut)) {
            try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0.05)
        }
        try await task.write(Data("a\n".utf8), timeout: 60)
        #expect(
            Self.text(try await task.readData(ofMinLength: 2, maxLength: 2, timeout: 60)) == "a\n")
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test(
        "cancelling fails all handlers, once each and before the completion",
        arguments: [false, true])
    func cancelled(isResumed: Bool) async throws {
        let origin = try await Self.echo()
        let delegate = StreamRecorder()
        let session = Self.session(delegate)
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        if isResumed { task.resume() }
        for number in 0..<3 {
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { data, _, error in
                #expect(data == nil && (error as? URLError)?.code == .cancelled)
                delegate.note("failed \(number)", session)
            }
        }
        task.cancel()
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .cancelled)
        #expect(
            delegate.messages.value
                == ["created", "metrics", "failed 0", "failed 1", "failed 2", "complete"])
        task.write(Data("x".utf8), timeout: 0) { error in
            #expect((error as? URLError)?.code == .cancelled)
            delegate.note("late", session)
        }
        try await delegate.messages.wait(for: "the late one") { $0.last == "late" }
        #expect(delegate.wrongQueue.value == 0)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test(
        "what cannot be connected to fails, with whatever was asked",
        arguments: [
            ("127.0.0.1", 0, URLError.Code.badURL), ("127.0.0.1", 70_000, .badURL),
            ("", 80, .badURL), ("a b", 80, .badURL), ("127.0.0.1", 1, .cannotConnectToHost),
            ("nowhere.invalid", 80, .cannotFindHost),
        ])
    func unreachable(_ host: String, _ port: Int, _ code: URLError.Code) async throws {
        let session = Self.session()
        let task = session.streamTask(withHostName: host, port: port)
        task.resume()
        do {
            try await task.write(Data("x".utf8), timeout: 0)
            Issue.record("was written")
        } catch {
            #expect((error as? URLError)?.code == code)
        }
        session.finishTasksAndInvalidate()
    }

    @Test("a connection that is cut fails what waits, and the task")
    func cut() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.wire.read(through: "\n")
            try await connection.wire.reset()
        }
        let delegate = StreamRecorder()
        let session = Self.session(delegate)
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.resume()
        try await task.write(Data("x\n".utf8), timeout: 0)
        await #expect(throws: URLError.self) {
            try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
        }
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .networkConnectionLost)
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test("captured streams go on with the connection, and the task is done")
    func captured() async throws {
        let origin = try await Self.echo()
        let delegate = StreamRecorder()
        let session = Self.session(delegate)
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.write(Data("one\n".utf8), timeout: 0) { _ in }
        task.captureStreams()
        task.resume()
        try await delegate.completion()
        #expect(delegate.errors.value.first.flatMap { $0 } == nil)
        #expect(delegate.messages.value == ["created", "streams", "metrics", "complete"])
        let streams = try #require(delegate.streams.value)
        let text = await withCheckedContinuation { (done: CheckedContinuation<String, Never>) in
            // Reading waits: not on a thread of Swift's.
            Thread.detachNewThread { done.resume(returning: Self.talk(streams)) }
        }
        #expect(text == "one\ntwo\n")
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    private static func talk(_ streams: StreamRecorder.Streams) -> String {
        streams.input.open()
        streams.output.open()
        let out = Array("two\n".utf8)
        guard unsafe streams.output.write(out, maxLength: out.count) == out.count else { return "" }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16)
        while text.count < 8 {
            let count = unsafe streams.input.read(&piece, maxLength: piece.count)
            guard count > 0 else { break }
            text += piece[..<count]
        }
        streams.output.close()
        streams.input.close()
        return String(decoding: text, as: UTF8.self)
    }

    @Test("suspend and resume from several threads leave it running when they are even (500 times)")
    func suspensions() async throws {
        let origin = try await Self.echo()
        let session = Self.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.resume()
        for _ in 0..<500 {
            await Race.suspendAndResume(task)
            #expect(task.state == .running)
            try await task.write(Data("a\n".utf8), timeout: 60)
            let echo = try await task.readData(ofMinLength: 2, maxLength: 2, timeout: 60)
            #expect(Self.text(echo) == "a\n")
        }
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("a task that completed while it began is let go of")
    func released() async throws {
        let origin = try await Self.echo()
        let session = Self.session()
        weak var task: URLSessionTask?
        let begun = StreamPurpose(
            StreamPlace(host: "127.0.0.1", port: origin.port), lane: session.dispatcher.lane())
        let became = StreamPurpose(ofResponseFor: session.dispatcher.lane())
        do {
            let made = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
            task = made
            for purpose in [begun, became] {
                purpose.complete(made, of: nil, with: URLError(.cancelled))
            }
            begun.prepare(for: made) {}
            let response = URLResponse(
                url: try URL.of(origin.url("/")), mimeType: nil, expectedContentLength: 0,
                textEncodingName: nil)
            _ = try became.consumer(
                of: LoadAnswer(response: response, body: EmptyBody()), for: made)
        }
        #expect(task == nil)
        withExtendedLifetime((begun, became)) {}
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("cancelled at any moment, each handler is called once and the task completes once")
    func races() async throws {
        let origin = try await Self.echo()
        for round in 0..<150 {
            let delegate = StreamRecorder()
            let session = Self.session(delegate)
            let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
            let calls = Event(0)
            // Where a handler cancels, behind all that is asked: what is asked of a task that has
            // completed is told after its completion.
            let beginsLast = round % 3 == 0
            if !beginsLast { task.resume() }
            task.write(Data("a\n".utf8), timeout: 0) { _ in calls.change { $0 += 1 } }
            task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { _, _, _ in
                calls.change { $0 += 1 }
                if round % 3 == 0 { task.cancel() }
            }
            task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { _, _, _ in
                calls.change { $0 += 1 }
            }
            if beginsLast { task.resume() }
            if round % 3 == 1 { try await task.write(Data("b\n".utf8), timeout: 0) }
            if round % 3 != 0 { task.cancel() }
            try await delegate.completion()
            #expect(calls.value == 3 && delegate.errors.value.count == 1)
            session.invalidateAndCancel()
        }
        await origin.stop()
    }
}
