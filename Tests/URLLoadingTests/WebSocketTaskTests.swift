import Foundation
import LarderTransfer
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Hears of WebSockets.
final class WebSocketRecorder: RecordingDelegate, URLSessionWebSocketDelegate, @unchecked Sendable {
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didOpenWithProtocol protocol: String?
    ) {
        self.note("open \(`protocol` ?? "-")", session)
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        self.note(
            "close \(closeCode.rawValue) \(String(decoding: reason ?? Data(), as: UTF8.self))",
            session)
    }
}

/// One frame of a client's, unmasked.
struct ClientFrame: Sendable, Equatable {
    var first: UInt8
    var payload: [UInt8]
}

extension OriginConnection {
    /// Shakes hands; fields are whole lines.
    func accept(_ request: Message, _ fields: String = "", and frames: [UInt8] = []) async throws {
        let key = request["Sec-WebSocket-Key"] ?? ""
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n"
            + "Connection: keep-alive, Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(WebSocketKey.accept(for: key) ?? "")\r\n\(fields)\r\n"
        // The first frames may come with the head.
        try await self.wire.send(Array(head.utf8) + frames)
    }

    func frame() async throws -> ClientFrame {
        let head = try await self.wire.read(2)
        guard head[1] & 0x80 != 0 else { throw TimedOut(description: "a masked frame") }
        var count = Int(head[1] & 0x7F)
        if count >= 126 {
            let length = try await self.wire.read(count == 126 ? 2 : 8)
            count = length.reduce(0) { $0 << 8 | Int($1) }
        }
        let mask = try await self.wire.read(4)
        let payload = count == 0 ? [] : try await self.wire.read(count)
        return ClientFrame(
            first: head[0], payload: payload.enumerated().map { $1 ^ mask[$0 & 3] })
    }

    func send(_ first: UInt8, _ payload: [UInt8]) async throws {
        try await self.wire.send(Self.bytes(first, payload))
    }

    static func bytes(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        if count < 126 { return [first, UInt8(count)] + payload }
        if count < 65_536 { return [first, 126, UInt8(count >> 8), UInt8(count & 255)] + payload }
        return [first, 127, 0, 0, 0, 0] + [24, 16, 8, 0].map { UInt8(count >> $0 & 255) } + payload
    }
}

