import Foundation
import LarderHTTP
import SeededNumbers
import Testing

@testable import URLLoading

@Suite("Resume data (§3.5)")
struct BodiesResumeDataTests {
    static let now = Timestamp(seconds: 1_700_000_000)

    static func resume(
        entityTag: String? = "\"v1\"", lastModified: String? = nil, length: Int64 = 100,
        total: Int64 = 1000
    ) throws -> ResumeData {
        ResumeData(
            url: try #require(URL(string: "http://example.com/file?q=1")),
            fields: [.init(name: "X-A", value: "b")],
            validators: .init(entityTag: entityTag, lastModified: lastModified), total: total,
            part: DownloadPart(
                path: "/tmp/CFNetworkDownload_abcDE1.tmp", length: length, checksum: 77))
    }

    @Test("comes back as it was")
    func roundTrip() throws {
        let date = "Tue, 14 Nov 2023 22:00:00 GMT"
        for resume in [
            try Self.resume(), try Self.resume(entityTag: nil, lastModified: date, total: -1),
            try Self.resume(lastModified: date),
        ] {
            #expect(ResumeData(decoding: resume.encoded()) == resume)
            // A slice of something longer, too.
            let slice = (Data([1, 2]) + resume.encoded())[2...]
            #expect(ResumeData(decoding: slice) == resume)
        }
    }

