package import LarderHTTP
package import NIOCore

/// Writes a response's head as it goes to a client.
///
/// Fields of this hop alone (RFC 9110 §7.6.1) are the connection's own affair: whatever the answer
/// has of them is left out here, but for the protocols that a 426 demands (§15.5.22).
package struct ResponseHeadWriter {
    /// What `Connection` says.
    package enum Persistence: Hashable, Sendable {
        /// Nothing: HTTP/1.1 persists unless told otherwise.
        case implied
        case close
        /// `Connection: upgrade`, with the protocols that the origin switched to.
        case upgrade
    }

    /// Our name in `Via`.
    let pseudonym: String
    /// The whole line for a response in HTTP/1.1.
    private let via: [UInt8]

    package init(pseudonym: String) {
        self.pseudonym = pseudonym
        self.via = Array("Via: 1.1 \(pseudonym)\r\n".utf8)
    }

    /// - Parameter date: for a response without a `Date` (RFC 9110 §6.6.1); nil to add none.
    package func write(
        _ head: ResponseHead, framing: ResponseFraming?, persistence: Persistence,
        date: [UInt8]?, into buffer: inout ByteBuffer
    ) {
        self.writeStatusLine(head, into: &buffer)
        let offers = head.status == .upgradeRequired && head.fields.contains(FieldName(.upgrade))
        let keepsUpgrade = offers || persistence == .upgrade
        if !self.write(head.fields, keepsUpgrade: keepsUpgrade, into: &buffer), let date {
            buffer.writeStaticString("Date: ")
            buffer.writeBytes(date)
            buffer.writeStaticString("\r\n")
        }
        if head.version == .http11 {
            buffer.writeBytes(self.via)
        } else {
            buffer.writeString("Via: \(head.version.viaName) \(self.pseudonym)\r\n")
        }
        if let length = framing?.announcedLength {
            buffer.writeStaticString("Content-Length: ")
            buffer.writeString(String(length))
            buffer.writeStaticString("\r\n")
        } else if framing?.isChunked == true {
            buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
        }
        switch persistence {
        case .implied where offers: buffer.writeStaticString("Connection: upgrade\r\n")
        case .implied: break
        case .close where offers: buffer.writeStaticString("Connection: close, upgrade\r\n")
        case .close: buffer.writeStaticString("Connection: close\r\n")
        case .upgrade: buffer.writeStaticString("Connection: upgrade\r\n")
        }
        buffer.writeStaticString("\r\n")
    }

    private func writeStatusLine(_ head: ResponseHead, into buffer: inout ByteBuffer) {
        // As nearly all are.
        if head.status == .ok, head.reason == "OK" {
            buffer.writeStaticString("HTTP/1.1 200 OK\r\n")
            return
        }
        buffer.writeStaticString("HTTP/1.1 ")
        buffer.writeString(head.status.description)
        buffer.writeStaticString(" ")
        if head.reason.isEmpty {
            buffer.writeString(head.status.reasonPhrase)
        } else {
            for byte in head.reason.utf8 where ASCII.isFieldValue(byte) {
                buffer.writeInteger(byte)
            }
        }
        buffer.writeStaticString("\r\n")
    }

    /// Writes the lines that travel, in as few pieces as they lie in: those behind each other, as they
    /// were received, in one.
    ///
    /// - Returns: whether `Date` is among them.
    private func write(
        _ fields: Fields, keepsUpgrade: Bool, into buffer: inout ByteBuffer
    ) -> Bool {
        var hasDate = false
        var stretch = 0..<0
        for line in fields.lines where self.travels(line.known, keepsUpgrade) {
            if line.known == .date { hasDate = true }
            let place = Self.place(of: line, in: fields.bytes.span)
            if let place, place.lowerBound == stretch.upperBound {
                stretch = stretch.lowerBound..<place.upperBound
                continue
            }
            buffer.writeBytes(fields.bytes[stretch])
            stretch = place ?? 0..<0
            if place == nil { Self.write(line, of: fields, into: &buffer) }
        }
        buffer.writeBytes(fields.bytes[stretch])
        return hasDate
    }

    /// Where a line lies with its end, if it does so as it is written.
    private static func place(of line: Fields.Line, in bytes: Span<UInt8>) -> Range<Int>? {
        let start = Int(line.nameStart)
        let (colon, value) = (start + Int(line.nameLength), Int(line.valueStart))
        let end = value + Int(line.valueLength)
        guard value == colon + 2, bytes[colon] == ASCII.colon, bytes[colon + 1] == ASCII.space,
            end + 2 <= bytes.count, bytes[end] == ASCII.cr, bytes[end + 1] == ASCII.lf
        else { return nil }
        return start..<end + 2
    }

    private func travels(_ field: KnownField, _ keepsUpgrade: Bool) -> Bool {
        switch field {
        case .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding,
            .contentLength:
            false
        case .upgrade:
            keepsUpgrade
        default:
            true
        }
    }

    /// Writes a line anew.
    private static func write(
        _ line: Fields.Line, of fields: Fields, into buffer: inout ByteBuffer
    ) {
        buffer.writeBytes(fields.name(of: line))
        buffer.writeStaticString(": ")
        buffer.writeBytes(fields.value(of: line))
        buffer.writeStaticString("\r\n")
    }
}
