import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

extension Message {
    fileprivate var method: String { self.word(0) }
    fileprivate var target: String { self.word(1) }

    private func word(_ index: Int) -> String {
        let words = self.line.split(separator: " ")
        return index < words.count ? String(words[index]) : ""
    }
}

/// A server that keeps what comes of an upload.
private struct KeepingOrigin: Sendable {
    let origin: ScriptedOrigin
    /// What it has, over all connections.
    let kept: Event<[UInt8]>
    /// The heads of the requests.
    let heads: Event<[Message]>
    /// The first connection ends.
    let cut: Event<Bool>

    var url: URL { get throws { try URL.of(self.origin.url("/up")) } }

    /// - Parameters:
    ///   - count: how much of the first request is taken.
    ///   - answer: to the HEAD; nil: by the draft.
    ///   - patch: the status for each PATCH, the last one again.
    static func start(
        takes count: Int, answer: String? = nil, patch: [String] = ["201 Created"]
    ) async throws -> KeepingOrigin {
        let (kept, heads, cut) = (Event<[UInt8]>([]), Event<[Message]>([]), Event(false))
        let patches = Event(0)
        let origin = try await ScriptedOrigin.start { connection in
            while true {
                var head = try await connection.requestHead()
                let seen = head
                heads.change { $0.append(seen) }
                switch head.method {
                case "HEAD":
                    try await connection.send(
                        answer
                            ?? """
                            HTTP/1.1 204 No Content\r\nUpload-Offset: \(kept.value.count)\r\n\
                            Upload-Complete: ?0\r\n\r\n
                            """)
                case "PATCH":
                    try await connection.wire.content(of: &head, to: nil)
                    let number = patches.change { count in
                        defer { count += 1 }
                        return count
                    }
                    let status = patch[min(number, patch.count - 1)]
                    let rest = head.body
                    if status.hasPrefix("2") { kept.change { $0 += rest } }
                    try await connection.send(response(status, body: "done", cache: nil))
                default:
                    try await connection.send(
                        "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /kept/1\r\n\r\n")
                    let bytes = try await connection.wire.read(count)
                    kept.change { $0 += bytes }
                    try await cut.wait(for: "leave to end") { $0 }
                    return
                }
            }
        }
        return KeepingOrigin(origin: origin, kept: kept, heads: heads, cut: cut)
    }
}

/// Hears of uploads, and has the server cut the first short when that has said where it keeps it.
private final class UploadingDelegate: NSObject, URLSessionDataDelegate {
    let informed = Event<[Int]>([])
    let errors = Event<[(any Error)?]>([])
    let statuses = Event<[Int]>([])
    let offsets = Event<[Int64]>([])
    let sent = Event<[(Int64, Int64, Int64)]>([])
    private let content: [UInt8]

    init(streaming content: [UInt8] = []) {
        self.content = content
    }

    func completion(_ count: Int = 1) async throws -> URLError? {
        try await self.errors.wait(for: "the completion") { $0.count >= count }
        return self.errors.value[count - 1] as? URLError
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        self.informed.change { $0.append(response.statusCode) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        self.offsets.change { $0.append(0) }
        completionHandler(InputStream(data: Data(self.content)))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        self.offsets.change { $0.append(offset) }
        completionHandler(InputStream(data: Data(self.content.dropFirst(Int(offset)))))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        self.sent.change { $0.append((bytesSent, totalBytesSent, totalBytesExpectedToSend)) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.statuses.change { $0.append((task.response as? HTTPURLResponse)?.statusCode ?? 0) }
        self.errors.change { $0.append(error) }
    }
}

@Suite("Uploads that are gone on with (§3.3)")
struct UploadResumeTests {
    enum Kind: CaseIterable { case data, file, streamed }

    /// Begins to go on with ten bytes that the server keeps a part of.
    private static func goOn(_ session: URLSession, at server: KeepingOrigin) throws {
        let resume = try #require(
            UploadResumeData(
                Self.post(try server.url), sending: .data(Data(pattern(10))),
                kept: try URL.of(server.origin.url("/kept/1"))))
        session.uploadTask(withResumeData: resume.encoded()).resume()
    }

    private static func post(_ url: URL) -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("yes", forHTTPHeaderField: "X-Own")
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        return request
    }

