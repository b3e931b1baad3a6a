import Foundation
import NIOCore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Has its data tasks become stream tasks.
final class BecomingDelegate: NSObject, URLSessionDataDelegate, URLSessionStreamDelegate {
    let messages = Event<[String]>([])
    let streams = Event<[URLSessionStreamTask]>([])
    let errors = Event<[(any Error)?]>([])
    private let operations: @Sendable (URLSessionStreamTask) -> Void

    /// - Parameter operations: asks for something within the message that brings the stream task.
    init(_ operations: @escaping @Sendable (URLSessionStreamTask) -> Void = { _ in }) {
        self.operations = operations
    }

    func stream() async throws -> URLSessionStreamTask {
        try await self.streams.wait(for: "the stream task") { !$0.isEmpty }
        return self.streams.value[0]
    }

    func completion() async throws -> URLError? {
        try await self.errors.wait(for: "the completion") { !$0.isEmpty }
        return self.errors.value[0] as? URLError
    }

    private func note(_ message: String) { self.messages.change { $0.append(message) } }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note("response")
        completionHandler(.becomeStream)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        didBecome streamTask: URLSessionStreamTask
    ) {
        self.note("became")
        self.operations(streamTask)
        self.streams.change { $0.append(streamTask) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note("data")
    }

    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        self.note("read closed")
    }

    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        self.note("write closed")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.note("metrics \(metrics.transactionMetrics.count)")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.note(task is URLSessionStreamTask ? "complete" : "complete data")
        self.errors.change { $0.append(error) }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        self.note("invalid")
    }
}