@Suite("WebSocket tasks (§3.7)")
struct WebSocketTaskTests {
    private static func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        configuration.httpAdditionalHeaders = ["X-Additional": "yes"]
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    /// Gives each message back, and answers a close.
    private static func echo() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            let request = try await connection.requestHead()
            try await connection.accept(request)
            while true {
                let frame = try await connection.frame()
                let isPing = frame.first == 0x89
                try await connection.send(isPing ? 0x8A : frame.first, frame.payload)
                if frame.first == 0x88 { return }
            }
        }
    }

    private static func url(_ origin: ScriptedOrigin, _ path: String = "/chat?a=b") throws -> URL {
        try #require(URL(string: "ws://\(origin.authority)\(path)"))
    }

    private static func text(_ message: URLSessionWebSocketTask.Message) -> String {
        switch message {
        case .string(let text): text
        case .data(let data): "\(data.count) bytes"
        }
    }

    @Test("answers the last of many pings to a server that does not read (RFC 6455 §5.5.3)")
    func pings() async throws {
        let count = 60_000
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.accept(try await connection.requestHead())
            let padding = [UInt8](repeating: 0, count: 121)
            for first in stride(from: 0, to: count, by: 500) {
                let frames = (first..<first + 500).flatMap { number in
                    OriginConnection.bytes(
                        0x89, [24, 16, 8, 0].map { UInt8(number >> $0 & 255) } + padding)
                }
                try await connection.wire.send(frames)
            }
            try await connection.send(0x81, Array("all".utf8))
            // Only now does it read.
            var (answers, last) = (0, -1)
            while last != count - 1 {
                let frame = try await connection.frame()
                guard frame.first == 0x8A else { break }
                answers += 1
                last = frame.payload.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            }
            try await connection.send(0x81, Array("\(answers < count) \(last)".utf8))
        }
        let session = Self.session()
        let task = session.webSocketTask(with: try Self.url(origin))
        task.resume()
        #expect(Self.text(try await task.receive()) == "all")
        #expect(Self.text(try await task.receive()) == "true \(count - 1)")
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("opens, sends, receives, pings and closes; what was asked early goes on when it is open")
    func conversation() async throws {
        let origin = try await Self.echo()
        let delegate = WebSocketRecorder()
        let session = Self.session(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        let sent = Event(0)
        task.send(.string("early")) { error in
            #expect(error == nil)
            sent.change { $0 += 1 }
        }
        #expect(task.closeCode == .invalid && task.maximumMessageSize == 1 << 20)
        task.resume()
        #expect(Self.text(try await task.receive()) == "early")
        #expect(sent.value == 1)
        for count in [0, 125, 126, 65_535, 65_536, 200_000] {
            try await task.send(.data(Data(count: count)))
            #expect(Self.text(try await task.receive()) == "\(count) bytes")
        }
        let pongs = Event<[Int]>([])
        for number in 0..<3 {
            task.sendPing { error in
                #expect(error == nil)
                pongs.change { $0.append(number) }
            }
        }
        try await pongs.wait(for: "pongs") { $0 == [0, 1, 2] }
        task.cancel(with: .goingAway, reason: Data("bye".utf8))
        try await delegate.completion()
        #expect(delegate.errors.value.first.flatMap { $0 } == nil)
        #expect(task.closeCode == .goingAway && task.closeReason == Data("bye".utf8))
        #expect(
            delegate.messages.value
                == ["created", "open -", "close 1001 bye", "metrics", "complete"])
        #expect(delegate.wrongQueue.value == 0)
        let request = try #require(origin.requests.value.first)
        #expect(request.target == "/chat?a=b" && request["X-Additional"] == "yes")
        #expect(request["Host"] == origin.authority && request["Sec-WebSocket-Version"] == "13")
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test("a subprotocol is agreed on; frames that come with the head are not lost")
    func subprotocol() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            let request = try await connection.requestHead()
            #expect(request["Sec-WebSocket-Protocol"] == "one, two")
            try await connection.accept(
                request, "Sec-WebSocket-Protocol: two\r\n",
                and: OriginConnection.bytes(0x01, Array("he".utf8)))
            try await connection.send(0x89, [9])
            try await connection.send(0x80, Array("llo".utf8))
            #expect(try await connection.frame() == ClientFrame(first: 0x8A, payload: [9]))
            try await connection.send(0x88, [3, 232] + Array("done".utf8))
            #expect(try await connection.frame().first == 0x88)
        }
        let delegate = WebSocketRecorder()
        let session = Self.session(delegate)
        let task = session.webSocketTask(with: try Self.url(origin), protocols: ["one", "two"])
        task.resume()
        #expect(Self.text(try await task.receive()) == "hello")
        let lost = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(lost?.code == .networkConnectionLost)
        #expect(lost?.failingURL == (try Self.url(origin)))
        try await delegate.completion()
        let late = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(late?.failingURL == lost?.failingURL)
        #expect(
            delegate.messages.value
                == ["created", "open two", "close 1000 done", "metrics", "complete"])
        #expect(task.closeCode == .normalClosure && task.closeReason == Data("done".utf8))
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test("codes without a name go both ways as they are", arguments: [1012, 3000, 4001, 4999])
    func closeCodes(_ number: Int) async throws {
        let octets = [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
        for isServers in [true, false] {
            let origin = try await ScriptedOrigin.start { connection in
                try await connection.accept(try await connection.requestHead())
                if isServers { try await connection.send(0x88, octets) }
                #expect(try await connection.frame().payload == octets)
                if !isServers { try await connection.send(0x88, octets) }
            }
            let delegate = WebSocketRecorder()
            let session = Self.session(delegate)
            let task = session.webSocketTask(with: try Self.url(origin))
            task.resume()
            if !isServers {
                try await delegate.messages.wait(for: "the handshake") { $0.contains("open -") }
                let code = try #require(URLSessionWebSocketTask.CloseCode(rawValue: number))
                task.cancel(with: code, reason: nil)
            }
            try await delegate.completion()
            #expect(task.closeCode == .other(number) && task.closeCode.rawValue == number)
            #expect(delegate.messages.value.contains("close \(number) "))
            session.finishTasksAndInvalidate()
            await origin.stop()
        }
    }

    @Test("a close code has the number of its name, and none two")
    func closeCodeNumbers() {
        for number in 0...5000 {
            #expect(URLSessionWebSocketTask.CloseCode(rawValue: number)?.rawValue == number)
        }
        #expect(URLSessionWebSocketTask.CloseCode(rawValue: 1008) == .policyViolation)
    }

    @Test("redirections, challenges and cookies come before the handshake is through")
    func before() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            let request = try await connection.requestHead()
            if request.target == "/" {
                try await connection.send(
                    response(
                        "302 Found", "Location: WS://\(request["Host"] ?? "")/next",
                        "Set-Cookie: crumb=1", "Connection: close"))
            } else if request["Authorization"] == nil {
                try await connection.send(
                    response(
                        "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"",
                        "Connection: close"))
            } else {
                try await connection.accept(request)
                try await connection.send(0x81, Array((request["Cookie"] ?? "").utf8))
                _ = try await connection.frame()
            }
        }
        let delegate = AnsweringSocketDelegate()
        let session = Self.session(delegate)
        let task = session.webSocketTask(with: try Self.url(origin, "/"))
        task.resume()
        #expect(Self.text(try await task.receive()) == "crumb=1")
        #expect(task.currentRequest?.url == (try Self.url(origin, "/next")))
        #expect(origin.requests.value.last?["Authorization"] == "Basic dXNlcjpwYXNz")
        #expect(
            delegate.messages.value == ["created", "redirect 302", "challenge"])
        task.cancel()
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .cancelled)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test(
        "a server that refuses, lies or breaks the rules fails the task and what waits",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", URLError.Code.badServerResponse),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", .badServerResponse),
            ("nonsense\r\n\r\n", .badServerResponse), ("", .badServerResponse),
        ])
    func refusals(_ answer: String, _ code: URLError.Code) async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.requestHead()
            try await connection.send(answer)
        }
        let delegate = WebSocketRecorder()
        let session = Self.session(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        let failures = Event<[URLError.Code?]>([])
        task.send(.string("x")) { error in
            failures.change { $0.append((error as? URLError)?.code) }
        }
        task.sendPing { error in failures.change { $0.append((error as? URLError)?.code) } }
        task.resume()
        await #expect(throws: URLError.self) { try await task.receive() }
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == code)
        #expect(failures.value == [code, code])
        #expect(delegate.messages.value == ["created", "metrics", "complete"])
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test("a message that is too long, and text that is none, are told to the peer (§7.4.1)")
    func faults() async throws {
        for (frame, code, error) in [
            (
                OriginConnection.bytes(0x82, [1, 2, 3, 4, 5]), 1009,
                URLError.Code.dataLengthExceedsMaximum
            ),
            ([0x81, 1, 0xFF], 1007, .badServerResponse), ([0x83, 0], 1002, .badServerResponse),
        ] {
            let told = Event<[UInt8]>([])
            let origin = try await ScriptedOrigin.start { connection in
                try await connection.accept(try await connection.requestHead(), and: frame)
                let close = try await connection.frame()
                told.change { $0 = close.payload }
            }
            let session = Self.session()
            let task = session.webSocketTask(with: try Self.url(origin))
            task.maximumMessageSize = 4
            task.resume()
            do {
                _ = try await task.receive()
                Issue.record("was received")
            } catch let failure {
                #expect((failure as? URLError)?.code == error)
            }
            try await told.wait(for: "a close") { !$0.isEmpty }
            #expect(told.value == [UInt8(code >> 8), UInt8(code & 255)])
            session.finishTasksAndInvalidate()
            await origin.stop()
        }
    }

    @Test("a connection that just ends is lost, and closed with nothing")
    func abrupt() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            try await connection.accept(try await connection.requestHead())
            _ = try await connection.frame()
        }
        let delegate = WebSocketRecorder()
        let session = Self.session(delegate)
        let task = session.webSocketTask(with: try Self.url(origin))
        task.resume()
        try await task.send(.string("x"))
        await #expect(throws: URLError.self) { try await task.receive() }
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .networkConnectionLost)
        #expect(task.closeCode == .invalid && task.closeReason == nil)
        #expect(delegate.messages.value == ["created", "open -", "metrics", "complete"])
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test("no other scheme is one of a WebSocket, and none of these is loaded by other tasks")
    func schemes() async throws {
        let session = Self.session()
        let task = session.webSocketTask(
            with: try #require(URL(string: "http://127.0.0.1:1/")))
        task.resume()
        await #expect(throws: URLError.self) { try await task.receive() }
        do {
            _ = try await session.data(from: try #require(URL(string: "ws://127.0.0.1:1/")))
            Issue.record("was loaded")
        } catch {
            #expect((error as? URLError)?.code == .unsupportedURL)
        }
        session.finishTasksAndInvalidate()
    }

    @Test("cancelled at any moment, each handler is called once and the task completes once")
    func races() async throws {
        let origin = try await Self.echo()
        for round in 0..<150 {
            let delegate = WebSocketRecorder()
            let session = Self.session(delegate)
            let task = session.webSocketTask(with: try Self.url(origin))
            let calls = Event(0)
            task.resume()
            task.send(.string("a")) { _ in calls.change { $0 += 1 } }
            task.sendPing { _ in calls.change { $0 += 1 } }
            task.receive { _ in
                calls.change { $0 += 1 }
                if round % 4 == 0 { task.cancel() }
                if round % 4 == 1 { task.cancel(with: .normalClosure, reason: nil) }
            }
            if round % 4 == 2 { task.cancel(with: .normalClosure, reason: nil) }
            if round % 4 == 3 { task.cancel() }
            try await delegate.completion()
            #expect(calls.value == 3 && delegate.errors.value.count == 1)
            session.invalidateAndCancel()
        }
        await origin.stop()
    }
}

/// Gives a password to whoever asks.
final class AnsweringSocketDelegate: RecordingDelegate, @unchecked Sendable {
    override func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenge", session)
        completionHandler(
            .useCredential,
            URLCredential(user: "user", password: "pass", persistence: .none))
    }
}
