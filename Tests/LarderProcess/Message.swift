import Foundation

/// An HTTP message as it came over the wire, with its content.
struct Message: Sendable {
    /// Request line or status line.
    var line: String
    /// The field lines, without the ends of lines.
    var fields: [String]
    var body: [UInt8] = []
    var trailers: [String] = []

    init(head: String) {
        var lines = head.components(separatedBy: "\r\n").dropLast(2)
        self.line = lines.isEmpty ? "" : lines.removeFirst()
        self.fields = Array(lines)
    }

    /// Of a response.
    var status: Int {
        let words = self.line.split(separator: " ")
        return words.count > 1 ? Int(words[1]) ?? 0 : 0
    }

    /// `Cache-Status` without the number of its `ttl`, which depends on how fast the test runs.
    var cacheStatus: String {
        (self["Cache-Status"] ?? "").replacingOccurrences(
            of: "ttl=-?[0-9]+", with: "ttl", options: .regularExpression)
    }

    /// Of a request.
    var method: String { String(self.line.prefix { $0 != " " }) }

    /// Of a request.
    var target: String {
        let words = self.line.split(separator: " ")
        return words.count > 1 ? String(words[1]) : ""
    }

    var text: String { String(decoding: self.body, as: UTF8.self) }

    /// The value of the first field of that name, whatever its case.
    subscript(name: String) -> String? {
        let start = "\(name.lowercased()):"
        let line = self.fields.first { $0.lowercased().hasPrefix(start) }
        return line.map { $0.dropFirst(start.count).trimmingCharacters(in: .whitespaces) }
    }

    /// All values of that name, one list.
    func list(_ name: String) -> String {
        let start = "\(name.lowercased()):"
        return self.fields.filter { $0.lowercased().hasPrefix(start) }
            .map { $0.dropFirst(start.count).trimmingCharacters(in: .whitespaces) }
            .joined(separator: ", ")
    }

    func has(_ name: String) -> Bool { self[name] != nil }
}

extension Wire {
    /// Reads a head: what must come next.
    func head() async throws -> Message {
        Message(head: try await self.read(through: "\r\n\r\n"))
    }

    /// Reads a message and its content, by its own framing.
    ///
    /// - Parameter method: of the request that this responds to; nil reads a request.
    func message(to method: String? = nil) async throws -> Message {
        var message = try await self.head()
        try await self.content(of: &message, to: method)
        return message
    }

    /// Reads the content that belongs to a head.
    func content(of message: inout Message, to method: String?) async throws {
        if let method {
            let isBodyless =
                method == "HEAD" || [204, 304].contains(message.status)
                || (100..<200).contains(message.status)
            if isBodyless { return }
        }
        if message["Transfer-Encoding"]?.lowercased() == "chunked" {
            (message.body, message.trailers) = try await self.chunks()
        } else if let length = message["Content-Length"].flatMap({ Int($0) }) {
            message.body = try await self.read(length)
        } else if method != nil {
            message.body = try await self.readAll()
        }
    }

    /// Reads a body in chunks.
    func chunks() async throws -> (body: [UInt8], trailers: [String]) {
        var body: [UInt8] = []
        while true {
            let line = try await self.read(through: "\r\n")
            let digits = line.prefix { $0.isHexDigit }
            guard let size = Int(digits, radix: 16) else {
                throw TimedOut(description: "no chunk size: \(line.debugDescription)")
            }
            if size == 0 { break }
            body += try await self.read(size)
            let end = try await self.read(2)
            guard end == [13, 10] else { throw TimedOut(description: "no end of chunk") }
        }
        var trailers: [String] = []
        while true {
            let line = try await self.read(through: "\r\n")
            if line == "\r\n" { return (body, trailers) }
            // CRLF is one `Character`.
            trailers.append(String(line.dropLast(1)))
        }
    }
}
