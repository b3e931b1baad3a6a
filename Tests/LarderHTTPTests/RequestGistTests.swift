import LarderHTTP
import NIOCore
import Testing

@Suite("Gists of requests")
struct RequestGistTests {
    private static func gist(
        _ text: String, limits: HeadLimits = HeadLimits()
    ) -> String? {
        var gist = ByteBuffer(string: "before:")
        let bytes = wire(text)
        guard RequestGist.write(of: bytes.span, limits: limits, into: &gist) else { return nil }
        return String(String(buffer: gist).dropFirst(7)).replacing("\r\n", with: "\n")
    }

    @Test(
        "are the head without what nobody reads",
        arguments: [
            ("Host: h\n", "Host: h\n"),
            ("Host: h\nX-Request-Id: 1\n", "Host: h\n"),
            (
                "x-id:1\nHost: h\nUser-AGENT: a\nAccept: *\nReferer: r\nFrom:\n",
                "Host: h\nAccept: *\n"
            ),
            (
                "Host: h\nCookie: a\nForwarded: for=a\nVia: b\n",
                "Host: h\nCookie: a\nForwarded: for=a\nVia: b\n"
            ),
            ("X: 1\nConnection: X\nHost:\t h\n", "Connection: X\nHost:\t h\n"),
            ("Host: h\nContent-Length: 1\nX: é\n", "Host: h\nContent-Length: 1\n"),
            ("", ""),
        ])
    func gist(_ fields: String, _ kept: String) {
        #expect(
            Self.gist("GET http://h/a HTTP/1.1\n\(fields)\n")
                == "GET http://h/a HTTP/1.1\n\(kept)\n")
    }

    @Test(
        "have every line of a field that is known and not one of those, however it is spelled",
        arguments: KnownField.allCases.filter { $0 != .other })
    func known(_ field: KnownField) {
        let isKept = ![.from, .referer, .userAgent].contains(field)
        let name = field.lowercased
        for spelling in [name, name.uppercased(), name.prefix(1).uppercased() + name.dropFirst()] {
            let line = "\(spelling): 1\n"
            #expect(
                Self.gist("GET /a HTTP/1.1\n\(line)X: 1\n\(line)\n")
                    == "GET /a HTTP/1.1\n\(isKept ? line + line : "")\n")
        }
    }

    @Test(
        "are not of what is no head, or not one alone",
        arguments: [
            "", "\n", "GET", "GET / HTTP/1.1\n", "GET / HTTP/1.1\nHost: h\n",
            "\nGET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\nHost: h\n\nG",
            "GET / HTTP/1.1\nHost: h\nX : 1\n\n", "GET / HTTP/1.1\nHost: h\n X: 1\n\n",
            "GET / HTTP/1.1\nHost: h\nX\n\n", "GET / HTTP/1.1\nHost: h\nX: \u{1}\n\n",
            "GET / HTTP/1.1\nHost: h\nX: a\u{D}b\n\n", "GET / HTTP/1.1\nHost: h\n: 1\n\n",
        ])
    func none(_ text: String) {
        #expect(Self.gist(text) == nil)
    }

    @Test("are not of heads beyond the limits")
    func limits() {
        let text = "GET / HTTP/1.1\nHost: h\nX: 1\nX: 2\n\n"
        let length = wire(text).count
        #expect(Self.gist(text, limits: HeadLimits(head: length, fieldCount: 3)) != nil)
        #expect(Self.gist(text, limits: HeadLimits(head: length - 1, fieldCount: 3)) == nil)
        #expect(Self.gist(text, limits: HeadLimits(head: length, fieldCount: 2)) == nil)
    }

    @Test(
        "of what the parser refuses are refused by it, if there are any",
        arguments: BadRequest.lines + BadRequest.requestLines + BadRequest.targets
            + BadRequest.fieldLines + BadRequest.hosts + BadRequest.framing)
    func refused(_ sample: BadRequest) {
        var gist = ByteBuffer()
        guard RequestGist.write(of: sample.bytes.span, limits: HeadLimits(), into: &gist) else {
            return
        }
        #expect(Reading.requests([Array(gist.readableBytesView)[...]]).error != nil)
    }
}
