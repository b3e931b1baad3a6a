import Foundation
import Glibc
import Testing

@testable import URLLoading

@Suite("The blob by which an upload is gone on with (§3.3)")
struct UploadBlobTests {
    /// What anybody could write, with the right checksum.
    struct Forged: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var version: UInt8 = 1
        var target = "http://a.test/up"
        var method = "POST"
        var fields = [ResumeData.Field(name: "X", value: "y")]
        /// nil: as many as there are.
        var fieldCount: UInt64?
        var resource = "http://a.test/k"
        var kind: UInt64 = 1
        var path = "/tmp/f"
        var size: UInt64 = 10
        /// What stands behind it.
        var more: [UInt64] = []

        init(_ name: String, _ change: (inout Forged) -> Void = { _ in }) {
            self.testDescription = name
            change(&self)
        }

        var blob: Data {
            var writer = SealedForm.Writer(
                SealedForm(mark: "URLLoading upload", version: self.version))
            writer.append(self.target)
            writer.append(self.method)
            if let count = self.fieldCount {
                writer.append(count)
            } else {
                writer.append(self.fields)
            }
            writer.append(self.resource)
            writer.append(self.kind)
            switch self.kind {
            case 0: writer.append(Data([1, 2, 3]))
            case 1:
                writer.append(self.path)
                writer.append(self.size)
                writer.append(UInt64(7))
            default: break
            }
            for number in self.more { writer.append(number) }
            return writer.sealed()
        }
    }

    @Test(
        "is taken for what such an upload could have left",
        arguments: [
            Forged("a file"), Forged("data") { $0.kind = 0 }, Forged("a stream") { $0.kind = 2 },
            Forged("an empty file") { $0.size = 0 }, Forged("no fields") { $0.fields = [] },
            Forged("TLS") {
                $0.target = "HTTPS://a.test/up"
                $0.resource = "https://b.test/k"
            },
        ])
    func sound(_ forged: Forged) throws {
        let data = try #require(UploadResumeData(decoding: forged.blob))
        #expect(data.target.absoluteString == forged.target)
        #expect(data.resource.absoluteString == forged.resource)
        #expect(data.fields.map(\.name) == forged.fields.map(\.name))
    }

    @Test(
        "is refused where no upload could have left it, though its checksum is right",
        arguments: [
            Forged("another version") { $0.version = 2 },
            Forged("more behind it") { $0.more = [0] },
            Forged("content of another kind") { $0.kind = 3 },
            Forged("a size below zero") { $0.size = .max },
            Forged("the smallest size") { $0.size = 1 << 63 },
            Forged("a path that is not whole") { $0.path = "f" },
            Forged("no path") { $0.path = "" },
            Forged("a path with NUL") { $0.path = "/tmp/f\0g" },
            Forged("a file as target") { $0.target = "file:///etc/passwd" },
            Forged("a target without host") { $0.target = "http:///up" },
            Forged("no target") { $0.target = "" },
            Forged("another scheme") { $0.target = "ftp://a.test/up" },
            Forged("a resource of another scheme") { $0.resource = "ftp://a.test/k" },
            Forged("a file as resource") { $0.resource = "file:///etc/passwd" },
            Forged("a resource without host") { $0.resource = "https:///k" },
            Forged("a relative resource") { $0.resource = "/k" },
            Forged("no method") { $0.method = "" },
            Forged("a method of two words") { $0.method = "GET /" },
            Forged("a method with a line end") { $0.method = "A\r\nB" },
            Forged("a field without name") { $0.fields = [.init(name: "", value: "y")] },
            Forged("a name with a colon") { $0.fields = [.init(name: "A:", value: "y")] },
            Forged("a value with a line end") {
                $0.fields = [.init(name: "A", value: "y\r\nB: z")]
            },
            Forged("a value with NUL") { $0.fields = [.init(name: "A", value: "\0")] },
            Forged("more fields than bytes") { $0.fieldCount = .max },
            Forged("more fields than there are") { $0.fieldCount = 3 },
        ])
    func refused(_ forged: Forged) {
        #expect(UploadResumeData(decoding: forged.blob) == nil)
    }

    @Test("keeps of a request what the requests that go on may have, and no secret")
    func kept() throws {
        var request = URLRequest(url: try URL.of("https://me:password@a.test/up"))
        request.httpMethod = "PUT"
        for name in [
            "Authorization", "Proxy-Authorization", "Cookie", "cookie2", "Content-Length", "Host",
            "Content-Encoding", "Content-Range", "Transfer-Encoding", "Expect", "If-Match",
            "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Upload-Complete",
            "UPLOAD-OFFSET", "Upload-Draft-Interop-Version", "X-Own", "Content-Type",
        ] { request.setValue("secret", forHTTPHeaderField: name) }
        request.setValue("1", forHTTPHeaderField: "X-Own")
        request.setValue("2", forHTTPHeaderField: "Content-Type")
        let data = try #require(
            UploadResumeData(request, sending: .streamed, kept: try URL.of("https://a.test/k")))
        #expect(data.fields.map(\.name) == ["Content-Type", "X-Own"])
        #expect(data.method == "PUT")
        let blob = data.encoded()
        #expect(blob.range(of: Data("secret".utf8)) == nil)
        #expect(blob.range(of: Data("password".utf8)) == nil)
        let again = try #require(UploadResumeData(decoding: blob)?.request)
        #expect(again.url?.absoluteString == "https://a.test/up")
        #expect(again.allHTTPHeaderFields == ["Content-Type": "2", "X-Own": "1"])
    }

    @Test("is for what can be read again alone")
    func unreadable() throws {
        let url = try URL.of("http://a.test/up")
        let request = URLRequest(url: url)
        #expect(UploadResumeData(request, sending: .none, kept: url) == nil)
        let directory = URL(fileURLWithPath: NSTemporaryDirectory())
        #expect(UploadResumeData(request, sending: .file(directory), kept: url) == nil)
    }

    @Test("leads to the rest from an offset on, and to none beyond the end")
    func rests() async throws {
        try await Scratch.with { scratch in
            let content = pattern(100)
            let file = try scratch.file("f", content)
            let url = try URL.of("http://a.test/up")
            let bodies: [UploadBody] = [.data(Data(content)), .file(file)]
            for body in bodies {
                let resume = try #require(
                    UploadResumeData(URLRequest(url: url), sending: body, kept: url))
                for offset in [0, 1, 99, 100] as [Int64] {
                    switch try resume.rest(from: offset) {
                    case .data(let rest): #expect(Array(rest) == Array(content[Int(offset)...]))
                    case .file(let name, from: let start):
                        #expect(name.path == file.path && start == offset)
                    default: Issue.record("another kind of content")
                    }
                }
                for offset in [101, 1_000, .max] as [Int64] {
                    let error = #expect(throws: URLError.self) {
                        _ = try resume.rest(from: offset)
                    }
                    #expect(error?.code == .requestBodyStreamExhausted)
                }
            }
        }
    }

    @Test("leads to no file that is another by now", arguments: [99, 100, 101])
    func changed(_ length: Int) async throws {
        try await Scratch.with { scratch in
            let file = try scratch.file("f", pattern(100))
            let url = try URL.of("http://a.test/up")
            let resume = try #require(
                UploadResumeData(URLRequest(url: url), sending: .file(file), kept: url))
            // Either says it: another length at the same time, the same length at another.
            let before = try #require(FileStatus(atPath: file.path)).modified
            try Data(repeating: 1, count: length).write(to: file)
            let seconds = Int(before / 1_000_000_000) + (length == 100 ? 1 : 0)
            let time = timespec(tv_sec: seconds, tv_nsec: Int(before % 1_000_000_000))
            var times = [time, time]
            #expect(unsafe utimensat(AT_FDCWD, file.path, &times, 0) == 0)
            let error = #expect(throws: URLError.self) { _ = try resume.rest(from: 10) }
            #expect(error?.code == .requestBodyStreamExhausted)
            try FileManager.default.removeItem(at: file)
            let gone = #expect(throws: URLError.self) { _ = try resume.rest(from: 10) }
            #expect(gone?.code == .fileDoesNotExist)
        }
    }
}
