import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Requests that want to be two (RFC 9112 §11)", .timeLimit(.minutes(5)))
struct SecurityRequestTests {
    /// The heads that arrived, and how it ended.
    private func sent(
        _ change: (inout URLRequest) -> Void,
        _ configure: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> (heads: [Message], loaded: Loaded) {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "ok", cache: nil) }
        let session = URLSession.alone(nil, configure)
        var request = URLRequest(url: try #require(URL(string: origin.url("/a"))))
        change(&request)
        let loaded = await session.loaded(request)
        session.invalidateAndCancel()
        await origin.stop()
        return (origin.requests.value, loaded)
    }

    private func isClean(_ heads: [Message]) -> Bool {
        heads.count <= 1
            && heads.allSatisfy { head in
                head.fields.allSatisfy { !$0.lowercased().hasPrefix("x-evil") }
                    && !head.line.contains("evil")
            }
    }

    @Test(
        "a value with CR, LF or NUL ends as an error or without its breaks",
        arguments: [
            "a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\0X-Evil: 1", "a\r\n\r\nGET /evil",
            "\r\nX-Evil: 1", "\nX-Evil: 1", "a\r\n", "a\n", "a\r", "\0", "a\r\n\r\n b",
            "a\u{85}X-Evil: 1", "a\u{2028}X-Evil: 1", "a\u{10A}X-Evil: 1", "a\r\r\nX-Evil: 1",
        ])
    func values(_ value: String) async throws {
        for name in ["X-Own", "Accept", "User-Agent", "Content-Type", "Cookie", "Authorization"] {
            let (heads, _) = try await self.sent { $0.allHTTPHeaderFields = [name: value] }
            #expect(self.isClean(heads), "\(name)")
            let (others, _) = try await self.sent({ _ in }) {
                $0.httpAdditionalHeaders = [name: value]
            }
            #expect(self.isClean(others), "\(name)")
        }
    }

    @Test(
        "names that are none are not sent",
        arguments: [
            "X-Evil: 1\r\nX-Other", "X\r\nX-Evil", "X Evil", "X:X-Evil", "", " ", "X\0", "X\n",
            "X-Evil\r\n", "\u{212A}ookie",
        ])
    func names(_ name: String) async throws {
        let (heads, loaded) = try await self.sent { $0.allHTTPHeaderFields = [name: "1"] }
        #expect(self.isClean(heads))
        #expect(loaded.status == 200)
    }

    @Test(
        "methods that are none fail as a bad URL",
        arguments: [
            "GET /evil HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET", "GET\r\n", "G ET", "G\0", "G\t",
            "G\u{e9}",
            "CONNECT", "(", "GET\n",
        ])
    func methods(_ method: String) async throws {
        let (heads, loaded) = try await self.sent { $0.httpMethod = method }
        #expect(heads.isEmpty)
        #expect(loaded.code == .badURL)
    }

    @Test("fields that frame a message are the engine's alone")
    func framing() async throws {
        for (name, value) in [
            ("Transfer-Encoding", "chunked"), ("Content-Length", "5"), ("Connection", "X-Own"),
            ("Host", "evil.test"), ("Upgrade", "h2c"), ("TE", "trailers"), ("Trailer", "X-Own"),
            ("Keep-Alive", "1"), ("Proxy-Connection", "x"), ("Expect", "100-continue"),
            ("transfer-encoding", "chunked"), ("content-length", "99"),
        ] {
            let (heads, loaded) = try await self.sent {
                $0.httpMethod = "POST"
                $0.httpBody = Data("abc".utf8)
                $0.allHTTPHeaderFields = [name: value]
            }
            let head = try #require(heads.first)
            #expect(heads.count == 1 && loaded.status == 200)
            #expect(head["Content-Length"] == "3")
            #expect(head["Host"]?.hasPrefix("127.0.0.1:") == true)
            #expect(head.text == "abc")
            if !["content-length", "host", "connection"].contains(name.lowercased()) {
                #expect(!head.has(name), "\(name)")
            }
        }
    }

