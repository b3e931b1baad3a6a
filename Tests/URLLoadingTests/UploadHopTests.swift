import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Uploads of which a server says something on their way, and that end.
@Suite("What a server says of keeping an upload, and what it counts for (§3.3)")
struct UploadHopTests {
    private static let kept = "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /kept\r\n\r\n"

    /// What the task completes with.
    private static func upload(
        _ request: URLRequest, _ content: [UInt8] = pattern(100)
    ) async throws -> URLError? {
        let session = URLSession.plain()
        defer { session.invalidateAndCancel() }
        return await withCheckedContinuation { continuation in
            session.uploadTask(with: request, from: Data(content)) { _, _, error in
                continuation.resume(returning: error as? URLError)
            }.resume()
        }
    }

    private static func post(_ origin: ScriptedOrigin, _ path: String) throws -> URLRequest {
        var request = URLRequest(url: try URL.of(origin.url(path)))
        request.httpMethod = "POST"
        return request
    }

    /// A server that keeps what comes to `/up`, goes on to `/other` from `/hop`, and answers nothing.
    private static func origin() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            while true {
                var head = try await connection.requestHead()
                let target = head.line.split(separator: " ")[1]
                if target != "/other" { try await connection.send(Self.kept) }
                try await connection.wire.content(of: &head, to: nil)
                guard target == "/hop" else { return }
                try await connection.send(
                    response("307 Temporary Redirect", "Location: /other", cache: nil))
            }
        }
    }

    @Test("know where the server keeps them by a 104, and by no place that is protected less")
    func places() throws {
        for (url, status, location, expected) in [
            ("https://a.test/x/up", 104, "kept/1", "https://a.test/x/kept/1"),
            ("https://a.test/up", 104, "//b.test/k", "https://b.test/k"),
            ("https://a.test/up", 104, "https://u:p@b.test/k", "https://b.test/k"),
            ("http://a.test/up", 104, "https://b.test/k", "https://b.test/k"),
            ("https://a.test/up", 104, "http://a.test/k", nil),
            ("https://a.test/up", 104, "file:///etc/passwd", nil),
            ("https://a.test/up", 103, "/k", nil), ("https://a.test/up", 104, nil, nil),
        ] as [(String, Int, String?, String?)] {
            let url = try URL.of(url)
            let response = try #require(
                HTTPURLResponse(
                    url: url, statusCode: status, httpVersion: nil,
                    headerFields: location.map { ["Location": $0] }))
            let resource = ResumableUpload.resource(by: response, to: url)
            #expect(resource?.absoluteString == expected)
        }
    }

    @Test("are not offered where a program speaks the draft itself, nor where nothing is sent")
    func offers() throws {
        var request = URLRequest(url: try URL.of("http://a.test/up"))
        request.httpMethod = "POST"
        request.setValue("yes", forHTTPHeaderField: "X-Own")
        let purpose = UploadPurpose(DelegatePurpose(), sending: .data(Data([1])))
        #expect(purpose.asking(request).value(forHTTPHeaderField: "Upload-Complete") == "?1")
        for name in ["Upload-Complete", "Upload-Offset", "upload-draft-interop-version"] {
            var own = request
            own.setValue("0", forHTTPHeaderField: name)
            #expect(purpose.asking(own).allHTTPHeaderFields == own.allHTTPHeaderFields)
        }
        var get = request
        get.httpMethod = "GET"
        #expect(purpose.asking(get).allHTTPHeaderFields == get.allHTTPHeaderFields)
        let empty = UploadPurpose(DelegatePurpose(), sending: .none).asking(request)
        #expect(empty.allHTTPHeaderFields == request.allHTTPHeaderFields)
    }

    @Test("a place counts for the request that it was said to, and not for what follows that")
    func hops() async throws {
        let origin = try await Self.origin()
        let kept = try await Self.upload(Self.post(origin, "/up"))
        #expect(kept?.code == .networkConnectionLost)
        let data = try #require(kept?.uploadTaskResumeData)
        #expect(
            UploadResumeData(decoding: data)?.resource.absoluteString == origin.url("/kept"))
        let hopped = try await Self.upload(Self.post(origin, "/hop"))
        #expect(hopped?.code == .networkConnectionLost)
        #expect(hopped?.uploadTaskResumeData == nil)
        await origin.stop()
    }

    @Test("a place counts for nothing where the program speaks the draft itself")
    func own() async throws {
        let origin = try await Self.origin()
        var request = try Self.post(origin, "/up")
        request.setValue("?0", forHTTPHeaderField: "Upload-Complete")
        let error = try await Self.upload(request)
        #expect(error?.code == .networkConnectionLost)
        #expect(error?.uploadTaskResumeData == nil)
        await origin.stop()
    }

    @Test("no resume data is given for a failure that is not the connection's")
    func failures() async throws {
        // The response is none that could be understood.
        let origin = try await ScriptedOrigin.start { connection in
            var head = try await connection.requestHead()
            try await connection.send(Self.kept)
            try await connection.wire.content(of: &head, to: nil)
            try await connection.send(
                "SSH-2.0-none\r\n\r\n")
        }
        let error = try await Self.upload(Self.post(origin, "/up"))
        #expect(error != nil && error?.code != .networkConnectionLost)
        #expect(error?.uploadTaskResumeData == nil)
        await origin.stop()
    }

    @Test("what goes on and breaks off again is gone on with by the same data")
    func again() async throws {
        let content = pattern(1_000)
        let kept = Event<[UInt8]>([])
        let origin = try await ScriptedOrigin.start { connection in
            while true {
                var head = try await connection.requestHead()
                if head.line.hasPrefix("HEAD") {
                    try await connection.send(
                        "HTTP/1.1 204 No Content\r\nUpload-Offset: \(kept.value.count)\r\n\r\n")
                    continue
                }
                try await connection.wire.content(of: &head, to: nil)
                let rest = head.body
                let offset = head["Upload-Offset"].flatMap { Int($0) } ?? 0
                // Of the first two it keeps a part, and says nothing.
                let isCut = offset < 600
                let part = rest.prefix(isCut ? 300 : rest.count)
                kept.change { $0 = Array($0.prefix(offset)) + part }
                if isCut { return }
                try await connection.send(response("201 Created", body: "done", cache: nil))
            }
        }
        var data = try #require(
            UploadResumeData(
                Self.post(origin, "/up"), sending: .data(Data(content)),
                kept: try URL.of(origin.url("/kept")))
        ).encoded()
        for number in 0..<3 {
            let session = URLSession.plain()
            let (answer, error) = await withCheckedContinuation {
                (continuation: CheckedContinuation<(Data?, URLError?), Never>) in
                session.uploadTask(withResumeData: data) { answer, _, error in
                    continuation.resume(returning: (answer, error as? URLError))
                }.resume()
            }
            session.invalidateAndCancel()
            guard number < 2 else {
                #expect(error == nil && answer == Data("done".utf8))
                continue
            }
            #expect(error?.code == .networkConnectionLost)
            let next = try #require(error?.uploadTaskResumeData)
            #expect(next == data)
            data = next
        }
        #expect(kept.value == content)
        await origin.stop()
    }
}
