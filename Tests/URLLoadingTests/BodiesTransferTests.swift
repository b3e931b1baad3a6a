import Foundation
import Glibc
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Uploads over HTTP (§3.3)")
struct BodiesTransferTests {
    private func request(_ url: String, _ method: String) throws -> URLRequest {
        var request = URLRequest(url: try .of(url))
        request.httpMethod = method
        return request
    }

    @Test("send data, and tell of it before the response (§1.6)")
    func data() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "thanks") }
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        let bytes = pattern(300_000)
        let task = session.uploadTask(
            with: try self.request(origin.url("/up"), "POST"), from: Data(bytes))
        #expect(task.countOfBytesExpectedToSend == 300_000)
        task.resume()
        let heard = try await recorder.completion()
        #expect(heard.error == nil)
        #expect(recorder.order == ["sent", "response", "data", "metrics", "complete"])
        #expect(heard.written.reduce(0) { $0 + $1.0 } == 300_000)
        #expect(heard.written.last?.1 == 300_000)
        #expect(heard.written.allSatisfy { $0.2 == 300_000 })
        let sent = try #require(origin.requests.value.first)
        #expect(sent.body == bytes)
        #expect(sent["Content-Length"] == "300000")
        #expect(sent["Content-Type"] == "application/x-www-form-urlencoded")
        #expect(task.countOfBytesSent == 300_000)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("show in their progress how much is sent, and are not over before the answer (§3.1)")
    func progress() async throws {
        let goesOn = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await goesOn.wait(for: "a look at the progress") { $0 }
            try await connection.send(response(body: "thanks"))
        }
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        let task = session.uploadTask(
            with: try self.request(origin.url("/up"), "POST"), from: Data(pattern(300_000)))
        let all = Progress(totalUnitCount: 1)
        all.addChild(task.progress, withPendingUnitCount: 1)
        task.resume()
        try await recorder.heard.wait(for: "the content to be sent") {
            $0.written.last?.1 == 300_000
        }
        #expect(task.progress.completedUnitCount == 300_000)
        #expect(task.progress.totalUnitCount == 300_001)
        #expect(!task.progress.isFinished && all.fractionCompleted > 0.99)
        goesOn.change { $0 = true }
        #expect(try await recorder.completion().error == nil)
        #expect(task.progress.isFinished && all.isFinished)
        #expect(task.progress.completedUnitCount == 300_006)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("send a file, whose type is said (FOUNDATION-GAPS: none is)")
    func file() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "thanks") }
        try await Scratch.with { scratch in
            let url = try scratch.file("picture.png", pattern(1_000_000))
            let (data, _) = try await URLSession.plain().upload(
                for: self.request(origin.url("/up"), "PUT"), fromFile: url)
            #expect(data == Data("thanks".utf8))
            let sent = try #require(origin.requests.value.first)
            #expect(sent.body == pattern(1_000_000))
            #expect(sent["Content-Type"] == "image/png")
            #expect(sent["Content-Length"] == "1000000")
        }
        await origin.stop()
    }

    @Test("of a file that is not there fail with the file's error")
    func missingFile() async throws {
        let error = await #expect(throws: URLError.self) {
            _ = try await URLSession.plain().upload(
                for: self.request("http://127.0.0.1:9/up", "PUT"),
                fromFile: URL(fileURLWithPath: "/nonexistent/file"))
        }
        #expect(error?.code == .fileDoesNotExist)
    }

    @Test("of a file that shrinks end with an error, and the server gets no whole message")
    func shrinking() async throws {
        try await Scratch.with { scratch in
            let url = try scratch.file("up.bin", [])
            // More than fits between the two ends: the origin has read nothing before it shrinks.
            let length = 64 << 20
            #expect(unsafe truncate(url.path, length) == 0)
            let isWhole = Event<Bool?>(nil)
            let origin = try await ScriptedOrigin.start(reads: false) { connection in
                #expect(unsafe truncate(url.path, 100) == 0)
                try await connection.wire.resumeReading()
                let message = try await connection.wire.readAll()
                isWhole.change { $0 = message.count >= length }
            }
            let error = await #expect(throws: URLError.self) {
                _ = try await URLSession.plain().upload(
                    for: self.request(origin.url("/up"), "PUT"), fromFile: url)
            }
            #expect(error?.code == .requestBodyStreamExhausted)
            try await isWhole.wait(for: "the origin") { $0 != nil }
            #expect(isWhole.value == false)
            await origin.stop()
        }
    }

    @Test("take a stream from the delegate, in chunks, and another one behind a 307 (§5)")
    func streamed() async throws {
        let origin = try await ScriptedOrigin.answering { request in
            request.target == "/first"
                ? response("307 Temporary Redirect", "Location: /second")
                : response(body: "thanks")
        }
        let bytes = pattern(100_000)
        let recorder = DownloadRecorder { InputStream(data: Data(bytes)) }
        let session = URLSession.plain(recorder)
        let task = session.uploadTask(
            withStreamedRequest: try self.request(origin.url("/first"), "PUT"))
        #expect(task.countOfBytesExpectedToSend == -1)
        task.resume()
        let heard = try await recorder.completion()
        #expect(heard.error == nil)
        #expect(recorder.order.first == "stream")
        #expect(heard.messages.filter { $0 == "stream" }.count == 2)
        #expect(origin.requests.value.map(\.body) == [bytes, bytes])
        #expect(origin.requests.value.allSatisfy { $0["Transfer-Encoding"] == "chunked" })
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("without a stream from the delegate fail", arguments: [true, false])
    func noStream(hasDelegate: Bool) async throws {
        let recorder = DownloadRecorder()
        let loaders = ScriptedLoaders()
        let session = URLSession(
            .ephemeral, delegate: hasDelegate ? recorder : nil, queue: nil, loaders: loaders)
        let task = session.uploadTask(
            withStreamedRequest: try self.request("http://127.0.0.1:9/", "PUT"))
        task.resume()
        if hasDelegate {
            #expect(try await recorder.completion().error?.code == .requestBodyStreamExhausted)
        } else {
            // The session's end is behind its last task's.
            session.finishTasksAndInvalidate()
            try await loaders.invalidations.wait(for: "the session's end") { $0 > 0 }
            #expect(task.state == .completed)
            #expect((task.error as? URLError)?.code == .requestBodyStreamExhausted)
        }
        #expect(await task.cancelByProducingResumeData() == nil)
        #expect(loaders.loads.value.isEmpty)
    }
}