    @Test(
        "authorities that are none are refused, and nothing is asked of anybody",
        arguments: [
            "http://", "http:///a", "http://:80/", "http://127.0.0.1:0/", "http://127.0.0.1:99999/",
            "http://127.0.0.1:-1/", "http://[::1/", "http://[::1%25lo]:1/",
            "http://[fe80::1%lo]:1/",
            "http://a b/", "http://%00/", "http://127.0.0.1%0d%0aX-Evil:1/", "http://a%2fb/",
            "http://[v1.a]/", "http://@/", "http://u:p@/", "http://.", "http://a..b:1/", "http:a",
            "http://\u{ff0e}/", "http://xn--\u{e9}:1/", "https://", "ftp://",
            "ftp://h%0d%0aDELE:1/",
            "ftp://127.0.0.1:0/", "http://127.0.0.1:18446744073709551617/",
            "http://\(String(repeating: "a", count: 300)):1/",
        ])
    func authorities(_ text: String) async throws {
        guard let url = URL(string: text) else { return }
        let session = URLSession.alone { $0.timeoutIntervalForRequest = 20 }
        let loaded = await session.loaded(URLRequest(url: url))
        #expect(loaded.error != nil)
        #expect(
            [
                .badURL, .cannotFindHost, .cannotConnectToHost, .unsupportedURL, .fileDoesNotExist,
                .notConnectedToInternet,
            ].contains(loaded.code ?? .unknown), "\(loaded.code?.rawValue ?? 0)")
        session.invalidateAndCancel()
    }

    @Test("a very long URL is sent or refused")
    func long() async throws {
        for count in [8_000, 200_000, 3_000_000] {
            let (heads, loaded) = try await self.sent { request in
                let text =
                    (request.url?.absoluteString ?? "") + String(repeating: "x", count: count)
                request.url = URL(string: text)
            }
            #expect(heads.count == (loaded.status == 200 ? 1 : 0) || loaded.error != nil)
        }
    }
}

@Suite("Servers that lie (RFC 9112 §6–§7, §11)", .timeLimit(.minutes(5)))
struct SecurityServerTests {
    /// What a session makes of these bytes, behind which the connection ends.
    private func loaded(
        _ bytes: [UInt8], _ delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> Loaded {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await connection.wire.send(bytes)
        }
        let session = URLSession.alone { $0.timeoutIntervalForRequest = 30 }
        let loaded = try await session.loaded(origin.url("/"), delegate: delegate)
        session.invalidateAndCancel()
        await origin.stop()
        return loaded
    }

