import Foundation
import LarderHTTP
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("What resume data keeps of a request beside target and fields (§3.5, §9.2)")
struct ResumedSettingsTests {
    static var truths: [WritableKeyPath<URLRequest, Bool>] {
        [
            \.httpShouldHandleCookies, \.allowsCellularAccess, \.allowsExpensiveNetworkAccess,
            \.allowsConstrainedNetworkAccess, \.allowsUltraConstrainedNetworkAccess,
            \.assumesHTTP3Capable, \.requiresDNSSECValidation, \.httpShouldUsePipelining,
        ]
    }

    /// Changes of a request, each one by itself.
    static var changes: [(inout URLRequest) -> Void] {
        let others: [(inout URLRequest) -> Void] = [
            { _ in }, { $0.timeoutInterval = 60 }, { $0.timeoutInterval = 0.25 },
            { $0.timeoutInterval = .infinity }, { $0.timeoutInterval = -1 },
            { $0.mainDocumentURL = URL(string: "https://main.test/page?a=b#c") },
            { $0.mainDocumentURL = URL(string: "page") }, { $0.networkServiceType = .voip },
            { $0.networkServiceType = .callSignaling }, { $0.attribution = .user },
        ]
        return Self.truths.map { path in { $0[keyPath: path].toggle() } } + others
    }

    private static func downloaded(_ request: URLRequest) -> ResumeData? {
        ResumeData(
            request,
            head: ResponseHead(status: .ok, fields: ["ETag": "\"v\"", "Accept-Ranges": "bytes"]),
            part: DownloadPart(
                path: "/tmp/CFNetworkDownload_abcDE1.tmp", length: 10, checksum: 1),
            total: 100, now: BodiesResumeDataTests.now)
    }

    private static func uploaded(_ request: URLRequest) throws -> UploadResumeData? {
        UploadResumeData(request, sending: .streamed, kept: try URL.of("https://a.test/k"))
    }

    private static func expectSame(_ a: URLRequest?, _ b: URLRequest) {
        #expect(a?.isTimeoutSet == b.isTimeoutSet && a?.timeoutInterval == b.timeoutInterval)
        #expect(a?.mainDocumentURL == b.mainDocumentURL)
        #expect(a?.networkServiceType == b.networkServiceType && a?.attribution == b.attribution)
        for path in Self.truths { #expect(a?[keyPath: path] == b[keyPath: path]) }
    }

    @Test("comes back as it was, in that of downloads and of uploads", arguments: changes.indices)
    func roundTrip(_ index: Int) throws {
        var request = URLRequest(url: try URL.of("https://a.test/file"))
        Self.changes[index](&request)
        let download = try #require(Self.downloaded(request))
        let again = try #require(ResumeData(decoding: download.encoded()))
        #expect(again == download)
        Self.expectSame(again.request, request)
        let upload = try #require(try Self.uploaded(request))
        Self.expectSame(UploadResumeData(decoding: upload.encoded())?.request, request)
    }

    @Test("is nothing where a timeout is no number, and no secret of the main document")
    func unkept() throws {
        var request = URLRequest(url: try URL.of("https://a.test/file"))
        request.timeoutInterval = .nan
        request.mainDocumentURL = try URL.of("https://me:s3cret@main.test/")
        let blob = try #require(Self.downloaded(request)).encoded()
        #expect(blob.range(of: Data("s3cret".utf8)) == nil)
        let again = try #require(ResumeData(decoding: blob)?.request)
        #expect(
            !again.isTimeoutSet && again.mainDocumentURL?.absoluteString == "https://main.test/")
    }

    /// A blob as anybody could write it, with the right checksum: what stands behind the part that
    /// blobs had from the first on is `tail`'s.
    private static func blob(_ tail: (inout SealedForm.Writer) -> Void) -> Data {
        var writer = SealedForm.Writer(SealedForm(mark: "URLLoading resume", version: 1))
        writer.append("http://a.test/file")
        writer.append([ResumeData.Field(name: "X-A", value: "b")])
        writer.append("\"v\"")
        writer.append(String?.none)
        writer.append(UInt64(1000))
        writer.append("/tmp/CFNetworkDownload_abcDE1.tmp")
        writer.append(UInt64(100))
        writer.append(UInt64(77))
        tail(&writer)
        return writer.sealed()
    }

