import Foundation

/// One frame of a WebSocket (RFC 6455 §5.2).
struct WebSocketFrame: Sendable, Equatable {
    enum Opcode: UInt8, Sendable {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10

        var isControl: Bool { self.rawValue >= 8 }
    }

    var opcode: Opcode
    var isFinal = true
    var payload = Data()

    /// As a client sends it: masked (RFC 6455 §5.3).
    ///
    /// - Parameter mask: four octets nobody can foresee.
    func encoded(mask: UInt32) -> Data {
        var out = Data(capacity: self.payload.count + 14)
        out.append((self.isFinal ? 0x80 : 0) | self.opcode.rawValue)
        let count = self.payload.count
        switch count {
        case ..<126: out.append(0x80 | UInt8(truncatingIfNeeded: count))
        case ..<65_536:
            out.append(0x80 | 126)
            for shift in [8, 0] { out.append(UInt8(truncatingIfNeeded: count >> shift)) }
        default:
            out.append(0x80 | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                out.append(UInt8(truncatingIfNeeded: count >> shift))
            }
        }
        let key = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: mask >> UInt32($0)) }
        out.append(contentsOf: key)
        out.append(contentsOf: self.payload.enumerated().map { $1 ^ key[$0 & 3] })
        return out
    }

    /// As a client sends it, with a mask that nobody can foresee.
    func masked() -> Data {
        var random = SystemRandomNumberGenerator()
        return self.encoded(mask: UInt32.random(in: .min ... .max, using: &random))
    }

    /// What a close frame contains (RFC 6455 §5.5.1): nothing where the code is one that is never sent
    /// (§7.4.1).
    static func closePayload(_ code: Int?, _ reason: Data?) -> Data {
        guard let code, self.isSent(code) else { return Data() }
        var payload = Data([
            UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code),
        ])
        payload.append(self.fitting(reason ?? Data()))
        return payload
    }

    /// Whether a close frame may say so (RFC 6455 §7.4.1).
    static func isSent(_ code: Int) -> Bool {
        (1000...1003).contains(code) || (1007...1014).contains(code)
            || (3000...4999).contains(code)
    }

    /// What of a close reason a frame holds beside the code: at most 123 octets (RFC 6455 §5.5), and no
    /// part of a character, as a reason is UTF-8 (§5.5.1).
    static func fitting(_ reason: Data) -> Data {
        guard reason.count > 123 else { return reason }
        var end = reason.startIndex + 123
        // The first that is left out must not go on with a character.
        while end > reason.startIndex, reason[end] & 0xC0 == 0x80 { end -= 1 }
        return reason[..<end]
    }
}

/// Why a WebSocket's peer is not listened to any more.
enum WebSocketFault: Error, Sendable, Equatable {
    /// It breaks the rules of RFC 6455 §5.
    case protocolError
    /// A text is no UTF-8 (RFC 6455 §8.1).
    case invalidText
    /// A message is longer than the task allows.
    case tooLong

    /// What it is told (RFC 6455 §7.4.1).
    var closeCode: URLSessionWebSocketTask.CloseCode {
        switch self {
        case .protocolError: .protocolError
        case .invalidText: .invalidFramePayloadData
        case .tooLong: .messageTooBig
        }
    }

    var error: URLError {
        switch self {
        case .protocolError, .invalidText: URLError(.badServerResponse)
        case .tooLong: URLError(.dataLengthExceedsMaximum)
        }
    }
}

/// Takes what a server sends apart into messages and what controls the connection.
///
/// It keeps one message that is not whole, never longer than the bound.
struct WebSocketReader: Sendable {
    enum Event: Sendable {
        case message(URLSessionWebSocketTask.Message)
        case ping(Data)
        case pong(Data)
        case closed(Int?, Data?)
    }

    private var bytes: [UInt8] = []
    /// Where what has not been taken begins: taken off when no whole frame is left.
    private var start = 0
    private var message: (isText: Bool, content: Data)?

    mutating func append(_ bytes: Data) {
        self.bytes.removeFirst(self.start)
        self.start = 0
        self.bytes.append(contentsOf: bytes)
    }

    /// The next of what has come whole; nil: nothing has.
    ///
    /// - Parameter limit: how long a message may be, in octets.
    mutating func next(limit: Int) throws(WebSocketFault) -> Event? {
        while let frame = try self.frame(limit: limit) {
            if let event = try self.take(frame) { return event }
        }
        return nil
    }

    private mutating func take(_ frame: WebSocketFrame) throws(WebSocketFault) -> Event? {
        switch frame.opcode {
        case .ping: return .ping(frame.payload)
        case .pong: return .pong(frame.payload)
        case .close: return try Self.close(frame.payload)
        case .text, .binary:
            guard self.message == nil else { throw .protocolError }
            self.message = (frame.opcode == .text, frame.payload)
        case .continuation:
            guard var message = self.message.take() else { throw .protocolError }
            message.content.append(frame.payload)
            self.message = message
        }
        guard frame.isFinal, let (isText, content) = self.message.take() else { return nil }
        guard isText else { return .message(.data(content)) }
        guard let text = String(validating: content, as: UTF8.self) else { throw .invalidText }
        return .message(.string(text))
    }

    /// The next whole frame; the bytes of one that is too long are not waited for.
    private mutating func frame(limit: Int) throws(WebSocketFault) -> WebSocketFrame? {
        let rest = self.bytes[self.start...]
        let head = Array(rest.prefix(10))
        guard head.count >= 2 else { return nil }
        // No extension was asked for, and what a server sends is not masked (RFC 6455 §5.1).
        guard head[0] & 0x70 == 0, head[1] & 0x80 == 0,
            let opcode = WebSocketFrame.Opcode(rawValue: head[0] & 0x0F)
        else { throw .protocolError }
        let isFinal = head[0] & 0x80 != 0
        let short = Int(head[1])
        if opcode.isControl, !isFinal || short > 125 { throw .protocolError }
        let headLength = short < 126 ? 2 : short == 126 ? 4 : 10
        guard head.count >= headLength else { return nil }
        let length = try Self.length(short, head[2..<headLength])
        if !opcode.isControl {
            let before = self.message?.content.count ?? 0
            guard length <= limit - min(limit, before) else { throw .tooLong }
        }
        guard rest.count - headLength >= length else { return nil }
        let payload = Data(rest.dropFirst(headLength).prefix(length))
        self.start += headLength + length
        return WebSocketFrame(opcode: opcode, isFinal: isFinal, payload: payload)
    }

    /// In the fewest octets that do, and below 2^63 (RFC 6455 §5.2).
    private static func length(
        _ short: Int, _ octets: ArraySlice<UInt8>
    ) throws(WebSocketFault) -> Int {
        guard short >= 126 else { return short }
        let value = octets.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard value > (short == 126 ? 125 : 65_535), let length = Int(exactly: value) else {
            throw .protocolError
        }
        return length
    }

    /// RFC 6455 §5.5.1, §7.4.
    private static func close(_ payload: Data) throws(WebSocketFault) -> Event {
        if payload.isEmpty { return .closed(nil, nil) }
        let octets = Array(payload)
        guard octets.count >= 2 else { throw .protocolError }
        let code = Int(octets[0]) << 8 | Int(octets[1])
        guard WebSocketFrame.isSent(code) else { throw .protocolError }
        let reason = Data(octets[2...])
        guard String(validating: reason, as: UTF8.self) != nil else { throw .invalidText }
        return .closed(code, reason.isEmpty ? nil : reason)
    }
}
