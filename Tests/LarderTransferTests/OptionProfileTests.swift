import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("Options that stay set from one transfer to the next", .timeLimit(.minutes(10)))
struct OptionProfileTests {
    /// Kinds of requests, each of which sets options that the others must not find set.
    enum Kind: String, Sendable, CaseIterable, CustomTestStringConvertible {
        case plain, otherTarget, otherHost, withFields, withCredentials, accepting, head, decoding
        case decodingAsAsked, hurried, important, marked, post, chunkedPut, options, ntlm
        case emptyPost, chunkedAnswer, laxAnswer, ownLogin

        var testDescription: String { self.rawValue }

        private var target: String {
            switch self {
            case .otherTarget: "/other?secret=2"
            case .chunkedAnswer: "/chunked"
            default: "/"
            }
        }

        private var fields: Fields {
            switch self {
            case .withFields: ["X-One": "1", "X-Empty": "", "Range": "bytes=0-1"]
            case .withCredentials: ["Authorization": "Basic c2VjcmV0", "Cookie": "secret=1"]
            case .accepting: ["Accept": "text/plain", "Accept-Encoding": "br", "TE": "trailers"]
            case .decodingAsAsked: ["Accept-Encoding": "gzip"]
            case .ownLogin: ["Authorization": "NTLM TlRMTVNTUAABAAAA"]
            default: [:]
            }
        }

        private var method: Method {
            switch self {
            case .head: .head
            case .post, .emptyPost: .post
            case .chunkedPut: .put
            case .options: .options
            default: .get
            }
        }

        private var length: BodyLength {
            switch self {
            case .post: .known(7)
            case .chunkedPut: .unknown
            default: .none
            }
        }

        private var content: (any BodySource)? {
            self.length == .none ? nil : ScriptedContent(text: "content")
        }

        private func request(of origin: ScriptedOrigin) -> Request {
            var request = origin.request(
                self.method, self.target, fields: self.fields, length: self.length)
            if self == .otherHost { request.uri.host = "localhost" }
            request.transfer.decodesContent = self == .decoding || self == .decodingAsAsked
            if self == .hurried { request.transfer.idleTimeout = .seconds(30) }
            if self == .important { request.transfer.priority = 0.9 }
            if self == .marked { request.transfer.trafficClass = 10 }
            request.transfer.acceptsBareLF = self == .laxAnswer
            if self == .ntlm {
                request.connectionAuthentication = ConnectionAuthentication(
                    scheme: .ntlm, user: "somebody"
                ) { Array("secret".utf8) }
            }
            return request
        }

        func ask(_ origin: ScriptedOrigin, by upstream: CurlUpstream) async -> Recorder.Record {
            await upstream.answer(to: self.request(of: origin), body: self.content)
        }
    }

    /// An origin that writes down each head with what it got of content.
    private static func origin(_ notes: Notes) throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                var content = ""
                if let length = field("Content-Length", in: head).flatMap({ Int($0) }) {
                    content = connection.read(length) ?? ""
                } else if field("Transfer-Encoding", in: head) != nil {
                    content = connection.readChunked() ?? ""
                }
                notes.add(head + content)
                if head.contains(" /chunked ") {
                    connection.write(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                            + "2\r\nok\r\n0\r\n\r\n")
                } else {
                    let body = head.hasPrefix("HEAD") ? "" : "ok"
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\(body)")
                }
            }
        }
    }

    /// The walk over all pairs: what the origin gets for a request on a handle that has had another is
    /// byte for byte what it gets on a new one.
    @Test("nothing of one request is in the next", arguments: Kind.allCases)
    func pairs(first: Kind) async throws {
        let notes = Notes()
        let origin = try Self.origin(notes)
        for second in Kind.allCases {
            let alone = try await withUpstream { upstream in
                let record = await second.ask(origin, by: upstream)
                #expect(record.failure == nil)
                return notes.all.last
            }
            try await withUpstream { upstream in
                for kind in [first, second, second, first, second] {
                    let record = await kind.ask(origin, by: upstream)
                    #expect(record.failure == nil)
                    #expect(record.violations == [])
                    #expect(record.text == (kind == .head ? "" : "ok"))
                    if kind == second { #expect(notes.all.last == alone) }
                }
            }
        }
    }

    @Test("what is counted of a transfer begins anew with each")
    func measured() async throws {
        let notes = Notes()
        let origin = try Self.origin(notes)
        try await withUpstream { upstream in
            var sizes: [[UInt64]] = []
            for _ in 0..<3 {
                let observer = RecordingObserver()
                let request = origin.request().observed(by: observer)
                #expect(await upstream.answer(to: request).text == "ok")
                await observer.isMeasured.passed()
                let measured = try #require(observer.heard.measurements.first)
                sizes.append([
                    measured.requestHeadBytes, measured.responseHeadBytes,
                    measured.responseBodyBytes, measured.requestBodyBytes,
                ])
                #expect(measured.protocolName == "http/1.1")
            }
            #expect(sizes.allSatisfy { $0 == sizes[0] && $0[0] > 0 && $0[1] > 0 && $0[2] == 2 })
        }
        #expect(origin.connectionCount == 1)
    }

    @Test("a connection that dies under request after request is made anew, however often")
    func dying() async throws {
        // libcurl counts in its handle how often it tried again, and gives up at the fifth time.
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            // The next request is read and not answered.
            _ = connection.readHead()
        }
        try await withUpstream { upstream in
            for _ in 0..<20 {
                let record = await upstream.answer(to: origin.request())
                #expect(record.failure == nil)
                #expect(record.text == "ok")
            }
        }
    }
}
