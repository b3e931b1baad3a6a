import FoundationEssentials

/// The form of messages on the control socket: lines of JSON, each with the version of this form.
///
/// ```
/// client ──▶ {"larder":1,"message":{"purge":{…}}}⏎
/// daemon ──▶ {"larder":1,"message":{"progress":{…}}}⏎ … {"larder":1,"message":{"end":{}}}⏎
/// ```
///
/// A connection carries any number of requests, one after the other. An answer is as many lines as
/// it takes, each written when it is known, so that neither side ever holds a whole listing.
package enum ControlCodec {
    /// Raised when a message changes so that an older reader would misread it.
    package static let version = 1
    /// The longest line.
    ///
    /// A URL has at most 64 KiB, and JSON makes six bytes of the worst of them.
    package static let longestLine = 1 << 19

    private struct Envelope<Message: Codable>: Codable {
        var larder: Int
        var message: Message
    }

    /// The part of a line that every version has.
    private struct Versioned: Codable {
        var larder: Int
    }

    /// A message as a line, its line feed included.
    package static func line(_ message: some Codable) throws(ControlError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            let data = try encoder.encode(Envelope(larder: Self.version, message: message))
            return Array(data) + [0x0A]
        } catch {
            throw ControlError(.malformed, "a message cannot be written as JSON")
        }
    }

    /// A message from a line, with or without its line feed.
    ///
    /// - Throws: `.unknownVersion` before anything else is looked at, or `.malformed`.
    package static func message<Message: Codable>(
        _ type: Message.Type, from line: [UInt8]
    ) throws(ControlError) -> Message {
        let decoder = JSONDecoder()
        let data = Data(line)
        guard let versioned = try? decoder.decode(Versioned.self, from: data) else {
            throw ControlError(.malformed, "a line that is no message of Larder's")
        }
        guard versioned.larder == Self.version else {
            throw ControlError(
                .unknownVersion,
                "the other side speaks version \(versioned.larder) of the control protocol, this "
                    + "side version \(Self.version)")
        }
        guard let envelope = try? decoder.decode(Envelope<Message>.self, from: data) else {
            throw ControlError(.malformed, "a message that this release does not know")
        }
        return envelope.message
    }
}

/// Cuts a stream of bytes into lines.
///
/// Holds at most one line.
package struct LineSplitter: Sendable {
    private var bytes: [UInt8] = []
    private let longest: Int

    package init(longest: Int = ControlCodec.longestLine) {
        self.longest = longest
    }

    /// Takes bytes and answers the lines that they complete, without their line feeds.
    ///
    /// - Throws: `.malformed` for a line that is too long; the splitter is of no use after that.
    package mutating func push(_ piece: some Sequence<UInt8>) throws(ControlError) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for byte in piece {
            if byte == 0x0A {
                lines.append(self.bytes)
                self.bytes.removeAll(keepingCapacity: true)
                continue
            }
            guard self.bytes.count < self.longest else {
                throw ControlError(.malformed, "a line of more than \(self.longest) bytes")
            }
            self.bytes.append(byte)
        }
        return lines
    }
}

/// Why the control socket could not be used.
package struct ControlError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Code: Sendable, Equatable {
        /// Nobody listens there.
        case notRunning
        /// The file's permissions keep us out.
        case notPermitted
        /// Somebody else's program listens there (``ControlPeer``).
        case foreign
        /// The other side said nothing for too long.
        case timedOut
        case closed
        case malformed
        case unknownVersion
        /// Another proxy listens there.
        case inUse
        case system(CInt)
    }

    package var code: Code
    package var description: String

    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
