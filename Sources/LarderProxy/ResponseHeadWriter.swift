package import LarderHTTP
package import NIOCore

/// Writes a response's head as it goes to a client.
///
/// Fields of this hop alone (RFC 9110 §7.6.1) are the connection's own affair: whatever the answer
/// has of them is left out here.
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

    package init(pseudonym: String) {
        self.pseudonym = pseudonym
    }

    /// - Parameter date: for a response without a `Date` (RFC 9110 §6.6.1); nil to add none.
    package func write(
        _ head: ResponseHead, framing: ResponseFraming?, persistence: Persistence,
        date: [UInt8]?, into buffer: inout ByteBuffer
    ) {
        self.writeStatusLine(head, into: &buffer)
        var hasDate = false
        for line in head.fields.lines where self.travels(line.known, persistence) {
            if line.known == .date { hasDate = true }
            Self.write(line, of: head.fields, into: &buffer)
        }
        if !hasDate, let date {
            buffer.writeStaticString("Date: ")
            buffer.writeBytes(date)
            buffer.writeStaticString("\r\n")
        }
        buffer.writeStaticString("Via: ")
        buffer.writeString(head.version.viaName)
        buffer.writeStaticString(" ")
        buffer.writeString(self.pseudonym)
        buffer.writeStaticString("\r\n")
        if let length = framing?.announcedLength {
            buffer.writeStaticString("Content-Length: ")
            buffer.writeString(String(length))
            buffer.writeStaticString("\r\n")
        } else if framing?.isChunked == true {
            buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
        }
        switch persistence {
        case .implied: break
        case .close: buffer.writeStaticString("Connection: close\r\n")
        case .upgrade: buffer.writeStaticString("Connection: upgrade\r\n")
        }
        buffer.writeStaticString("\r\n")
    }

    private func writeStatusLine(_ head: ResponseHead, into buffer: inout ByteBuffer) {
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

    private func travels(_ field: KnownField, _ persistence: Persistence) -> Bool {
        switch field {
        case .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding,
            .contentLength:
            false
        case .upgrade:
            persistence == .upgrade
        default:
            true
        }
    }

    /// Copies a field line, in one piece where name and value lie together as they were received.
    private static func write(
        _ line: Fields.Line, of fields: Fields, into buffer: inout ByteBuffer
    ) {
        let name = fields.name(of: line)
        let value = fields.value(of: line)
        let gap = value.startIndex - name.endIndex
        if gap == 2, fields.bytes[name.endIndex] == ASCII.colon,
            fields.bytes[name.endIndex + 1] == ASCII.space
        {
            buffer.writeBytes(fields.bytes[name.startIndex..<value.endIndex])
        } else {
            buffer.writeBytes(name)
            buffer.writeStaticString(": ")
            buffer.writeBytes(value)
        }
        buffer.writeStaticString("\r\n")
    }
}
