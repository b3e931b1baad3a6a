import Glibc
import LarderHTTP

/// A response head as text, as `curl -sI` writes it.
///
/// ```
/// file = *( head ) ; the last one counts
/// head = status-line *( field-line ) ( empty-line | end of file )
/// ```
///
/// Lines end with CR LF or LF. There may be several heads: those of redirects, of 1xx responses and
/// of a proxy's answer to CONNECT come before the one that is meant. What follows a head and is no
/// head is its content, and is not looked at.
enum ResponseFile {
    /// The largest file that is read: heads are small, and content is not needed.
    static let largest = 1 << 20

    /// Reads a file, or standard input where the name is `-`.
    static func read(_ name: String) throws(CommandFailure) -> ResponseHead {
        try self.parse(try self.bytes(of: name), name: name == "-" ? "standard input" : name)
    }

    /// The last head of the text.
    ///
    /// - Parameter name: what the text is called in messages.
    static func parse(_ bytes: [UInt8], name: String) throws(CommandFailure) -> ResponseHead {
        var last: ResponseHead?
        var head: ResponseHead?
        for (index, line) in self.lines(of: bytes).enumerated() {
            let place = Place(name: name, line: index + 1)
            if var open = head {
                if line.isEmpty {
                    (last, head) = (open, nil)
                } else {
                    try self.append(line, to: &open, at: place)
                    head = open
                }
            } else if line.starts(with: "HTTP/".utf8) {
                head = try self.statusLine(line, at: place)
            } else if last != nil {
                // Content, or the space between two heads.
                if !line.isEmpty { break }
            } else if !line.isEmpty {
                throw place.failure("no status line such as HTTP/1.1 200 OK")
            }
        }
        guard let found = head ?? last else {
            throw CommandFailure(
                .data, "\(name): holds no response head", remedy: "curl -sI URL writes one")
        }
        return found
    }

    /// What the head says of the length of its content.
    static func bodyLength(of head: ResponseHead) -> BodyLength {
        if head.status.forbidsContent { return .none }
        let length = try? MessageFraming.contentLength(of: head.fields)
        return length.map { .known($0) } ?? .unknown
    }

    private struct Place {
        var name: String
        var line: Int

        func failure(_ cause: String) -> CommandFailure {
            CommandFailure(.data, "\(self.name):\(self.line): \(cause)")
        }
    }

    /// The lines without their ends.
    private static func lines(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var lines = bytes.split(separator: ASCII.lf, omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        return lines.map { $0.last == ASCII.cr ? $0.dropLast() : $0 }
    }

    /// `HTTP/1.1 200 OK`, or `HTTP/2 200` as curl writes what has no line of its own.
    private static func statusLine(
        _ line: ArraySlice<UInt8>, at place: Place
    ) throws(CommandFailure) -> ResponseHead {
        let parts = line.split(
            separator: ASCII.space, maxSplits: 2, omittingEmptySubsequences: false)
        let version = String(decoding: (parts.first ?? []).dropFirst(5), as: UTF8.self)
        guard ["1.0", "1.1", "2", "3", "2.0", "3.0"].contains(version) else {
            throw place.failure("no version of HTTP that is known here")
        }
        guard parts.count > 1, parts[1].count == 3, parts[1].allSatisfy(ASCII.isDigit),
            let code = UInt16(String(decoding: parts[1], as: UTF8.self)), code >= 100
        else { throw place.failure("no status code of three digits") }
        let reason = parts.count > 2 ? String(decoding: parts[2], as: UTF8.self) : ""
        return ResponseHead(status: StatusCode(code), reason: reason)
    }

    private static func append(
        _ line: ArraySlice<UInt8>, to head: inout ResponseHead, at place: Place
    ) throws(CommandFailure) {
        if let first = line.first, ASCII.isOWS(first) {
            throw place.failure("a folded field line, which is obsolete (RFC 9112 §5.2)")
        }
        guard let colon = line.firstIndex(of: ASCII.colon) else {
            throw place.failure("a field line without a colon")
        }
        let name = line[..<colon]
        guard name.isToken else { throw place.failure("a field name that is no token") }
        let value = line[(colon + 1)...].trimmingOWS()
        guard value.allSatisfy(ASCII.isFieldValue) else {
            throw place.failure("a control character in a field value")
        }
        head.fields.append(String(decoding: name, as: UTF8.self), value)
    }

    private static func bytes(of name: String) throws(CommandFailure) -> [UInt8] {
        let descriptor = name == "-" ? STDIN_FILENO : unsafe open(name, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(.noInput, "\(name): \(Output.reason(errno))")
        }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        var bytes: [UInt8] = []
        while bytes.count < self.largest {
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = unsafe piece.withUnsafeMutableBytes {
                unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
            }
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw CommandFailure(.inputOutput, "\(name): \(Output.reason(errno))")
            }
            bytes += piece.prefix(count)
        }
        return bytes
    }
}
