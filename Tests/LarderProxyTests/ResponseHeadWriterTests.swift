import LarderHTTP
import NIOCore
import Testing

@testable import LarderProxy

@Suite("Response heads on their way to clients")
struct ResponseHeadWriterTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// As the origin sent it.
        let head: String
        /// Without `Via` and the empty line.
        let written: String
    }

    private static let cases = [
        Case(
            testDescription: "lines that lie behind each other",
            head: "HTTP/1.1 200 OK\r\nA: 1\r\nb: two words\r\nDate: today\r\n\r\n",
            written: "HTTP/1.1 200 OK\r\nA: 1\r\nb: two words\r\nDate: today\r\n"),
        Case(
            testDescription: "lines of the connection among them",
            head: "HTTP/1.1 404 Gone fishing\r\nConnection: close\r\nA: 1\r\n"
                + "Content-Length: 9\r\nDate: today\r\nB: 2\r\nKeep-Alive: 5\r\n\r\n",
            written: "HTTP/1.1 404 Gone fishing\r\nA: 1\r\nDate: today\r\nB: 2\r\n"),
        Case(
            testDescription: "white space that does not travel",
            head: "HTTP/1.1 200\r\nDate:today\r\nA:  1 \r\nB: 2\t\r\nC: \r\nD:\r\nE: 3\r\n\r\n",
            written: "HTTP/1.1 200 OK\r\nDate: today\r\nA: 1\r\nB: 2\r\nC: \r\nD: \r\nE: 3\r\n"),
        Case(
            testDescription: "a folded line",
            head: "HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\nDate: today\r\n\r\n",
            written: "HTTP/1.1 200 OK\r\nA: 1   2\r\nDate: today\r\n"),
        Case(
            testDescription: "none",
            head: "HTTP/1.1 200 OK\r\n\r\n", written: "HTTP/1.1 200 OK\r\nDate: now\r\n"),
    ]

    @Test("hold the lines that travel, byte for byte", arguments: Self.cases)
    func lines(_ c: Case) throws {
        var source = ByteBuffer(string: c.head)
        var parser = ResponseHeadParser()
        let head = try #require(try parser.parse(&source))
        var buffer = ByteBuffer()
        ResponseHeadWriter(pseudonym: "me").write(
            head, framing: nil, persistence: .implied, date: Array("now".utf8), into: &buffer)
        #expect(String(buffer: buffer) == c.written + "Via: 1.1 me\r\n\r\n")
    }

    @Test("hold what was added behind what was received")
    func added() {
        var head = ResponseHead(status: .ok, version: .http10, fields: ["A": "1", "Date": "now"])
        head.fields.remove("A")
        head.fields.append("B", "2")
        var buffer = ByteBuffer()
        ResponseHeadWriter(pseudonym: "me").write(
            head, framing: nil, persistence: .close, date: nil, into: &buffer)
        #expect(
            String(buffer: buffer)
                == "HTTP/1.1 200 OK\r\nDate: now\r\nB: 2\r\nVia: 1.0 me\r\n"
                + "Connection: close\r\n\r\n")
    }
}