    @Test(
        "heads and bodies that break the rules end as an error",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", "HTTP/1.1 200 OK\r\nX Y: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP/1.1 200 OK\r\nX", "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1\r\n\r\n", "garbage\r\n\r\n", "", "\r\n\r\n", "\0",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", "HTTP/1.1 -20 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 9\r\n\r\n\u{7f}\u{7f}\u{7f}abcdef",
            "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: 9\r\n\r\n\u{7}bcdefghi",
            "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip,gzip,gzip,gzip,gzip,gzip,gzip\r\n"
                + "Content-Length: 3\r\n\r\nabc",
        ])
    func rules(_ text: String) async throws {
        let loaded = try await self.loaded(Array(text.utf8))
        #expect(loaded.error != nil, "\(loaded.status ?? 0) \(loaded.text)")
        #expect(loaded.code != .timedOut && loaded.code != .unknown, "\(loaded.error as Any)")
    }

    /// `hello hello…`, in gzip.
    private static let gzip = Array(
        Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJV8igOwkAL/r4SHgAAAA=") ?? Data())

    @Test("content that ends before its coding does gives its begin or an error, at every length")
    func truncated() async throws {
        let whole = Self.gzip
        for count in [1, 5, 9, 10, 11, whole.count / 2, whole.count - 9, whole.count - 1] {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(count)\r\n\r\n"
            let loaded = try await self.loaded(Array(head.utf8) + whole[..<count])
            let text = String(repeating: "hello ", count: 20)
            #expect(loaded.error != nil || text.hasPrefix(loaded.text))
        }
        // Broken off below the coding, it is an error in any case.
        let head =
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(whole.count)\r\n\r\n"
        #expect(try await self.loaded(Array(head.utf8) + whole.dropLast()).error != nil)
        let all = try await self.loaded(Array(head.utf8) + whole)
        #expect(all.text == String(repeating: "hello ", count: 20))
        #expect(all.response?.expectedContentLength == -1)
        var wrong = whole
        wrong[wrong.count - 8] ^= 1
        #expect(
            try await self.loaded(Array(head.utf8) + wrong).error?.code == .cannotDecodeContentData)
    }

    /// 512 MiB of zeros, three times in gzip.
    private static let bomb =
        Data(
            base64Encoded: """
                H4sIAAAAAAACA5Pv5mAAASbmt3d0jVoZRRoeVt+V7nmg7sF0OuBMQEpjjs4BqRmGk5KEN6W4XX3DcJapR8Hj2Pm9\
                2RP2fa+8dFJ9nuXnvDjdvjQxtXz+xx/vF9T9rf29b4cJE9BItnd/niYZWbP1bKub942/DyjSsNA6MnLeuX6m+OPS\
                1dcYgSLN5Ts377X6L/DDwnpuFDtQgOfer+ev3/0R+/CjeHtZhjxQxKDifBNI6QQlCZBDdcGcCxCOITJnVGZUZoTJ\
                mP+X5JHIjb0z/9w8njrGW7Kaz0u+sTMAAEYHi5/UAwAA
                """) ?? Data()

    @Test("content that becomes a million times longer ends with what holds it, or an error")
    func bombs() async throws {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip, gzip\r\n"
            + "Content-Length: \(Self.bomb.count)\r\n\r\n"
        let bytes = Array(head.utf8) + Self.bomb
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await connection.wire.send(bytes)
        }
        let other = try await ScriptedOrigin.answering { _ in response(body: "x") }
        // A delegate that never wants the body.
        let delegate = RecordingDelegate()
        let held = Event(0)
        delegate.disposition.withLock { $0 = { _ in held.change { $0 += 1 } } }
        let session = URLSession.alone(delegate)
        let task = session.dataTask(with: try #require(URL(string: origin.url("/"))))
        task.resume()
        try await origin.requests.wait(for: "the request") { $0.count == 1 }
        // Others are served meanwhile.
        let next = URLSession.alone()
        #expect(try await next.loaded(other.url("/")).text == "x")
        #expect(task.countOfBytesReceived < 64 << 20)
        session.invalidateAndCancel()
        next.invalidateAndCancel()
        try await delegate.completion()
        await origin.stop()
        await other.stop()
    }

    @Test("floods of interim responses, of fields and of one line come to an end")
    func floods() async throws {
        let interim = String(
            repeating: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", count: 60_000)
        let first = try await self.loaded(Array((interim + response(body: "x")).utf8))
        #expect(first.error != nil)
        let fields = (0..<100_000).map { "X-\($0): y\r\n" }.joined()
        let second = try await self.loaded(Array("HTTP/1.1 200 OK\r\n\(fields)\r\n".utf8))
        #expect(second.code == .badServerResponse)
        let line = "HTTP/1.1 200 OK\r\nX: \(String(repeating: "y", count: 4_000_000))\r\n\r\n"
        let third = try await self.loaded(Array(line.utf8))
        #expect(third.code == .badServerResponse)
    }

    @Test(
        "redirections lead to http and https alone, and nothing else is loaded",
        arguments: [
            "file:///etc/passwd", "data:text/plain,evil", "ftp://127.0.0.1:1/", "javascript:1",
            "http://", "http:///", "//", "http://u:p@127.0.0.1:1/", "http://127.0.0.1:99999/",
            "http://127.0.0.1:0/", "FILE:/etc/passwd", "\u{e9}://x", "http://[::1",
            "http:/etc/passwd",
            "http://%00/", "http://a b/", "about:blank", "file://localhost/etc/passwd", ":",
            "\\\\a\\b",
        ])
    func redirections(_ location: String) async throws {
        let loaded = try await self.loaded(
            Array(response("302 Found", "Location: \(location)", body: "moved").utf8))
        if let response = loaded.response {
            #expect(loaded.status == 302 || response.url?.scheme == "http")
            #expect(!loaded.text.contains("root:") && loaded.text != "evil")
            #expect(response.url?.scheme == "http")
        } else {
            #expect(loaded.error != nil)
        }
    }

    @Test("a URLProtocol of the program's is not reached by a server's redirection")
    func schemes() async throws {
        let loaded = try await self.loaded(
            Array(response("307 X", "Location: secret-scheme://x/", body: "moved").utf8))
        #expect(loaded.status == 307)
    }
}