@Suite("Async methods (§1.5)")
struct BodiesAsyncTests {
    @Test("give data and response, or throw")
    func data() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let session = URLSession.plain()
        let (data, answer) = try await session.data(from: .of(origin.url("/")))
        #expect(data == Data("hello".utf8))
        #expect((answer as? HTTPURLResponse)?.statusCode == 200)
        let (echo, _) = try await session.upload(
            for: {
                var request = URLRequest(url: try .of(origin.url("/")))
                request.httpMethod = "PUT"
                return request
            }(), from: Data())
        #expect(echo == Data("hello".utf8))
        let error = await #expect(throws: URLError.self) {
            _ = try await session.data(from: .of("nonsense:x"))
        }
        #expect(error?.code == .unsupportedURL)
        session.invalidateAndCancel()
        let late = await #expect(throws: URLError.self) {
            _ = try await session.data(from: .of(origin.url("/")))
        }
        #expect(late?.code == .cancelled)
        await origin.stop()
    }

    @Test(
        "are cancelled with the Swift task, before, during and after, and return once (300 times)")
    func cancellation() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let session = URLSession.plain()
        let url = try URL.of(origin.url("/"))
        for index in 0..<300 {
            let task = Task { try await session.data(from: url).0 }
            for _ in 0..<(index % 30) { await Task.yield() }
            task.cancel()
            switch await task.result {
            case .success(let data): #expect(data == Data("hello".utf8))
            case .failure(let error): #expect((error as? URLError)?.code == .cancelled)
            }
        }
        let isEmpty = await session.allTasks.isEmpty
        #expect(isEmpty)
        await origin.stop()
    }

    @Test("give the response's bytes as they come, when its head has come")
    func bytes() async throws {
        let goOn = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            while try await connection.request() != nil {
                try await connection.send(
                    "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\none\ntw")
                try await goOn.wait(for: "leave") { $0 }
                try await connection.send("o\nthree")
            }
        }
        let session = URLSession.plain()
        let (bytes, answer) = try await session.bytes(from: .of(origin.url("/")))
        #expect((answer as? HTTPURLResponse)?.statusCode == 200)
        #expect(bytes.task.countOfBytesExpectedToReceive == 13)
        var lines: [String] = []
        for try await line in bytes.lines {
            lines.append(line)
            goOn.change { $0 = true }
        }
        #expect(lines == ["one", "two", "three"])
        #expect(bytes.task.error == nil)
        await origin.stop()
    }

    @Test("let the delegate they were given follow the body as it comes, and nobody else")
    func followed() async throws {
        let goOn = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            while try await connection.request() != nil {
                try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
                try await goOn.wait(for: "leave") { $0 }
                try await connection.send("lo")
            }
        }
        let others = DownloadRecorder()
        let session = URLSession(
            configuration: .ephemeral, delegate: others, delegateQueue: nil)
        let url = try URL.of(origin.url("/"))

        let data = DownloadRecorder()
        async let loaded = session.data(from: url, delegate: data).0
        try await data.heard.wait(for: "the first piece") { $0.messages == ["data"] }
        goOn.change { $0 = true }
        #expect(try await loaded == Data("hello".utf8))
        #expect(data.order == ["data", "metrics"])

        var upload = URLRequest(url: url)
        upload.httpMethod = "PUT"
        let sent = DownloadRecorder()
        let answer = try await session.upload(for: upload, from: Data("x".utf8), delegate: sent).0
        #expect(answer == Data("hello".utf8))
        #expect(sent.order == ["sent", "data", "metrics"])

        let file = DownloadRecorder()
        let (location, _) = try await session.download(from: url, delegate: file)
        #expect(try Data(contentsOf: location) == Data("hello".utf8))
        try FileManager.default.removeItem(at: location)
        #expect(file.order == ["written", "metrics"])
        #expect(file.heard.value.written.last.map { [$0.1, $0.2] } == [5, 5])

        _ = try await session.data(from: url)
        let (second, _) = try await session.download(from: url)
        try FileManager.default.removeItem(at: second)
        #expect(Set(others.order).isSubset(of: ["metrics"]))
        await origin.stop()
    }

    @Test("make the origin wait for whoever reads the bytes, and let go of it with them")
    func backPressure() async throws {
        let (origin, sent, over) = try await ScriptedOrigin.pouring()
        do {
            let (bytes, _) = try await URLSession.plain().bytes(from: .of(origin.url("/")))
            var iterator = bytes.makeAsyncIterator()
            for _ in 0..<1_000_000 { #expect(try await iterator.next() == 1) }
            // The kernel's buffers and a little more.
            #expect(sent.value < 64)
            #expect(bytes.task.countOfBytesReceived < 4_000_000)
        }
        try await over.wait(for: "the connection to be let go") { $0 }
        #expect(sent.value < 64)
        await origin.stop()
    }

    @Test("throw the error that comes in the midst of the bytes")
    func brokenBytes() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        }
        let (bytes, _) = try await URLSession.plain().bytes(from: .of(origin.url("/")))
        var read = 0
        let error = await #expect(throws: URLError.self) {
            for try await _ in bytes { read += 1 }
        }
        #expect(read == 3)
        #expect(error?.code == .networkConnectionLost)
        let refused = await #expect(throws: URLError.self) {
            _ = try await URLSession.plain().bytes(from: .of("nonsense:x"))
        }
        #expect(refused?.code == .unsupportedURL)
        await origin.stop()
    }
}
