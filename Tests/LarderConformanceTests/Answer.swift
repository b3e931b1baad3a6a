/// What an origin answers to one step's requests.
struct Answer: Sendable {
    struct Interim: Sendable {
        var status: String
        var fields: [String]
    }

    enum End: Sendable, Equatable {
        case whole
        case refused
        case brokenOff(after: Int)
    }

    var status = "200 OK"
    /// Field lines; one that begins with a minus takes away a field that is added otherwise.
    var fields: [String] = []
    /// nil is a text of the step's own.
    var content: String?
    var trailers: [String] = []
    var interims: [Interim] = []
    var end = End.whole
    /// A request with this field is answered 304, without content.
    var notModifiedIf: String?

    var code: Int { Int(self.status.prefix(3)) ?? 0 }

    /// - Parameter number: of the step, from 1.
    func content(ofStep number: Int) -> String {
        if [204, 304].contains(self.code) { return "" }
        return self.content ?? "content of step \(number)"
    }

    private func has(_ name: String) -> Bool {
        let start = "\(name.lowercased()):"
        return self.fields.contains { line in
            line.lowercased().hasPrefix(start) || line.lowercased() == "-\(name.lowercased())"
        }
    }

    /// The bytes before the content.
    ///
    /// Content comes in chunks unless a length is given or it will break off: the end of a chunked
    /// body reaches a client when it is stored, so that the next step finds it.
    func head(_ content: String, isNotModified: Bool, words: Words) -> (text: String, chunks: Bool)
    {
        var lines = ["HTTP/1.1 \(isNotModified ? "304 Not Modified" : self.status)"]
        if !self.has("Date") { lines.append("Date: {date}") }
        lines += self.fields.filter { !$0.hasPrefix("-") }
        let isBodyless = isNotModified || [204, 304].contains(self.code)
        var chunks = false
        if !isBodyless, !self.has("Content-Length") {
            if case .brokenOff = self.end {
                lines.append("Content-Length: \(content.utf8.count)")
            } else if !self.has("Transfer-Encoding") {
                lines.append("Transfer-Encoding: chunked")
                chunks = true
            }
        }
        let text = lines.map { words.said($0) + "\r\n" }.joined() + "\r\n"
        return (text, chunks)
    }

    /// The interim responses, one after the other.
    func interimText(_ words: Words) -> String {
        self.interims.map { interim in
            let lines = ["HTTP/1.1 \(interim.status)"] + interim.fields
            return lines.map { words.said($0) + "\r\n" }.joined() + "\r\n"
        }.joined()
    }

    static func chunk(_ text: String) -> String {
        text.isEmpty ? "" : "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n"
    }

    func lastChunk(_ words: Words) -> String {
        "0\r\n" + self.trailers.map { words.said($0) + "\r\n" }.joined() + "\r\n"
    }
}
