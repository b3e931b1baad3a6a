import Foundation
import Testing

@testable import URLLoading

@Suite("Frames of a WebSocket (RFC 6455 §5)")
struct WebSocketFramesTests {
    private func read(
        _ bytes: [UInt8], pieces: Int = .max, limit: Int = 1000
    ) throws(WebSocketFault) -> [String] {
        var reader = WebSocketReader()
        var events: [String] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            reader.append(Data(rest.prefix(pieces)))
            rest = rest.dropFirst(min(pieces, rest.count))
            while let event = try reader.next(limit: limit) {
                switch event {
                case .message(.string(let text)): events.append("text \(text)")
                case .message(.data(let data)): events.append("data \(data.count)")
                case .ping(let data): events.append("ping \(data.count)")
                case .pong(let data): events.append("pong \(data.count)")
                case .closed(let code, let reason):
                    let reason = String(decoding: reason ?? Data(), as: UTF8.self)
                    events.append("close \(code ?? 0) \(reason)")
                }
            }
        }
        return events
    }

    /// As a server sends it.
    private func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        payload.count < 126
            ? [first, UInt8(payload.count)] + payload
            : [first, 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)] + payload
    }

    @Test("messages, in pieces and with control frames between them, whole or byte by byte (§5.4)")
    func messages() throws {
        let bytes =
            self.frame(0x81, Array("hello".utf8)) + self.frame(0x82, []) + self.frame(0x81, [])
            + self.frame(0x01, Array("a\u{20AC}".utf8.dropLast()))
            + self.frame(0x89, [1, 2]) + self.frame(0x00, Array("\u{20AC}".utf8.suffix(1)))
            + self.frame(0x8A, []) + self.frame(0x80, Array("b".utf8))
            + self.frame(0x82, [UInt8](repeating: 7, count: 300))
            + self.frame(0x88, [3, 232] + Array("bye".utf8))
        let expected = [
            "text hello", "data 0", "text ", "ping 2", "pong 0", "text a\u{20AC}b", "data 300",
            "close 1000 bye",
        ]
        #expect(try self.read(bytes) == expected)
        #expect(try self.read(bytes, pieces: 1) == expected)
    }

    @Test(
        "what breaks the rules (§5.1, §5.2, §5.5, §7.4)",
        arguments: [
            [0xC1, 0], [0x83, 0], [0x81, 0x80, 0, 0, 0, 0], [0x09, 0], [0x89, 126, 0, 126],
            [0x80, 0], [0x01, 0, 0x81, 0], [0x82, 126, 0, 125],
            [0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255],
            [0x82, 127, 255, 0, 0, 0, 0, 0, 0, 0], [0x88, 1, 3], [0x88, 2, 3, 237],
            [0x88, 2, 0, 0],
        ] as [[UInt8]])
    func broken(_ bytes: [UInt8]) {
        #expect(throws: WebSocketFault.protocolError) { try self.read(bytes) }
    }

    @Test("text that is no UTF-8 (§8.1), and messages beyond the bound, before they have come")
    func bounds() {
        #expect(throws: WebSocketFault.invalidText) { try self.read([0x81, 1, 0xFF]) }
        #expect(throws: WebSocketFault.tooLong) { try self.read([0x82, 11], limit: 10) }
        #expect(throws: WebSocketFault.tooLong) {
            try self.read([0x02, 6, 0, 0, 0, 0, 0, 0, 0x80, 5], limit: 10)
        }
        #expect(throws: WebSocketFault.tooLong) {
            try self.read([0x82, 127, 127, 255, 255, 255, 255, 255, 255, 255])
        }
    }

    @Test("a client's frames are masked, with the shortest length that does (§5.3)")
    func encoding() {
        let hello = WebSocketFrame(opcode: .text, payload: Data("Hello".utf8))
        // The RFC's own example (§5.7).
        #expect(
            Array(hello.encoded(mask: 0x37FA_213D)) == [
                0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58,
            ])
        func head(_ count: Int, _ length: Int) -> [UInt8] {
            Array(
                WebSocketFrame(opcode: .binary, payload: Data(count: count)).encoded(mask: 0)
                    .prefix(length))
        }
        #expect(head(125, 2) == [0x82, 0xFD])
        #expect(head(126, 4) == [0x82, 0xFE, 0, 126])
        #expect(head(65_535, 4) == [0x82, 0xFE, 255, 255])
        #expect(head(65_536, 10) == [0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0])
    }

    @Test(
        "a close reason of at most 123 octets is kept, a longer one cut behind a character (§5.5.1)",
        arguments: [
            ("", 0), (String(repeating: "a", count: 123), 123),
            (String(repeating: "a", count: 124), 123), (String(repeating: "ä", count: 61), 122),
            (String(repeating: "ä", count: 62), 122), (String(repeating: "€", count: 42), 123),
            ("a" + String(repeating: "€", count: 42), 121),
            ("ab" + String(repeating: "€", count: 42), 122),
            (String(repeating: "😀", count: 31), 120),
        ])
    func reasons(_ reason: String, _ count: Int) {
        let data = Data(reason.utf8)
        #expect(WebSocketFrame.fitting(data) == data.prefix(count))
        #expect(String(validating: WebSocketFrame.fitting(data), as: UTF8.self) != nil)
        // A slice, whose indices do not begin at zero.
        let slice = (Data([0x80, 0x80]) + data).dropFirst(2)
        #expect(WebSocketFrame.fitting(slice) == data.prefix(count))
    }

    @Test("a close reason that is no text is cut nevertheless")
    func reasonsThatAreNone() {
        #expect(WebSocketFrame.fitting(Data(repeating: 0x80, count: 200)).isEmpty)
        #expect(WebSocketFrame.fitting(Data(repeating: 0xFF, count: 200)).count == 123)
    }
}
