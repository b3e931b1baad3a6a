import Foundation
import Glibc
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The content of an upload (§3.3)")
struct BodiesUploadTests {
    @Test("is data, in pieces of a bounded size", arguments: [0, 1, 65_536, 65_537, 300_000])
    func data(count: Int) async throws {
        // A slice that does not begin at 0.
        let bytes = pattern(count + 3)
        let body = UploadBody.data(Data(bytes)[3...])
        let source = try #require(try body.open())
        #expect(source.length == Int64(count))
        #expect(body.countOfBytesExpectedToSend() == Int64(count))
        #expect(body.isRepeatable)
        let outcome = try await Pulled.all(of: source.source)
        #expect(outcome.bytes == Array(bytes[3...]))
        #expect(outcome.longest <= DataUploadSource.pieceSize)
        #expect(outcome.failure == nil)
    }

    @Test("is a file, read while it is sent", arguments: [0, 1, 262_144, 262_145, 3_000_000])
    func file(count: Int) async throws {
        try await Scratch.with { scratch in
            let url = try scratch.file("up.bin", pattern(count))
            let body = UploadBody.file(url)
            #expect(body.countOfBytesExpectedToSend() == Int64(count))
            // Twice: that is what repeatable means.
            for _ in 0..<2 {
                let source = try #require(try body.open())
                #expect(source.length == Int64(count))
                let outcome = try await Pulled.all(of: source.source)
                #expect(outcome.bytes == pattern(count))
                #expect(outcome.longest <= UploadFile.pieceSize)
                #expect(source.failure == nil)
            }
        }
    }

    @Test("is no file that cannot be read: the error says why")
    func unreadableFiles() async throws {
        try await Scratch.with { scratch in
            let pipe = scratch.url.appendingPathComponent("pipe")
            #expect(unsafe mkfifo(pipe.path, 0o600) == 0)
            let cases: [(URL, URLError.Code)] = [
                (scratch.url.appendingPathComponent("missing"), .fileDoesNotExist),
                (scratch.url, .fileIsDirectory),
                (pipe, .cannotOpenFile),
                (URL(string: "http://example.com/x") ?? scratch.url, .unsupportedURL),
            ]
            for (url, code) in cases {
                let error = #expect(throws: URLError.self) { try UploadBody.file(url).open() }
                #expect(error?.code == code)
            }
            #expect(UploadBody.file(cases[0].0).countOfBytesExpectedToSend() == -1)
        }
    }