@Suite("What a data task becomes that is to be a stream (§4.3)")
struct StreamsResponseTests {
    @Test(
        "reads the body by its operations, to the end, and hears the rest of the task's life",
        arguments: [0, 10, 400_000])
    func reading(count: Int) async throws {
        let file = try await FileOrigin.start(count: count)
        let delegate = BecomingDelegate()
        let session = URLSession.plain(delegate)
        let task = session.dataTask(with: try file.url)
        task.resume()
        let stream = try await delegate.stream()
        let url = try file.url
        #expect(stream.response?.url == url && stream.currentRequest?.url == url)
        var got = Data()
        while true {
            let (data, atEnd) = try await stream.readData(
                ofMinLength: 1, maxLength: 70_000, timeout: 30)
            let piece = data ?? Data()
            #expect(piece.count <= 70_000 && (atEnd || !piece.isEmpty))
            got.append(piece)
            if atEnd { break }
        }
        #expect(got == Data(file.content))
        #expect(try await delegate.completion() == nil)
        await session.queueEmptied()
        #expect(
            delegate.messages.value == [
                "response", "became", "write closed", "read closed", "metrics 1", "complete",
            ])
        #expect(task.state == .completed && task.error == nil && stream.state == .completed)
        #expect(stream.countOfBytesReceived == Int64(count))
        #expect(await session.allTasks.isEmpty)
        #expect(file.origin.count == 1)
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("gives a read what it asked for, and what was asked when it came to be")
    func lengths() async throws {
        let file = try await FileOrigin.start(count: 100, stopsAt: 60)
        let early = Event<[(Data?, Bool, (any Error)?)]>([])
        let delegate = BecomingDelegate { stream in
            stream.readData(ofMinLength: 50, maxLength: 50, timeout: 30) { data, atEnd, error in
                early.change { $0.append((data, atEnd, error)) }
            }
        }
        let session = URLSession.plain(delegate)
        session.dataTask(with: try file.url).resume()
        let stream = try await delegate.stream()
        try await early.wait(for: "the read") { !$0.isEmpty }
        #expect(early.value[0].0 == Data(file.content[..<50]) && !early.value[0].1)
        // Ten are there, and the rest is not: the time is up, and nothing is lost.
        let error = await #expect(throws: URLError.self) {
            try await stream.readData(ofMinLength: 20, maxLength: 20, timeout: 0.05)
        }
        #expect(error?.code == .timedOut)
        file.goOn.change { $0 = true }
        let (rest, atEnd) = try await stream.readData(ofMinLength: 51, maxLength: 99, timeout: 30)
        #expect(rest == Data(file.content[50...]) && atEnd)
        #expect(try await delegate.completion() == nil)
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("cannot write: the connection is the transfer's")
    func writing() async throws {
        let file = try await FileOrigin.start(count: 10)
        let delegate = BecomingDelegate()
        let session = URLSession.plain(delegate)
        session.dataTask(with: try file.url).resume()
        let stream = try await delegate.stream()
        let error = await #expect(throws: URLError.self) {
            try await stream.write(Data("no".utf8), timeout: 30)
        }
        #expect(error?.code == .networkConnectionLost)
        #expect((error?.userInfo[NSUnderlyingErrorKey] as? POSIXError)?.code == .EPIPE)
        // The read side goes on.
        let (data, _) = try await stream.readData(ofMinLength: 10, maxLength: 10, timeout: 30)
        #expect(data?.count == 10)
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("closed for reading, lets the rest go and completes")
    func closing() async throws {
        let (origin, sent, over) = try await ScriptedOrigin.pouring()
        let delegate = BecomingDelegate { $0.closeRead() }
        let session = URLSession.plain(delegate)
        session.dataTask(with: try URL.of(origin.url("/"))).resume()
        #expect(try await delegate.completion() == nil)
        try await over.wait(for: "the connection to be let go") { $0 }
        #expect(sent.value < 100)
        let stream = try await delegate.stream()
        await #expect(throws: URLError.self) {
            try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 30)
        }
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("holds the origin back while nobody reads, also while it is suspended")
    func backPressure() async throws {
        let (origin, sent, over) = try await ScriptedOrigin.pouring()
        let delegate = BecomingDelegate()
        let session = URLSession.plain(delegate)
        session.dataTask(with: try URL.of(origin.url("/"))).resume()
        let stream = try await delegate.stream()
        _ = try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 30)
        // As long as it takes a connection beside it to be served a hundred times.
        let beside = try await FileOrigin.start(count: 1000)
        let other = URLSession.plain()
        for _ in 0..<100 { _ = try await other.data(from: try beside.url) }
        #expect(sent.value < 32)
        stream.suspend()
        let read = Event<[Data?]>([])
        stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { data, _, _ in
            read.change { $0.append(data) }
        }
        for _ in 0..<20 { _ = try await other.data(from: try beside.url) }
        #expect(read.value.isEmpty)
        stream.resume()
        try await read.wait(for: "the read") { $0 == [Data([1])] }
        stream.cancel()
        #expect(try await delegate.completion()?.code == .cancelled)
        try await over.wait(for: "the connection to be let go") { $0 }
        session.invalidateAndCancel()
        await origin.stop()
        await beside.origin.stop()
    }

    @Test("goes on where it was suspended and resumed from several threads at once (300 times)")
    func suspensions() async throws {
        let (origin, _, over) = try await ScriptedOrigin.pouring()
        let delegate = BecomingDelegate()
        let session = URLSession.plain(delegate)
        session.dataTask(with: try URL.of(origin.url("/"))).resume()
        let stream = try await delegate.stream()
        let toggle: @Sendable () -> Void = {
            for _ in 0..<4 {
                stream.suspend()
                stream.resume()
            }
        }
        for _ in 0..<300 {
            await Race.atOnce(toggle, toggle, toggle)
            let (data, _) = try await stream.readData(ofMinLength: 9, maxLength: 9, timeout: 60)
            #expect(data?.count == 9)
        }
        stream.cancel()
        #expect(try await delegate.completion()?.code == .cancelled)
        try await over.wait(for: "the connection to be let go") { $0 }
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("fails with the body, and with TLS that cannot begin")
    func failures() async throws {
        let file = try await FileOrigin.start(count: 1000, stopsAt: 500, cuts: true)
        let delegate = BecomingDelegate()
        let session = URLSession.plain(delegate)
        session.dataTask(with: try file.url).resume()
        let stream = try await delegate.stream()
        await #expect(throws: URLError.self) {
            try await stream.readData(ofMinLength: 600, maxLength: 600, timeout: 30)
        }
        #expect(try await delegate.completion()?.code == .networkConnectionLost)
        session.invalidateAndCancel()
        await file.origin.stop()

        let whole = try await FileOrigin.start(count: 10)
        let securing = BecomingDelegate { $0.startSecureConnection() }
        let another = URLSession.plain(securing)
        another.dataTask(with: try whole.url).resume()
        #expect(try await securing.completion()?.code == .secureConnectionFailed)
        another.invalidateAndCancel()
        await whole.origin.stop()
    }

    @Test("fails what waits in its order when it is cancelled")
    func cancelled() async throws {
        let file = try await FileOrigin.start(count: 1000, stopsAt: 500)
        let failed = Event<[(Int, URLError.Code?)]>([])
        let delegate = BecomingDelegate { stream in
            for number in 0..<5 {
                stream.readData(ofMinLength: 600, maxLength: 600, timeout: 0) { _, _, error in
                    failed.change { $0.append((number, (error as? URLError)?.code)) }
                }
            }
        }
        let session = URLSession.plain(delegate)
        session.dataTask(with: try file.url).resume()
        try await delegate.stream().cancel()
        #expect(try await delegate.completion()?.code == .cancelled)
        try await failed.wait(for: "all reads") { $0.count == 5 }
        #expect(failed.value.map(\.0) == Array(0..<5))
        #expect(failed.value.allSatisfy { $0.1 == .cancelled })
        file.goOn.change { $0 = true }
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("gives no streams away: the connection is the transfer's")
    func capturing() async throws {
        let file = try await FileOrigin.start(count: 10)
        let delegate = BecomingDelegate { $0.captureStreams() }
        let session = URLSession.plain(delegate)
        session.dataTask(with: try file.url).resume()
        #expect(try await delegate.completion()?.code == .unsupportedURL)
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    /// Hears what a response says, without a task.
    private final class Owner: StreamOwner {
        let reads = Event<[(Int, Int?, Bool)]>([])
        let ended = Event<[String]>([])

        func completed(_ number: Int, _ data: Data?, atEnd: Bool, _ error: URLError?) {
            self.reads.change { $0.append((number, data?.count, atEnd)) }
        }

        func failed(_ error: URLError) { self.ended.change { $0.append("failed") } }
        func finished() { self.ended.change { $0.append("finished") } }
        func readClosed() { self.ended.change { $0.append("readClosed") } }
        func writeClosed() { self.ended.change { $0.append("writeClosed") } }
        func counted(received: Int, sent: Int) {}
        func captured(_ connection: CapturedConnection) {}
        func asks(
            _ challenge: URLAuthenticationChallenge,
            answer:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) ->
                Void
        ) {}
    }

    @Test("says once for each piece that there is room for the next, and when there is")
    func room() async throws {
        let (response, owner) = (StreamedResponse(), Owner())
        let ready = Event(0)
        response.begin(owner)
        func take(_ count: Int) {
            response.take(ByteBuffer(repeating: 1, count: count)) { _ in ready.change { $0 += 1 } }
        }
        /// A read; when it is done, all that was asked before has been seen to.
        func read(_ number: Int, _ count: Int) async throws {
            response.enqueue(.read(minimum: count, maximum: count), number: number, timeout: nil)
            try await owner.reads.wait(for: "read \(number)") { $0.contains { $0.0 == number } }
        }
        take(StreamMachine.readAhead - 1)
        try await read(1, 0)
        #expect(ready.value == 1)
        take(1)
        try await read(2, 0)
        #expect(ready.value == 1)
        try await read(3, 1)
        try await read(4, 1)
        #expect(ready.value == 2)
        // While it is paused there is room for nothing.
        response.pause { true }
        take(1)
        response.enqueue(.read(minimum: 1, maximum: 1), number: 5, timeout: nil)
        response.pause { false }
        try await owner.reads.wait(for: "read 5") { $0.contains { $0.0 == 5 } }
        try await read(6, 0)
        #expect(ready.value == 3)
        // What has been read ahead is read, and then it is over.
        response.finish { _ in Issue.record("the task ends with the body") }
        let left = StreamMachine.readAhead - 2
        try await read(7, left - 1)
        #expect(owner.reads.value.last?.2 == false)
        try await read(8, 9)
        #expect(owner.reads.value.last?.1 == 1 && owner.reads.value.last?.2 == true)
        try await owner.ended.wait(for: "the end") { $0.contains("finished") }
        #expect(owner.ended.value == ["writeClosed", "readClosed", "finished"])
        #expect(ready.value == 3)
        response.end()
    }

    @Test("becoming a stream, cancel, invalidation and the body's end at once (300 times)")
    func races() async throws {
        let file = try await FileOrigin.start(count: 20_000)
        for index in 0..<300 {
            let delegate = BecomingDelegate { stream in
                stream.readData(ofMinLength: 1, maxLength: 30_000, timeout: 5) { _, _, _ in }
                if index % 4 == 0 { stream.closeRead() }
            }
            let session = URLSession.plain(delegate)
            let task = session.dataTask(with: try file.url)
            task.resume()
            if index % 3 == 0 { _ = try await delegate.stream() }
            for _ in 0..<(index % 16) { await Task.yield() }
            if index % 2 == 0 { task.cancel() }
            session.invalidateAndCancel()
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
            let messages = delegate.messages.value
            #expect(messages.last == "invalid")
            #expect(messages.filter { $0.hasPrefix("complete") }.count == 1)
            #expect(!messages.contains("data"))
        }
        await file.origin.stop()
    }
}
