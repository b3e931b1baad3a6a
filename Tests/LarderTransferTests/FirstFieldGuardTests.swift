import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("A line that is folded before any field (RFC 9112 §5.2)", .timeLimit(.minutes(10)))
struct FirstFieldGuardTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let lines: [String]
        /// Which of them is refused; nil: none.
        let refused: Int?

        var testDescription: String { "\(self.lines)" }
    }

    private static let cases: [Case] = [
        Case(lines: ["HTTP/1.1 200 OK\r\n", "A: b\r\n", " c\r\n", "\r\n"], refused: nil),
        Case(lines: ["HTTP/1.1 200 OK\r\n", "\r\n"], refused: nil),
        Case(lines: ["HTTP/1.1 200 OK\r\n", " c\r\n"], refused: 1),
        Case(lines: ["HTTP/1.1 200 OK\n", "\tc\n"], refused: 1),
        Case(lines: ["HTTP/1.1 200 OK\r\n", " \r\n", "A: b\r\n"], refused: 1),
        // Whatever libcurl takes for a status line is none to append to.
        Case(lines: ["http/1.1 200 OK\r\n", " c\r\n"], refused: 1),
        Case(lines: ["A: b\r\n", " c\r\n"], refused: 1),
        Case(
            lines: ["HTTP/1.1 100 Continue\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", " c\r\n"],
            refused: 3),
        Case(
            lines: [
                "HTTP/1.1 103 Early Hints\r\n", "A: b\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", " c\r\n",
            ],
            refused: nil),
    ]

    private static func refused(_ parts: [String], by look: inout FirstFieldGuard) -> Int? {
        for (index, part) in parts.enumerated() {
            let isAdmitted = unsafe Array(part.utf8).withUnsafeBytes { unsafe look.admits($0) }
            if !isAdmitted { return index }
        }
        return nil
    }

    @Test("is refused, and no other", arguments: cases)
    func lines(_ c: Case) {
        var look = FirstFieldGuard()
        #expect(Self.refused(c.lines, by: &look) == c.refused)
    }

    @Test("is known by its beginning, wherever lines are handed on in parts", arguments: cases)
    func parts(_ c: Case) {
        for (index, line) in c.lines.enumerated() {
            for cut in 1..<line.unicodeScalars.count {
                let scalars = line.unicodeScalars
                let place = scalars.index(scalars.startIndex, offsetBy: cut)
                let parts =
                    c.lines[..<index] + [String(line[..<place]), String(line[place...])]
                    + c.lines[(index + 1)...]
                var look = FirstFieldGuard()
                let refused = Self.refused(Array(parts), by: &look)
                #expect(refused == c.refused.map { $0 > index ? $0 + 1 : $0 }, "\(parts)")
            }
        }
    }

    @Test("is looked for anew where the request is sent again, until there is a field")
    func again() {
        var look = FirstFieldGuard()
        #expect(Self.refused(["HTTP/1.1 200 OK\r\n"], by: &look) == nil)
        look.requestBegins()
        #expect(Self.refused(["HTTP/1.1 200 OK\r\n", " c\r\n"], by: &look) == 1)
        look = FirstFieldGuard()
        #expect(Self.refused(["HTTP/1.1 200 OK\r\n", "A: b\r\n"], by: &look) == nil)
        look.requestBegins()
        #expect(Self.refused(["HTTP/1.1 200 OK\r\n", " c\r\n"], by: &look) == nil)
    }

    @Test("is looked for up to the end of the first field, and of its line")
    func end() {
        let parts = [
            "HTTP/1.1 103 -\r\n", "\r\n", "HTTP/1.1 200", " OK\r\n", "A: b", "c", "\r\n", " ",
        ]
        var look = FirstFieldGuard()
        let isOver = parts.map { part in
            _ = Self.refused([part], by: &look)
            return look.isOver
        }
        #expect(isOver == parts.indices.map { $0 >= 6 })
    }

    @Test("is looked for in each response, whatever came before, and takes no content away")
    func heads() async throws {
        // What is longer than 16 KiB libcurl hands on in parts (CURL_MAX_WRITE_SIZE).
        let long = String(repeating: "l", count: 40_000)
        let answers = [
            "Long: \(long)\r\nContent-Length: 5\r\n\r\n one\n",
            "Content-Length: 2\r\n\r\n\t\n",
            "Transfer-Encoding: chunked\r\n\r\n5\r\n two\n\r\n0\r\nTrailer: t\r\n\r\n",
        ]
        let origin = try ScriptedOrigin { connection in
            for answer in answers + answers + [" c: d\r\nContent-Length: 0\r\n\r\n"] {
                guard connection.readHead() != nil else { return }
                connection.write("HTTP/1.1 103 -\r\n\r\nHTTP/1.1 200 OK\r\n\(answer)")
            }
        }
        try await withUpstream { upstream in
            for text in [" one\n", "\t\n", " two\n", " one\n", "\t\n", " two\n"] {
                #expect(await upstream.answer(to: origin.request()).text == text)
            }
            let bad = await upstream.answer(to: origin.request())
            #expect(bad.failure?.kind == .httpProtocolError)
            if !CurlLibrary.forgetsFields {
                #expect(bad.failure?.detail.contains("folded before") == true)
            }
        }
        #expect(origin.connectionCount == 1)
    }

    /// With a colon: libcurl by itself refuses a second line that has none.
    @Test(
        "never reaches a handle that remembers the response before",
        arguments: [LarderHTTP.Method.get, .head, .delete])
    func reused(_ method: LarderHTTP.Method) async throws {
        let fields = (0..<20).map { "X-\($0): \(String(repeating: "b", count: 40 * $0))\r\n" }
            .joined()
        let origin = try ScriptedOrigin { connection in
            for answer in ["", " c: \(String(repeating: "d", count: 2000))\r\n"] {
                guard connection.readHead() != nil else { return }
                connection.write(
                    "HTTP/1.1 200 OK\r\n\(answer)\(fields)Content-Length: 2\r\n\r\nok")
            }
        }
        try await withUpstream { upstream in
            for _ in 0..<20 {
                let good = await upstream.answer(to: origin.request())
                #expect(good.text == "ok")
                let bad = await upstream.answer(to: origin.request(method))
                #expect(bad.failure?.kind == .httpProtocolError)
                let detail = bad.failure?.detail ?? ""
                // Another method gets a new handle, and a libcurl that forgets needs no guard.
                let isGuarded = method != .delete && !CurlLibrary.forgetsFields
                #expect(detail.contains("folded before") == isGuarded, "\(detail)")
                #expect(bad.failure?.party == .origin)
            }
        }
        #expect(origin.connectionCount == 20)
    }
}