    @Test(
        "fails where its file changes its length meanwhile, and does not hang",
        arguments: [
            // Shorter, by some and to nothing; longer.
            400_000, 0, 1_000_001,
        ])
    func changingFile(length: Int) async throws {
        try await Scratch.with { scratch in
            let url = try scratch.file("up.bin", pattern(1_000_000))
            let source = try #require(try UploadBody.file(url).open())
            var isFirst = true
            let outcome = try await Pulled.all(of: source.source) {
                if isFirst { #expect(unsafe truncate(url.path, off_t(length)) == 0) }
                isFirst = false
            }
            #expect(outcome.failure != nil)
            // The end is never announced: a server cannot take the part for the whole.
            #expect(outcome.bytes.count < 1_000_000)
            #expect(source.failure?.code == .requestBodyStreamExhausted)
        }
    }

    @Test("is a stream, open already or not, read once", arguments: [true, false])
    func stream(isOpen: Bool) async throws {
        let stream = InputStream(data: Data(pattern(200_000)))
        if isOpen { stream.open() }
        let body = UploadBody.stream(stream)
        #expect(!body.isRepeatable)
        #expect(body.countOfBytesExpectedToSend() == -1)
        #expect(body.countOfBytesExpectedToSend(announced: 200_000) == 200_000)
        let source = try #require(try body.open(announced: 200_000))
        #expect(source.length == 200_000)
        let outcome = try await Pulled.all(of: source.source)
        #expect(outcome.bytes == pattern(200_000))
        #expect(outcome.longest <= UploadStream.pieceSize)
        #expect(outcome.failure == nil)
    }

    @Test(
        "is a stream that says nonsense: the source fails, nothing traps",
        arguments: [
            -1, -5, UploadStream.pieceSize + 1, Int.max, Int.min,
        ])
    func lyingStream(answer: Int) async throws {
        let source = try #require(try UploadBody.stream(ScriptedStream([answer])).open())
        #expect(source.length == nil)
        let outcome = try await Pulled.all(of: source.source)
        #expect(outcome.failure != nil)
        #expect(source.failure?.code == .requestBodyStreamExhausted)
    }

    @Test("is asked of a stream only while it is wanted, and the stream is closed when it is not")
    func demand() async throws {
        let stream = ScriptedStream([3, 3, 3])
        let source = try #require(try UploadBody.stream(stream).open()).source
        let wakes = Event(0)
        source.attach { wakes.change { $0 += 1 } }
        #expect(stream.reads.value == 0)
        guard case .pending = source.next() else {
            Issue.record("a stream's bytes are there before they were asked for")
            return
        }
        try await wakes.wait(for: "the first bytes") { $0 == 1 }
        #expect(stream.reads.value == 1)
        guard case .piece = source.next() else {
            Issue.record("no piece")
            return
        }
        source.cancel()
        source.cancel()
        try await stream.isClosed.wait(for: "the stream to be closed") { $0 }
        #expect(stream.reads.value == 1)
    }

    @Test("of a stream that blocks keeps no other stream and no file waiting")
    func blockingStream() async throws {
        let gate = DispatchSemaphore(value: 0)
        let blocked = try (0..<8).map { _ in
            try #require(try UploadBody.stream(ScriptedStream([1], before: gate)).open()).source
        }
        let wakes = Event(0)
        for source in blocked {
            source.attach { wakes.change { $0 += 1 } }
            _ = source.next()
        }
        try await Scratch.with { scratch in
            let url = try scratch.file("up.bin", pattern(1000))
            let file = try #require(try UploadBody.file(url).open()).source
            #expect(try await Pulled.all(of: file).bytes.count == 1000)
            let other = try #require(
                try UploadBody.stream(InputStream(data: Data(pattern(10)))).open())
            #expect(try await Pulled.all(of: other.source).bytes == pattern(10))
        }
        #expect(wakes.value == 0)
        for _ in blocked { gate.signal() }
        try await wakes.wait(for: "all of them") { $0 == 8 }
    }

    @Test("is missing where the delegate gave none")
    func noStream() throws {
        let none = try UploadBody.none.open()
        #expect(none == nil)
        let error = #expect(throws: URLError.self) { try UploadBody.streamed.open() }
        #expect(error?.code == .requestBodyStreamExhausted)
    }

    @Test(
        "has a type: of the file's name, a form for a POST, else none (§3.3)",
        arguments: [
            (UploadBody.data(Data([1])), "POST", "application/x-www-form-urlencoded"),
            (.data(Data([1])), "PUT", nil),
            (.stream(InputStream(data: Data())), "POST", "application/x-www-form-urlencoded"),
            (.streamed, "PUT", nil),
            (.none, "POST", nil),
            (.file(URL(fileURLWithPath: "/tmp/a.JSON")), "POST", "application/json"),
            (.file(URL(fileURLWithPath: "/tmp/a.png")), "PUT", "image/png"),
            (.file(URL(fileURLWithPath: "/tmp/a")), "PUT", "application/octet-stream"),
        ] as [(UploadBody, String, String?)])
    func contentType(body: UploadBody, method: String, expected: String?) {
        #expect(body.contentType(method: method) == expected)
    }

    @Test(
        "of a stream has the length that the request's own Content-Length says",
        arguments: [
            ("12", 12), (" 0 ", 0), ("-1", nil), ("", nil), ("1e3", nil),
            ("99999999999999999999", nil), ("+5", nil), (nil, nil),
        ] as [(String?, Int64?)])
    func announced(value: String?, length: Int64?) {
        #expect(UploadBody.announcedLength(value) == length)
    }
}

/// A stream that answers each read as told, then ends.
final class ScriptedStream: InputStream {
    let reads = LarderProcess.Event(0)
    let isClosed = LarderProcess.Event(false)
    private let answers: [Int]
    private let gate: DispatchSemaphore?

    init(_ answers: [Int], before gate: DispatchSemaphore? = nil) {
        self.answers = answers
        self.gate = gate
        super.init(data: Data())
    }

    override func open() {}
    override func close() { self.isClosed.change { $0 = true } }
    override var hasBytesAvailable: Bool { true }
    override var streamStatus: Stream.Status { .open }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        self.gate?.wait()
        let index = self.reads.change { count in
            defer { count += 1 }
            return count
        }
        return index < self.answers.count ? self.answers[index] : 0
    }
}
