import Foundation
import Glibc
import LarderHTTP
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("file: URLs (§10)")
struct FileLoadTests {
    /// A directory that is there as long as the test runs.
    private final class Place: Sendable {
        let url: URL

        init() throws {
            self.url = FileManager.default.temporaryDirectory
                .appendingPathComponent("file-loads-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: self.url, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(at: self.url) }

        func file(_ name: String, _ data: Data) throws -> URL {
            let url = self.url.appendingPathComponent(name)
            try data.write(to: url)
            return url
        }
    }

    private static func bytes(_ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) })
    }

    @Test(
        "are read whole, with size and media type",
        arguments: [0, 1, 5000, 128 << 10, (128 << 10) + 1, 3_000_001])
    func whole(size: Int) async throws {
        let place = try Place()
        let data = Self.bytes(size)
        let url = try place.file("a b.JSON", data)
        let recorder = LoadRecorder()
        _ = FileLoader().load(.of(URLRequest(url: url)), observer: recorder)
        let (pieces, failure) = try await recorder.body()
        #expect(failure == nil && pieces.reduce(Data(), +) == data)
        #expect(pieces.allSatisfy { !$0.isEmpty && $0.count <= 128 << 10 })
        #expect(recorder.response?.expectedContentLength == Int64(size))
        #expect(recorder.response?.mimeType == "application/json")
        #expect(recorder.response?.suggestedFilename == "a b.JSON")
        #expect(!(recorder.response is HTTPURLResponse) && recorder.response?.url == url)
        try await recorder.hears("measured")
        #expect(recorder.said.value == ["answered", "measured"])
        #expect(recorder.transaction.withLock { $0?.bodyBytes } == Int64(size))
    }

    @Test("have no body for HEAD, and no other method")
    func methods() async throws {
        let place = try Place()
        var request = URLRequest(url: try place.file("a", Self.bytes(10)))
        request.httpMethod = "HEAD"
        let head = LoadRecorder()
        _ = FileLoader().load(.of(request), observer: head)
        #expect(try await head.body().pieces.isEmpty)
        #expect(head.response?.expectedContentLength == 10)
        #expect(head.response?.mimeType == "application/octet-stream")
        request.httpMethod = "PUT"
        let put = LoadRecorder()
        _ = FileLoader().load(.of(request), observer: put)
        try await put.hears("measured")
        #expect(put.code == .unsupportedURL && put.said.value == ["failed", "measured"])
    }

    @Test("fail with the codes of §13")
    func failures() async throws {
        let place = try Place()
        let file = try place.file("f", Data())
        let secret = try place.file("secret", Data())
        #expect(unsafe chmod(secret.path, 0) == 0)
        let fifo = place.url.appendingPathComponent("fifo")
        #expect(unsafe mkfifo(fifo.path, 0o600) == 0)
        var cases: [(URL, URLError.Code)] = [
            (place.url.appendingPathComponent("missing"), .fileDoesNotExist),
            (file.appendingPathComponent("below"), .fileDoesNotExist),
            (place.url, .fileIsDirectory), (fifo, .cannotOpenFile),
            (try #require(URL(string: "file:///a%00b")), .fileDoesNotExist),
            (try #require(URL(string: "file://elsewhere\(file.path)")), .fileDoesNotExist),
        ]
        // Nothing is forbidden to the superuser.
        if geteuid() != 0 { cases.append((secret, .noPermissionsToReadFile)) }
        for (url, code) in cases {
            let recorder = LoadRecorder()
            _ = FileLoader().load(.of(URLRequest(url: url)), observer: recorder)
            try await recorder.hears("measured")
            #expect(recorder.code == code, "\(url.lastPathComponent)")
        }
    }

    @Test("stop where they are cancelled, at whatever time", arguments: 0..<20)
    func cancelling(round: Int) async throws {
        let place = try Place()
        let url = try place.file("a", Self.bytes(1_000_000))
        let recorder = LoadRecorder()
        let load = FileLoader().load(.of(URLRequest(url: url)), observer: recorder)
        if round % 2 == 0 { try await recorder.hears("answered") }
        if round % 4 == 0 { _ = recorder.answer.withLock { $0?.body.next() } }
        load.cancel()
        load.cancel()
        try await recorder.hears("measured")
        if let body = recorder.answer.withLock({ $0?.body }) {
            guard case .failed = body.next() else {
                Issue.record("a cancelled body goes on")
                return
            }
        }
        #expect(recorder.said.value.filter { $0 == "measured" }.count == 1)
    }

    @Test("fail where they become shorter while they are read")
    func shrinking() async throws {
        let place = try Place()
        let url = try place.file("a", Self.bytes(1_000_000))
        let recorder = LoadRecorder()
        _ = FileLoader().load(.of(URLRequest(url: url)), observer: recorder)
        try await recorder.hears("answered")
        #expect(unsafe truncate(url.path, 10) == 0)
        let (pieces, failure) = try await recorder.body()
        #expect(failure != nil && pieces.reduce(0) { $0 + $1.count } < 1_000_000)
    }

    @Test("give as much as was announced where they grow meanwhile")
    func growing() async throws {
        let place = try Place()
        let data = Self.bytes(300_000)
        let url = try place.file("a", data)
        let recorder = LoadRecorder()
        _ = FileLoader().load(.of(URLRequest(url: url)), observer: recorder)
        try await recorder.hears("answered")
        let handle = try FileHandle(forWritingTo: url)
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(repeating: 9, count: 200_000))
        try handle.close()
        #expect(try await recorder.body().pieces.reduce(Data(), +) == data)
    }

    @Test("have media types of the system's table where they are not common")
    func mediaTypes() {
        let table = FileMediaType.parse("# text/no no\ntext/a\ta  B\n\nbroken\r\ntext/c a c")
        #expect(table == ["a": "text/a", "b": "text/a", "c": "text/c"])
        #expect(
            FileMediaType.of("PNG") == "image/png" && FileMediaType.of("") == FileMediaType.unknown)
    }
}