    @Test("that is foreign, cut off or damaged is refused")
    func hostile() throws {
        let blob = try Self.resume().encoded()
        for count in 0..<blob.count { #expect(ResumeData(decoding: blob.prefix(count)) == nil) }
        for index in blob.indices {
            for bit in 0..<8 {
                var damaged = blob
                damaged[index] ^= 1 << UInt8(bit)
                #expect(ResumeData(decoding: damaged) == nil)
            }
        }
        #expect(ResumeData(decoding: blob + [0]) == nil)
        #expect(ResumeData(decoding: Data("<?xml version=\"1.0\"?><plist/>".utf8)) == nil)
        #expect(ResumeData(decoding: Data(repeating: 0xFF, count: 4096)) == nil)
        #expect(ResumeData(decoding: Data(count: 2 << 20)) == nil)
        var numbers = SplitMix64(seed: 5)
        for _ in 0..<500 {
            let count = Int.random(in: 0...300, using: &numbers)
            let noise = (0..<count).map { _ in UInt8.random(in: 0...255, using: &numbers) }
            #expect(ResumeData(decoding: Data(noise)) == nil)
            #expect(ResumeData(decoding: blob.prefix(18) + noise) == nil)
        }
    }

    @Test("that is well sealed but says what no download could leave is refused")
    func forged() throws {
        func refuses(_ change: (inout ResumeData) -> Void) throws -> Bool {
            var resume = try Self.resume()
            change(&resume)
            return ResumeData(decoding: resume.encoded()) == nil
        }
        let file = try #require(URL(string: "file:///etc/passwd"))
        let noHost = try #require(URL(string: "http:relative"))
        #expect(try refuses { $0.url = file })
        #expect(try refuses { $0.url = noHost })
        #expect(try refuses { $0.part.length = 0 })
        #expect(try refuses { $0.part.length = -1 })
        #expect(try refuses { $0.part.length = 1001 })
        #expect(try refuses { $0.total = -2 })
        #expect(try refuses { $0.validators = .init() })
        #expect(try refuses { $0.validators.entityTag = "\"a\"\r\nX: y" })
        #expect(try refuses { $0.fields = [.init(name: "X-A", value: "b\r\nInjected: 1")] })
        #expect(try refuses { $0.fields = [.init(name: "", value: "b")] })
        #expect(try refuses { $0.fields = [.init(name: "X A", value: "b")] })
        for path in [
            "", "/etc/passwd", "CFNetworkDownload_abcDE1.tmp", "/tmp/../CFNetworkDownload_abcDE1.tmp",
            "/tmp/CFNetworkDownload_abcDE1.tmp/x", "/tmp/CFNetworkDownload_.tmp",
            "/tmp/CFNetworkDownload_abcDE1.tmp\u{0}",
        ] {
            #expect(try refuses { $0.part.path = path }, "\(path)")
        }
    }

    @Test("holds no secret of the request")
    func secrets() throws {
        var request = URLRequest(
            url: try #require(URL(string: "https://user:s3cret@example.com/file")))
        request.allHTTPHeaderFields = [
            "Authorization": "Basic s3cret", "Cookie": "id=s3cret", "Proxy-Authorization": "s3cret",
            "X-Kept": "yes", "If-None-Match": "\"x\"",
        ]
        let head = ResponseHead(
            status: .ok, fields: ["ETag": "\"v\"", "Accept-Ranges": "bytes"])
        let part = DownloadPart(
            path: "/tmp/CFNetworkDownload_abcDE1.tmp", length: 10, checksum: 1)
        let resume = try #require(
            ResumeData(request, head: head, part: part, total: 100, now: Self.now))
        #expect(resume.fields == [.init(name: "X-Kept", value: "yes")])
        #expect(resume.url.absoluteString == "https://example.com/file")
        #expect(resume.encoded().range(of: Data("s3cret".utf8)) == nil)
        #expect(ResumeData(decoding: resume.encoded()) == resume)
    }

    @Test("asks for the rest, under a condition and uncoded (RFC 9110 §13.1.5)")
    func requests() throws {
        let resume = try Self.resume(lastModified: "Tue, 14 Nov 2023 22:00:00 GMT")
        #expect(resume.request.allHTTPHeaderFields == ["X-A": "b"])
        let fields = resume.asking(resume.request).allHTTPHeaderFields
        #expect(
            fields == [
                "X-A": "b", "Range": "bytes=100-", "If-Range": "\"v1\"",
                "Accept-Encoding": "identity",
            ])
        let dated = try Self.resume(entityTag: nil, lastModified: "Tue, 14 Nov 2023 22:00:00 GMT")
        #expect(
            dated.asking(dated.request).allHTTPHeaderFields?["If-Range"]
                == "Tue, 14 Nov 2023 22:00:00 GMT")
    }

    struct Judged: Sendable {
        var method = "GET"
        var url = "http://example.com/"
        var own: [String: String] = [:]
        var status: UInt16 = 200
        var fields: Fields
        var expected: Resumability.Obstacle?
    }

    @Test("is there only where the rest can be asked for", arguments: [
        Judged(fields: ["ETag": "\"v\"", "Accept-Ranges": "bytes"]),
        Judged(fields: ["ETag": "\"v\"", "Accept-Ranges": "none"], expected: .noRanges),
        Judged(fields: ["ETag": "\"v\""], expected: .noRanges),
        Judged(status: 206, fields: ["ETag": "\"v\""]),
        Judged(fields: ["ETag": "W/\"v\"", "Accept-Ranges": "bytes"], expected: .noValidator),
        Judged(fields: ["Accept-Ranges": "bytes"], expected: .noValidator),
        Judged(fields: ["ETag": "v", "Accept-Ranges": "bytes"], expected: .noValidator),
        Judged(fields: [
            "Last-Modified": "Tue, 14 Nov 2023 22:00:00 GMT", "Accept-Ranges": "bytes",
        ]),
        Judged(
            fields: [
                "Last-Modified": "Tue, 14 Nov 2023 22:00:00 GMT", "Accept-Ranges": "bytes",
                "Date": "Tue, 14 Nov 2023 22:00:00 GMT",
            ], expected: .noValidator),
        Judged(fields: [
            "Last-Modified": "Tue, 14 Nov 2023 22:00:00 GMT", "Accept-Ranges": "bytes",
            "Date": "Tue, 14 Nov 2023 22:00:01 GMT",
        ]),
        Judged(
            fields: ["Last-Modified": "yesterday", "Accept-Ranges": "bytes"],
            expected: .noValidator),
        Judged(
            fields: ["ETag": "\"v\"", "Accept-Ranges": "bytes", "Content-Encoding": "gzip"],
            expected: .contentCoding),
        Judged(fields: [
            "ETag": "\"v\"", "Accept-Ranges": "bytes", "Content-Encoding": "identity",
        ]),
        Judged(
            method: "POST", fields: ["ETag": "\"v\"", "Accept-Ranges": "bytes"],
            expected: .method),
        Judged(
            url: "ftp://example.com/", fields: ["ETag": "\"v\"", "Accept-Ranges": "bytes"],
            expected: .scheme),
        Judged(
            own: ["range": "bytes=5-"], status: 206, fields: ["ETag": "\"v\""],
            expected: .ownRange),
        Judged(
            status: 404, fields: ["ETag": "\"v\"", "Accept-Ranges": "bytes"], expected: .status),
    ])
    func resumability(_ c: Judged) throws {
        var request = URLRequest(url: try #require(URL(string: c.url)))
        request.httpMethod = c.method
        request.allHTTPHeaderFields = c.own
        let head = ResponseHead(status: StatusCode(c.status), fields: c.fields)
        switch Resumability.judge(request, head, now: Self.now) {
        case .success: #expect(c.expected == nil)
        case .failure(let obstacle): #expect(c.expected == obstacle)
        }
    }

    struct Answer: Sendable {
        var entityTag: String? = "\"v1\""
        var lastModified: String?
        var total: Int64 = 1000
        var status: UInt16 = 206
        var fields: Fields
        var expected: ResumeStep
    }

    @Test("leads to the rest, to a new begin or to another question", arguments: [
        Answer(fields: ["Content-Range": "bytes 100-999/1000"], expected: .goOn(total: 1000)),
        Answer(fields: ["Content-Range": "bytes 100-999/*"], expected: .goOn(total: 1000)),
        Answer(
            total: -1, fields: ["Content-Range": "bytes 100-999/1000"],
            expected: .goOn(total: 1000)),
        Answer(total: -1, fields: ["Content-Range": "bytes 100-999/*"], expected: .goOn(total: -1)),
        Answer(
            fields: ["Content-Range": "bytes 100-999/1000", "ETag": "\"v1\""],
            expected: .goOn(total: 1000)),
        Answer(
            fields: ["Content-Range": "bytes 100-999/1000", "ETag": "\"v2\""],
            expected: .askAgain),
        Answer(
            fields: ["Content-Range": "bytes 100-999/1000", "ETag": "W/\"v1\""],
            expected: .askAgain),
        Answer(
            entityTag: nil, lastModified: "A",
            fields: ["Content-Range": "bytes 100-999/1000", "Last-Modified": "B"],
            expected: .askAgain),
        Answer(
            entityTag: nil, lastModified: "A",
            fields: ["Content-Range": "bytes 100-999/1000", "Last-Modified": "A"],
            expected: .goOn(total: 1000)),
        Answer(fields: ["Content-Range": "bytes 99-999/1000"], expected: .askAgain),
        Answer(fields: ["Content-Range": "bytes 101-999/1000"], expected: .askAgain),
        Answer(fields: ["Content-Range": "bytes 100-998/1000"], expected: .askAgain),
        Answer(fields: ["Content-Range": "bytes 100-1000/1001"], expected: .askAgain),
        Answer(fields: ["Content-Range": "bytes */1000"], expected: .askAgain),
        Answer(fields: ["Content-Range": "lines 100-999/1000"], expected: .askAgain),
        Answer(
            fields: ["Content-Range": "bytes 100-18446744073709551615/*"], expected: .askAgain),
        Answer(
            total: -1, fields: ["Content-Range": "bytes 100-200/18446744073709551615"],
            expected: .askAgain),
        Answer(fields: [:], expected: .askAgain),
        Answer(
            fields: [
                "Content-Range": "bytes 100-999/1000", "Content-Range": "bytes 0-9/1000",
            ], expected: .askAgain),
        Answer(
            fields: ["Content-Range": "bytes 100-999/1000", "Content-Encoding": "gzip"],
            expected: .askAgain),
        Answer(fields: ["Content-Type": "multipart/byteranges"], expected: .askAgain),
        Answer(status: 200, fields: [:], expected: .restart),
        Answer(
            status: 200, fields: ["Content-Range": "bytes 100-999/1000"], expected: .restart),
        Answer(status: 416, fields: ["Content-Range": "bytes */1000"], expected: .askAgain),
        Answer(status: 404, fields: [:], expected: .restart),
        Answer(status: 503, fields: [:], expected: .restart),
    ])
    func decision(_ c: Answer) throws {
        let resume = try Self.resume(
            entityTag: c.entityTag, lastModified: c.lastModified, total: c.total)
        let head = ResponseHead(status: StatusCode(c.status), fields: c.fields)
        #expect(ResumeStep.decide(resume, head) == c.expected)
    }
}