    @Test("is that of a plain request in blobs of earlier versions, which are made as before")
    func earlier() throws {
        let resume = try #require(ResumeData(decoding: Self.blob { _ in }))
        Self.expectSame(resume.request, URLRequest(url: try URL.of("http://a.test/file")))
        #expect(resume.encoded() == Self.blob { _ in })
    }

    /// What may stand there: the flags, the time, the document, the kind, who chose.
    struct Tail: Sendable {
        var flags: UInt64 = 0
        var interval = 1.0.bitPattern
        var document: String? = "http://main.test/"
        var documentBytes: Data?
        var service: UInt64 = 0
        var attribution: UInt64 = 0
        var more = Data()

        func write(to writer: inout SealedForm.Writer) {
            writer.append(self.flags)
            writer.append(self.interval)
            if let bytes = self.documentBytes {
                writer.append(bytes)
            } else {
                writer.append(self.document)
            }
            writer.append(self.service)
            writer.append(self.attribution)
            if !self.more.isEmpty { writer.append(self.more) }
        }
    }

    @Test(
        "is taken for what a request could say",
        arguments: [
            Tail(), Tail(flags: 0xFF), Tail(interval: .max), Tail(document: nil),
            Tail(service: 11, attribution: 1), Tail(interval: (-Double.infinity).bitPattern),
        ])
    func sound(_ tail: Tail) throws {
        let resume = try #require(ResumeData(decoding: Self.blob { tail.write(to: &$0) }))
        #expect(resume.request.httpShouldHandleCookies == (tail.flags != 0))
        #expect(resume.request.isTimeoutSet == (tail.interval != .max))
        #expect(resume.request.mainDocumentURL?.absoluteString == tail.document)
    }

    @Test(
        "makes a blob that is refused where no request could say it",
        arguments: [
            Tail(flags: 0x100), Tail(flags: .max), Tail(flags: 1 << 63), Tail(document: ""),
            Tail(document: "http://[::1/"), Tail(documentBytes: Data([0xFF, 0xFE])),
            Tail(service: 5), Tail(service: .max), Tail(service: 12), Tail(attribution: 2),
            Tail(attribution: .max), Tail(more: Data([1])),
        ])
    func hostile(_ tail: Tail) {
        #expect(ResumeData(decoding: Self.blob { tail.write(to: &$0) }) == nil)
    }

    @Test("makes a blob that is refused where it is cut off, though its checksum is right")
    func cutOff() {
        for count in 1...4 {
            #expect(
                ResumeData(decoding: Self.blob { for _ in 0..<count { $0.append(UInt64(0)) } })
                    == nil)
        }
    }

    @Test("a download that may not handle cookies sends and keeps none when it is resumed, either")
    func cookies() async throws {
        let file = try await FileOrigin.start(
            count: 600_000,
            fields: ["ETag: \"v1\"", "Accept-Ranges: bytes", "Set-Cookie: theirs=1"],
            stopsAt: 250_000)
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        let storage = try #require(session.configuration.httpCookieStorage)
        let cookie = try #require(
            HTTPCookie(properties: [
                .name: "ours", .value: "1", .path: "/", .originURL: try file.url,
            ]))
        storage.setCookie(cookie)
        var request = URLRequest(url: try file.url)
        request.httpShouldHandleCookies = false
        let task = session.downloadTask(with: request)
        task.resume()
        try await recorder.heard.wait(for: "some bytes") { !$0.written.isEmpty }
        let blob = try #require(await task.cancelByProducingResumeData())
        try await recorder.completion()
        file.stopsAt.change { $0 = nil }
        file.goOn.change { $0 = true }
        let rest = session.downloadTask(withResumeData: blob)
        #expect(rest.originalRequest?.httpShouldHandleCookies == false)
        rest.resume()
        #expect(try await recorder.completion(2).content == Data(file.content))
        #expect(file.origin.requests.value.map { $0["Cookie"] } == [nil, nil])
        #expect(storage.cookies?.map(\.name) == ["ours"])
        // Others of the same session do.
        _ = try await session.data(from: try file.url)
        #expect(file.origin.requests.value.last?["Cookie"] == "ours=1")
        session.invalidateAndCancel()
        await file.origin.stop()
    }
}
