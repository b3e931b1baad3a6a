import LarderHTTP
import NIOCore
import Testing

/// A request head, and how it must be read.
struct ValidRequest: Sendable, CustomTestStringConvertible {
    var text: String
    var method: Method = .get
    var target: RequestTarget
    var version: HTTPVersion = .http11
    var body: BodyLength = .none
    var userInfo: String?
    var fields: [String]

    var testDescription: String { String(self.text.prefix(60)) }

    static let http = TargetURI(scheme: .http, host: "a.example", pathAndQuery: "/")

    static let all: [ValidRequest] = [
        ValidRequest(
            text: "GET http://a.example/ HTTP/1.1\nHost: a.example\n\n", target: .absolute(http),
            fields: ["Host: a.example"]),
        ValidRequest(
            text: "GET HTTP://A.example HTTP/1.1\nhost:a.EXAMPLE:80\n\n", target: .absolute(http),
            fields: ["host: a.EXAMPLE:80"]),
        ValidRequest(
            text: "GET http://a.example:/ HTTP/1.1\nHost: \t a.example:\t \n\n",
            target: .absolute(http), fields: ["Host: a.example:"]),
        ValidRequest(
            text: "GET http://a.example/ HTTP/1.0\n\n", target: .absolute(http),
            version: .http10, fields: []),
        ValidRequest(
            text: "GET /x?y=%zz|{}\"<> HTTP/1.1\nHost: h\n\n",
            target: .origin("/x?y=%zz|{}\"<>"), fields: ["Host: h"]),
        // As curl sends what was typed, and as a page would have it.
        ValidRequest(
            text: "GET /é%C3%A9?ü=%zé HTTP/1.1\nHost: h\n\n",
            target: .origin("/%C3%A9%C3%A9?%C3%BC=%z%C3%A9"), fields: ["Host: h"]),
        ValidRequest(
            text: "GET http://a.example?\u{10FFFF} HTTP/1.1\nHost: a.example\n\n",
            target: .absolute(
                TargetURI(
                    scheme: .http, host: "a.example", pathAndQuery: "/?%F4%8F%BF%BF")),
            fields: ["Host: a.example"]),
        ValidRequest(
            text: "GET / HTTP/1.1\nHost: h\nContent-Length: 0\n\n", target: .origin("/"),
            fields: ["Host: h", "Content-Length: 0"]),
        ValidRequest(
            text: "HEAD / HTTP/1.1\nHost: h\nContent-Length: 00\n\n", method: .head,
            target: .origin("/"), fields: ["Host: h", "Content-Length: 00"]),
        ValidRequest(
            text: "CONNECT [::1]:443 HTTP/1.1\nHost: [0:0::1]:443\n\n", method: .connect,
            target: .authority(host: "[::1]", port: 443), fields: ["Host: [0:0::1]:443"]),
        ValidRequest(
            text: "OPTIONS * HTTP/1.1\nHost: h:8080\n\n", method: .options, target: .asterisk,
            fields: ["Host: h:8080"]),
        ValidRequest(
            text: "OPTIONS http://a.example HTTP/1.1\nHost: a.example\n\n", method: .options,
            target: .absolute(TargetURI(scheme: .http, host: "a.example", pathAndQuery: "*")),
            fields: ["Host: a.example"]),
        ValidRequest(
            text: "POST / HTTP/1.1\nHost: h\nContent-Length: 0\nX-Empty:\nX: a: b\n\n",
            method: .post, target: .origin("/"), body: .known(0),
            fields: ["Host: h", "Content-Length: 0", "X-Empty: ", "X: a: b"]),
        ValidRequest(
            text: "p!#$%&'*+-.^_`|~1 / HTTP/1.1\nHost: h\nTransfer-Encoding: \tChunKed \n\n",
            method: Method(rawValue: "p!#$%&'*+-.^_`|~1"), target: .origin("/"), body: .unknown,
            fields: ["Host: h", "Transfer-Encoding: ChunKed"]),
        ValidRequest(
            text: "GET ftp://u:p%40w@f.example/d HTTP/1.7\nHost: f.example\nX: é\n\n",
            target: .absolute(
                TargetURI(
                    scheme: .ftp, userInfo: "u:p%40w", host: "f.example", pathAndQuery: "/d")),
            version: HTTPVersion(major: 1, minor: 7), fields: ["Host: f.example", "X: é"]),
        // A fragment is no part of a target (RFC 9110 §7.1).
        ValidRequest(
            text: "GET http://h/a?b#c?d#%zz HTTP/1.1\nHost: h\n\n",
            target: .absolute(TargetURI(scheme: .http, host: "h", pathAndQuery: "/a?b")),
            fields: ["Host: h"]),
        ValidRequest(
            text: "GET http://h#c HTTP/1.1\nHost: h\n\n",
            target: .absolute(TargetURI(scheme: .http, host: "h", pathAndQuery: "/")),
            fields: ["Host: h"]),
        ValidRequest(
            text: "GET /a#c HTTP/1.1\nHost: h\n\n", target: .origin("/a"), fields: ["Host: h"]),
        // User information is none of a target's over http (RFC 9110 §4.2.4).
        ValidRequest(
            text: "GET http://u:p%40w@h/d HTTP/1.1\nHost: h\n\n",
            target: .absolute(TargetURI(scheme: .http, host: "h", pathAndQuery: "/d")),
            userInfo: "u:p%40w", fields: ["Host: h"]),
        ValidRequest(
            text: "GET https://u@h HTTP/1.1\nHost: u@h\n\n",
            target: .absolute(TargetURI(scheme: .https, host: "h", pathAndQuery: "/")),
            userInfo: "u", fields: ["Host: u@h"]),
        ValidRequest(
            text: "GET http://u:p@h:81/ HTTP/1.0\nHost: h\n\n",
            target: .absolute(TargetURI(scheme: .http, host: "h", port: 81, pathAndQuery: "/")),
            version: .http10, userInfo: "u:p", fields: ["Host: h"]),
    ]
}

