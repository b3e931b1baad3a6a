import Dispatch
import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("WebSocket tasks that open, stand still and break (§3.1, §3.7)")
struct WebSocketStateTests {
    private static func echo() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            try await connection.accept(try await connection.requestHead())
            while true {
                let frame = try await connection.frame()
                try await connection.send(frame.first, frame.payload)
            }
        }
    }

    private static func url(_ origin: ScriptedOrigin) throws -> URL {
        try URL.of("ws://\(origin.authority)/")
    }

    private static func text(_ message: URLSessionWebSocketTask.Message) -> String {
        switch message {
        case .string(let text): text
        case .data(let data): "\(data.count) bytes"
        }
    }

    @Test("ask for no subprotocol where the program names none (RFC 6455 §11.3.4)")
    func noProtocols() async throws {
        let origin = try await Self.echo()
        let session = URLSession.plain()
        let task = session.webSocketTask(with: try Self.url(origin), protocols: [])
        task.resume()
        try await task.send(.string("a"))
        #expect(Self.text(try await task.receive()) == "a")
        let request = try #require(origin.requests.value.first)
        #expect(request["Upgrade"] == "websocket" && request["Sec-WebSocket-Protocol"] == nil)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("give messages that nobody had asked for in their order, many as they are")
    func waiting() async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let purpose = WebSocketPurpose(lane: DelegateLane(queue: queue, sight: .byOperations))
        let count = 20_000
        for number in 0..<count { purpose.received(.string(String(number))) }
        #expect(!purpose.hasRoom)
        let heard = Event<[String]>([])
        for _ in 0..<count {
            purpose.receive { result in
                guard case .success(let message) = result else { return }
                heard.change { $0.append(Self.text(message)) }
            }
        }
        try await heard.wait(for: "all messages") { $0.count == count }
        #expect(heard.value == (0..<count).map { String($0) })
        #expect(purpose.hasRoom)
    }

    @Test("count what messages contain, and nothing else (§3.1)")
    func counts() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.accept(try await connection.requestHead())
            _ = try await connection.frame()
            try await connection.send(0x89, [1, 2, 3])
            // One in two parts.
            try await connection.send(0x02, [UInt8](repeating: 0, count: 70_000))
            try await connection.send(0x80, [UInt8](repeating: 0, count: 30_000))
            while true {
                let frame = try await connection.frame()
                if frame.first == 0x8A { continue }
                try await connection.send(frame.first == 0x89 ? 0x8A : frame.first, frame.payload)
                if frame.first == 0x88 { return }
            }
        }
        let delegate = WebSocketRecorder()
        let session = URLSession.plain(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        let early = Event<Int64?>(nil)
        task.send(.string("\u{E4}")) { _ in early.change { $0 = task.countOfBytesSent } }
        #expect(task.countOfBytesSent == 0)
        task.resume()
        #expect(Self.text(try await task.receive()) == "100000 bytes")
        #expect(task.countOfBytesReceived == 100_000)
        try await early.wait(for: "the first message") { $0 != nil }
        #expect(early.value == 2)
        try await task.send(.data(Data(count: 200_000)))
        #expect(task.countOfBytesSent == 200_002)
        #expect(Self.text(try await task.receive()) == "200000 bytes")
        let pongs = Event(0)
        task.sendPing { _ in pongs.change { $0 += 1 } }
        try await pongs.wait(for: "the pong") { $0 == 1 }
        task.cancel(with: .normalClosure, reason: Data("bye".utf8))
        try await delegate.completion()
        #expect(task.countOfBytesSent == 200_002 && task.countOfBytesReceived == 300_000)
        session.invalidateAndCancel()
        await origin.stop()
    }

    // MARK: Opening

    /// Delivers at once, on the thread that has something to deliver.
    private final class ImmediateQueue: OperationQueue, @unchecked Sendable {
        override func addOperation(_ operation: Operation) { operation.start() }
    }

    private final class Refusing: RecordingDelegate, URLSessionWebSocketDelegate,
        @unchecked Sendable
    {
        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
            didOpenWithProtocol protocol: String?
        ) {
            webSocketTask.cancel(with: .policyViolation, reason: Data("no".utf8))
            webSocketTask.cancel(with: .goingAway, reason: nil)
        }
    }

    @Test("close with code and reason where the delegate does it as it hears that they are open")
    func closedAtOnce() async throws {
        let closed = Event<ClientFrame?>(nil)
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.accept(try await connection.requestHead())
            let frame = try await connection.frame()
            closed.change { $0 = frame }
            try await connection.send(0x88, frame.payload)
        }
        let delegate = Refusing()
        let configuration = URLSessionConfiguration.ephemeral
        let session = URLSession(
            configuration: configuration, delegate: delegate, delegateQueue: ImmediateQueue())
        let task = session.webSocketTask(with: try Self.url(origin))
        task.resume()
        try await closed.wait(for: "a frame") { $0 != nil }
        #expect(closed.value == ClientFrame(first: 0x88, payload: [0x03, 0xF0] + Array("no".utf8)))
        try await delegate.completion()
        #expect(delegate.errors.value.first.flatMap { $0 } == nil)
        #expect(task.closeCode == .policyViolation && task.closeReason == Data("no".utf8))
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("fail where the server does not answer the handshake in time", arguments: [true, false])
    func handshakeLimit(_ isRequests: Bool) async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.requestHead()
            // Until the other end goes away.
            _ = try await connection.wire.read(1)
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = isRequests ? 3600 : 0.2
        let delegate = WebSocketRecorder()
        let session = URLSession(
            configuration: configuration, delegate: delegate, delegateQueue: nil)
        var request = URLRequest(url: try Self.url(origin))
        if isRequests { request.timeoutInterval = 0.2 }
        let task = session.webSocketTask(with: request)
        task.resume()
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(error?.code == .timedOut)
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .timedOut)
        #expect(delegate.messages.value == ["created", "metrics", "complete"])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("wait for no handshake while they are suspended", arguments: [false, true])
    func suspendedHandshake(_ isSecure: Bool) async throws {
        let origin = try await ScriptedOrigin.start { connection in
            while true { _ = try await connection.wire.read(1) }
        }
        let delegate = WebSocketRecorder()
        let session = URLSession.alone(delegate) { $0.timeoutIntervalForRequest = 0.2 }
        let task = session.webSocketTask(
            with: try URL.of("\(isSecure ? "wss" : "ws")://\(origin.authority)/"))
        task.resume()
        task.suspend()
        // Others that wait for as long are the clock.
        for _ in 0..<3 {
            #expect(try await session.loaded(origin.url("/")).code == .timedOut)
        }
        #expect(task.state == .suspended)
        task.resume()
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .timedOut)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("send what waited for the opening before what is sent just then")
    func order() async throws {
        let opens = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            let request = try await connection.requestHead()
            try await opens.wait(for: "leave to open") { $0 }
            try await connection.accept(request)
            var numbers: [Int] = []
            while true {
                let frame = try await connection.frame()
                guard frame.first == 0x82 else { break }
                numbers.append(frame.payload.reduce(0) { $0 << 8 | Int($1) })
            }
            let isOrdered = numbers == Array(0..<numbers.count)
            try await connection.send(0x81, Array("\(isOrdered)".utf8))
            _ = try await connection.frame()
        }
        let delegate = WebSocketRecorder()
        let session = URLSession.plain(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        let send: @Sendable (Int) -> Void = { number in
            task.send(.data(Data([8, 0].map { UInt8(number >> $0 & 255) }))) { _ in }
        }
        for number in 0..<500 { send(number) }
        task.resume()
        try await origin.requests.wait(for: "the handshake") { !$0.isEmpty }
        // Beside the opening, and a little longer; not on a thread of Swift's, which the origin needs.
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            Thread.detachNewThread {
                opens.change { $0 = true }
                var (number, behind) = (500, 0)
                while number < 4_000, behind < 200 {
                    if delegate.messages.value.contains("open -") { behind += 1 }
                    send(number)
                    number += 1
                }
                done.resume()
            }
        }
        task.send(.string("end")) { _ in }
        #expect(Self.text(try await task.receive()) == "true")
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("are let go of where they completed while the connection opened")
    func released() async throws {
        weak var task: URLSessionTask?
        let session = URLSession.plain()
        do {
            let made = session.webSocketTask(with: try URL.of("ws://127.0.0.1:1/"))
            task = made
            made.cancel()
            await #expect(throws: URLError.self) { try await made.receive() }
            await session.queueEmptied()
            let request = try #require(made.originalRequest)
            let load = WebSocketLoad(LoadOrder(request: request, task: made), LoadRecorder())
            let response = URLResponse(
                url: try URL.of("ws://127.0.0.1:1/"), mimeType: nil, expectedContentLength: 0,
                textEncodingName: nil)
            let answer = LoadAnswer(
                response: response, body: WebSocketBody(load, chosen: nil))
            _ = try made.purpose.consumer(of: answer, for: made)
        }
        await session.queueEmptied()
        #expect(task == nil)
        session.invalidateAndCancel()
    }

    @Test("fail when they go on, where the connection broke before, behind what came with the head")
    func broken() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.accept(
                try await connection.requestHead(),
                and: OriginConnection.bytes(0x81, Array("last".utf8)))
            _ = try await connection.frame()
        }
        let delegate = WebSocketRecorder()
        let session = URLSession.plain(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        let recorder = LoadRecorder()
        let queue = DispatchQueue(label: "test.websocket")
        let request = try #require(task.originalRequest)
        let load = WebSocketLoad(
            LoadOrder(request: request, task: task), recorder, queue: queue)
        load.begin(of: session)
        try await recorder.hears("answered")
        // As a task that was suspended during the handshake leaves it, and its server resets it.
        queue.sync { load.failed(URLError(.networkConnectionLost)) }
        let answer = try #require(recorder.answer.withLock { $0 })
        _ = try task.purpose.consumer(of: answer, for: task)
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .networkConnectionLost)
        #expect(Self.text(try await task.receive()) == "last")
        #expect(recorder.said.value == ["answered", "measured"])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("close at once though nobody takes what has come before the answer")
    func crowded() async throws {
        let sends = Event(false)
        let message = OriginConnection.bytes(0x82, [UInt8](repeating: 0, count: 80 << 10))
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.accept(try await connection.requestHead())
            // Answered where the message before has been taken in: there is no room for another.
            try await connection.wire.send(message + OriginConnection.bytes(0x89, []))
            #expect(try await connection.frame().first == 0x8A)
            sends.change { $0 = true }
            for _ in 0..<4 { try await connection.wire.send(message) }
            let frame = try await connection.frame()
            try await connection.send(frame.first, frame.payload)
        }
        let delegate = WebSocketRecorder()
        let session = URLSession.plain(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        let recorder = LoadRecorder()
        let load = WebSocketLoad(
            LoadOrder(request: try #require(task.originalRequest), task: task), recorder,
            patience: 3600)
        load.begin(of: session)
        try await recorder.hears("answered")
        let answer = try #require(recorder.answer.withLock { $0 })
        _ = try task.purpose.consumer(of: answer, for: task)
        // As where the task is resumed, which would begin a load of its own.
        load.pause(if: { false })
        try await sends.wait(for: "the first message") { $0 }
        task.cancel(with: .goingAway, reason: nil)
        try await delegate.completion()
        #expect(delegate.errors.value.first.flatMap { $0 } == nil)
        #expect(task.closeCode == .goingAway)
        session.invalidateAndCancel()
        await origin.stop()
    }

    // MARK: Suspended

    @Test("transmit nothing while they are suspended; closing does not wait (§3.1)")
    func suspended() async throws {
        let said = Event<[String]>([])
        let speaks = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.accept(try await connection.requestHead())
            try await speaks.wait(for: "leave to speak") { $0 }
            try await connection.send(0x81, Array("late".utf8))
            while true {
                let frame = try await connection.frame()
                let isClose = frame.first == 0x88
                let text = String(decoding: frame.payload, as: UTF8.self)
                said.change { $0.append(isClose ? "close" : text) }
                if isClose { return try await connection.send(0x88, frame.payload) }
            }
        }
        let delegate = WebSocketRecorder()
        let session = URLSession.plain(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        task.resume()
        try await delegate.messages.wait(for: "the opening") { $0.contains("open -") }
        task.suspend()
        let (sent, got) = (Event(0), Event<[String]>([]))
        task.send(.string("kept")) { _ in sent.change { $0 += 1 } }
        task.receive { result in
            got.change { $0.append((try? result.get()).map(Self.text) ?? "failed") }
        }
        speaks.change { $0 = true }
        // As long as it takes a connection beside it to be spoken on a hundred times.
        let beside = try await Self.echo()
        let other = session.webSocketTask(with: try Self.url(beside))
        other.resume()
        for _ in 0..<100 {
            try await other.send(.string("beside"))
            _ = try await other.receive()
        }
        #expect(sent.value == 0 && got.value.isEmpty && said.value.isEmpty)
        task.resume()
        try await got.wait(for: "the message") { $0 == ["late"] }
        try await said.wait(for: "the other message") { $0 == ["kept"] }
        task.suspend()
        task.send(.string("rest")) { _ in }
        task.cancel(with: .goingAway, reason: nil)
        try await delegate.completion()
        #expect(delegate.errors.value.first.flatMap { $0 } == nil)
        #expect(said.value == ["kept", "rest", "close"] && task.closeCode == .goingAway)
        session.invalidateAndCancel()
        await origin.stop()
        await beside.stop()
    }

    @Test("go on where they were suspended and resumed from several threads at once (300 times)")
    func suspensions() async throws {
        let origin = try await Self.echo()
        let session = URLSession.plain()
        let task = session.webSocketTask(with: try Self.url(origin))
        task.resume()
        for round in 0..<300 {
            await Race.suspendAndResume(task)
            try await task.send(.string("\(round)"))
            #expect(Self.text(try await task.receive()) == "\(round)")
        }
        session.invalidateAndCancel()
        await origin.stop()
    }
}
