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
        let offers = head.status == .upgradeRequired && head.fields.has(.upgrade)
        let keepsUpgrade = offers || persistence == .upgrade
        buffer.write(atMost: self.most(head)) { out in
            Self.writeStatusLine(head, into: &out)
            if !self.write(head.fields, keepsUpgrade: keepsUpgrade, into: &out), let date {
                out.append(text: "Date: ")
                out.append(contentsOf: date.span)
                out.append(text: "\r\n")
            }
            if head.version == .http11 {
                out.append(contentsOf: self.via.span)
            } else {
                out.append(text: "Via: \(head.version.viaName) \(self.pseudonym)\r\n")
            }
            if let length = framing?.announcedLength {
                out.append(text: "Content-Length: ")
                out.append(decimal: length)
                out.append(text: "\r\n")
            } else if framing?.isChunked == true {
                out.append(text: "Transfer-Encoding: chunked\r\n")
            }
            switch persistence {
            case .implied where offers: out.append(text: "Connection: upgrade\r\n")
            case .implied: break
            case .close where offers: out.append(text: "Connection: close, upgrade\r\n")
            case .close: out.append(text: "Connection: close\r\n")
            case .upgrade: out.append(text: "Connection: upgrade\r\n")
            }
            out.append(text: "\r\n")
        }
    }

    /// At least as many bytes as a head takes: its lines, and less than the rest for what else there is.
    private func most(_ head: ResponseHead) -> Int {
        var size = 320 + head.reason.utf8.count + self.via.count
        for line in head.fields.lines {
            size += Int(line.nameLength) + Int(line.valueLength) + 4
        }
        return size
    }

    private static func writeStatusLine(_ head: ResponseHead, into out: inout OutputSpan<UInt8>) {
        // As nearly all are.
        if head.status == .ok, head.reason == "OK" {
            out.append(text: "HTTP/1.1 200 OK\r\n")
            return
        }
        out.append(text: "HTTP/1.1 ")
        out.append(decimal: UInt64(head.status.rawValue))
        out.append(text: " ")
        if head.reason.isEmpty {
            out.append(text: head.status.reasonPhrase)
        } else {
            for byte in head.reason.utf8 where ASCII.isFieldValue(byte) { out.append(byte) }
        }
        out.append(text: "\r\n")
    }

    /// Writes the lines that travel, in as few pieces as they lie in: those behind each other, as they
    /// were received, in one.
    ///
    /// - Returns: whether `Date` is among them.
    private func write(
        _ fields: Fields, keepsUpgrade: Bool, into out: inout OutputSpan<UInt8>
    ) -> Bool {
        var hasDate = false
        var stretch = 0..<0
        let bytes = fields.bytes.span
        for line in fields.lines where self.travels(line.known, keepsUpgrade) {
            if line.known == .date { hasDate = true }
            let place = fields.whole(line)
            if let place, place.lowerBound == stretch.upperBound {
                stretch = stretch.lowerBound..<place.upperBound
                continue
            }
            out.append(contentsOf: bytes.extracting(stretch))
            stretch = place ?? 0..<0
            if place == nil { Self.write(line, of: bytes, into: &out) }
        }
        out.append(contentsOf: bytes.extracting(stretch))
        return hasDate
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
        _ line: Fields.Line, of bytes: Span<UInt8>, into out: inout OutputSpan<UInt8>
    ) {
        out.append(contentsOf: bytes.extracting(line.namePlace))
        out.append(text: ": ")
        out.append(contentsOf: bytes.extracting(line.valuePlace))
        out.append(text: "\r\n")
    }
}