@Suite("Request heads (RFC 9112 §2–§6)")
struct RequestHeadParserTests {
    @Test(
        "that are valid are read whole, split at every byte, and glued", arguments: ValidRequest.all
    )
    func valid(_ sample: ValidRequest) throws {
        let bytes = wire(sample.text)
        let whole = Reading.requests([bytes[...]])
        #expect(whole.error == nil)
        #expect(whole.rest.isEmpty)
        let head = try #require(whole.messages.first)
        #expect(whole.messages.count == 1)
        #expect(head.method == sample.method)
        #expect(head.target == sample.target)
        #expect(head.version == sample.version)
        #expect(head.bodyLength == sample.body)
        #expect(head.userInfo == sample.userInfo)
        #expect(head.fields.pairs.map { "\($0.name): \($0.value)" } == sample.fields)

        for pieces in splits(bytes) { #expect(Reading.requests(pieces) == whole) }

        let next = wire("\nGET / HTTP/1.1\nHost: next\n\nGET")
        let glued = Reading.requests([(bytes + next)[...]])
        #expect(glued.messages.count == 2)
        #expect(glued.messages.first == head)
        #expect(glued.messages.last?.target == .origin("/"))
        #expect(glued.rest == Array("GET".utf8))
        for pieces in splits(bytes + next) { #expect(Reading.requests(pieces) == glued) }
    }

    @Test(
        "agree with a Host that spells host or port in another way",
        arguments: ["h", "h:", "h:80", "h:0080", "H", "H:80", " h\t"])
    func host(_ host: String) {
        let reading = Reading.requests([wire("GET http://h/ HTTP/1.1\nHost: \(host)\n\n")[...]])
        #expect(reading.messages.count == 1)
        #expect(reading.error == nil)
    }

    @Test(
        "may name the proxy in Host, by its port, in place of the target's authority",
        arguments: [
            ("GET http://h/ HTTP/1.1", "p:3128", nil), ("GET http://h/ HTTP/1.1", "h:3128", nil),
            ("GET https://h/ HTTP/1.1", "10.0.0.1:3128", nil),
            ("CONNECT h:443 HTTP/1.1", "p:3128", nil),
            ("CONNECT h:443 HTTP/1.1", "p:3129", .hostMismatch),
            ("GET http://h/ HTTP/1.1", "p", .hostMismatch),
            ("CONNECT h:443 HTTP/1.1", "p", .hostMismatch),
            ("GET http://h/ HTTP/1.1", "p!:3128", .badHost),
        ] as [(String, String, HeadError.Reason?)])
    func ownHost(_ line: String, _ host: String, _ rule: HeadError.Reason?) {
        var parser = RequestHeadParser(isOwnPort: { $0 == 3128 })
        var buffer = ByteBuffer(string: "\(line)\r\nHost: \(host)\r\n\r\n")
        do throws(HeadError) {
            let head = try parser.parse(&buffer)
            #expect(head != nil && rule == nil)
        } catch {
            #expect(error.reason == rule)
            #expect(parser.refused?.target != nil && parser.refused?.fields.isEmpty == true)
        }
    }

    @Test("that stop early are not read")
    func incomplete() {
        let bytes = wire("GET http://a.example/ HTTP/1.1\nHost: a.example\n\n")
        for end in bytes.indices {
            let reading = Reading.requests([bytes[..<end]])
            #expect(reading.messages.isEmpty && reading.error == nil)
            #expect(reading.rest == Array(bytes[..<end]))
        }
    }
}