    @Test(
        "send the rest when a connection broke off, whatever the content is",
        arguments: Kind.allCases)
    func broken(_ kind: Kind) async throws {
        try await Scratch.with { scratch in
            let content = pattern(300_000)
            let server = try await KeepingOrigin.start(takes: 100_000)
            let delegate = UploadingDelegate(streaming: content)
            let session = URLSession.plain(delegate)
            var request = Self.post(try server.url)
            // Not in chunks, which the server would have to take apart.
            if kind == .streamed {
                request.setValue("300000", forHTTPHeaderField: "Content-Length")
            }
            let first =
                switch kind {
                case .data: session.uploadTask(with: request, from: Data(content))
                case .file:
                    session.uploadTask(with: request, fromFile: try scratch.file("f", content))
                case .streamed: session.uploadTask(withStreamedRequest: request)
                }
            first.resume()
            try await delegate.informed.wait(for: "the 104") { $0 == [104] }
            server.cut.change { $0 = true }
            let error = try await delegate.completion()
            #expect(error?.code == .networkConnectionLost)
            let data = try #require(error?.uploadTaskResumeData)
            #expect(error?.userInfo[NSURLSessionUploadTaskResumeData] as? Data == data)
            #expect(error?.downloadTaskResumeData == nil)
            #expect(data.range(of: Data("secret".utf8)) == nil)

            let sentBefore = delegate.sent.value.count
            let second = session.uploadTask(withResumeData: data)
            #expect(second.originalRequest?.url == request.url)
            second.resume()
            #expect(try await delegate.completion(2) == nil)
            #expect(delegate.statuses.value.last == 201)
            #expect(server.kept.value == content)
            let heads = server.heads.value
            #expect(heads.map(\.method) == ["POST", "HEAD", "PATCH"])
            #expect(heads.map(\.target) == ["/up", "/kept/1", "/kept/1"])
            #expect(heads.map { $0["Upload-Draft-Interop-Version"] } == ["6", "6", "6"])
            #expect(heads.map { $0["Upload-Complete"] } == ["?1", nil, "?1"])
            #expect(heads.map { $0["Upload-Offset"] } == [nil, nil, "100000"])
            #expect(
                heads.map { $0["Content-Type"] } == [
                    "text/plain", nil, "application/partial-upload",
                ])
            #expect(heads.map { $0["X-Own"] } == ["yes", "yes", "yes"])
            #expect(heads.map { $0["Authorization"] } == ["Bearer secret", nil, nil])
            #expect(delegate.offsets.value == (kind == .streamed ? [0, 100_000] : []))
            let sent = delegate.sent.value[sentBefore...]
            #expect(sent.reduce(0) { $0 + $1.0 } == 200_000)
            #expect(sent.last?.1 == 300_000)
            #expect(sent.last?.2 == (kind == .streamed ? -1 : 300_000))
            #expect(second.countOfBytesSent == 300_000)
            session.invalidateAndCancel()
            await server.origin.stop()
        }
    }

    @Test("are cancelled with what it takes to go on, once the server has said that it keeps them")
    func cancelled() async throws {
        let content = pattern(2_000_000)
        let server = try await KeepingOrigin.start(takes: 100_000)
        let delegate = UploadingDelegate()
        let session = URLSession.plain(delegate)
        let early = session.uploadTask(with: Self.post(try server.url), from: Data(content))
        #expect(await early.cancelByProducingResumeData() == nil)
        let first = session.uploadTask(with: Self.post(try server.url), from: Data(content))
        first.resume()
        try await delegate.informed.wait(for: "the 104") { $0 == [104] }
        try await server.kept.wait(for: "a part") { $0.count == 100_000 }
        let data = try #require(await first.cancelByProducingResumeData())
        #expect(try await delegate.completion(2)?.code == .cancelled)
        server.cut.change { $0 = true }
        session.uploadTask(withResumeData: data).resume()
        #expect(try await delegate.completion(3) == nil)
        #expect(server.kept.value == content)
        // Without the question there is nothing.
        #expect(await first.cancelByProducingResumeData() == nil)
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test(
        "end with what the server says of them",
        arguments: [
            ("404 Not Found\r\nContent-Length: 0", 404, nil),
            ("204 No Content\r\nUpload-Complete: ?1\r\nUpload-Offset: 10", 204, nil),
            ("200 OK\r\nContent-Length: 0", 0, URLError.Code.badServerResponse),
            ("204 No Content\r\nUpload-Offset: -1", 0, .badServerResponse),
            ("204 No Content\r\nUpload-Offset: 1x", 0, .badServerResponse),
            ("204 No Content\r\nUpload-Offset: 9999999999999999", 0, .badServerResponse),
            ("204 No Content\r\nUpload-Offset: 11", 0, .requestBodyStreamExhausted),
            ("204 No Content\r\nUpload-Offset: 10\r\nUpload-Complete: ?0", 201, nil),
        ] as [(String, Int, URLError.Code?)])
    func answers(_ answer: String, _ status: Int, _ code: URLError.Code?) async throws {
        let server = try await KeepingOrigin.start(
            takes: 0, answer: "HTTP/1.1 \(answer)\r\n\r\n")
        let delegate = UploadingDelegate()
        let session = URLSession.plain(delegate)
        try Self.goOn(session, at: server)
        #expect(try await delegate.completion()?.code == code)
        if code == nil { #expect(delegate.statuses.value == [status]) }
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test("ask again where the server has another amount, and not for ever", arguments: [1, 9])
    func conflicts(_ count: Int) async throws {
        let server = try await KeepingOrigin.start(
            takes: 0, patch: Array(repeating: "409 Conflict", count: count) + ["201 Created"])
        let delegate = UploadingDelegate()
        let session = URLSession.plain(delegate)
        try Self.goOn(session, at: server)
        #expect(try await delegate.completion() == nil)
        #expect(delegate.statuses.value == [count == 1 ? 201 : 409])
        #expect(server.heads.value.count == (count == 1 ? 4 : 6))
        for head in server.heads.value {
            // The question has no content.
            #expect((head["Content-Length"] == nil) == (head.method == "HEAD"))
        }
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test(
        "ask for the content again where the delegate gives it, when the server has another amount")
    func conflictsOfStreams() async throws {
        let server = try await KeepingOrigin.start(
            takes: 0, patch: ["409 Conflict", "201 Created"])
        let content = pattern(10)
        let delegate = UploadingDelegate(streaming: content)
        let session = URLSession.plain(delegate)
        var request = Self.post(try server.url)
        request.setValue(nil, forHTTPHeaderField: "Authorization")
        let resume = try #require(
            UploadResumeData(
                request, sending: .streamed, kept: try URL.of(server.origin.url("/kept/1"))))
        session.uploadTask(withResumeData: resume.encoded()).resume()
        #expect(try await delegate.completion() == nil)
        #expect(delegate.statuses.value == [201])
        #expect(delegate.offsets.value == [0, 0])
        #expect(server.heads.value.map(\.method) == ["HEAD", "PATCH", "HEAD", "PATCH"])
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test(
        "end with what the server says to the rest",
        arguments: ["400 Bad Request", "404 Not Found", "410 Gone", "500 Internal Server Error"])
    func refusals(_ status: String) async throws {
        let server = try await KeepingOrigin.start(takes: 0, patch: [status])
        let delegate = UploadingDelegate()
        let session = URLSession.plain(delegate)
        try Self.goOn(session, at: server)
        #expect(try await delegate.completion() == nil)
        #expect(delegate.statuses.value == [Int(status.prefix(3))])
        #expect(server.heads.value.map(\.method) == ["HEAD", "PATCH"])
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test("leave no resume data where nobody asked for it when they were cancelled")
    func plainlyCancelled() async throws {
        let server = try await KeepingOrigin.start(takes: 100_000)
        let delegate = UploadingDelegate()
        let session = URLSession.plain(delegate)
        let task = session.uploadTask(
            with: Self.post(try server.url), from: Data(pattern(2_000_000)))
        task.resume()
        try await delegate.informed.wait(for: "the 104") { $0 == [104] }
        task.cancel()
        let error = try await delegate.completion()
        #expect(error?.code == .cancelled && error?.uploadTaskResumeData == nil)
        server.cut.change { $0 = true }
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test("complete once, and say once what it takes to go on, however a cancel falls (100 times)")
    func races() async throws {
        let content = Data(pattern(50_000))
        let server = try await KeepingOrigin.start(takes: 1000)
        for round in 0..<100 {
            let delegate = UploadingDelegate()
            let session = URLSession.plain(delegate)
            let task = session.uploadTask(with: Self.post(try server.url), from: content)
            let told = Event<[Data?]>([])
            task.resume()
            for _ in 0..<(round % 25) { await Task.yield() }
            if round % 3 == 0 { try await delegate.informed.wait(for: "the 104") { !$0.isEmpty } }
            await Race.atOnce(
                { task.cancel { data in told.change { $0.append(data) } } },
                { task.cancel { data in told.change { $0.append(data) } } },
                { if round % 2 == 0 { session.invalidateAndCancel() } })
            try await told.wait(for: "both answers") { $0.count == 2 }
            let error = try await delegate.completion()
            session.finishTasksAndInvalidate()
            await session.queueEmptied()
            #expect(delegate.errors.value.count == 1 && told.value.count == 2)
            #expect(error != nil)
            for data in told.value.compactMap({ $0 }) {
                #expect(UploadResumeData(decoding: data) != nil)
            }
        }
        server.cut.change { $0 = true }
        await server.origin.stop()
    }

    @Test("are not gone on with by data that is none, nor with a file that has changed")
    func hostile() async throws {
        try await Scratch.with { scratch in
            let file = try scratch.file("f", pattern(100))
            let resume = try #require(
                UploadResumeData(
                    Self.post(try URL.of("http://a.test/up")), sending: .file(file),
                    kept: try URL.of("http://a.test/k")))
            let blob = resume.encoded()
            #expect(UploadResumeData(decoding: blob)?.content == resume.content)
            for length in 0..<blob.count {
                #expect(UploadResumeData(decoding: blob.prefix(length)) == nil)
                var other = blob
                other[length] ^= 0x41
                #expect(UploadResumeData(decoding: other) == nil)
            }
            #expect(UploadResumeData(decoding: blob + [0]) == nil)
            #expect(ResumeData(decoding: blob) == nil)
            try Data(pattern(99)).write(to: file)
            do throws(URLError) {
                _ = try resume.rest(from: 10)
                Issue.record("took a file that has changed")
            } catch {
                #expect(error.code == .requestBodyStreamExhausted)
            }
        }
    }
}
