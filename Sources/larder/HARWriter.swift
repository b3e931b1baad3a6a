import LarderArchive
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy

/// Writes stored responses as entries of a HAR file (HTTP Archive 1.2), one after the other.
///
/// Bodies are written as they are read: as text where all of one is UTF-8 and it is not coded, else in
/// base 64. Which, is known when all of it has been read once. What HAR has no name for stands in
/// `_larder`, as custom fields may; an import gives it back.
final class HARWriter: ExportFormat {
    private let output: ArchiveFile
    private let source: ExportSource
    private let longestEntry: Int
    private(set) var summary = ExportSummary()
    private var isFirst = true

    /// - Parameter longestEntry: bytes of JSON; what takes more is left out.
    init(
        _ output: ArchiveFile, source: ExportSource,
        longestEntry: Int = HARSplitter.longestEntry
    ) {
        self.output = output
        self.source = source
        self.longestEntry = longestEntry
    }

    func begin() throws {
        try self.output.write(
            Array(
                #"{"log":{"version":"1.2","creator":{"name":"larder","version":\#(JSONText.of(Release.number))},"entries":["#
                    .utf8))
    }

    func end() throws {
        try self.output.write(Array("\n]}}\n".utf8))
        self.summary.fileBytes = self.output.count
    }

    func write(_ object: InspectedObject) throws {
        let place = self.output.count
        let (before, wasFirst) = (self.summary, self.isFirst)
        do {
            try self.source.check(object)
            let objectID = UUIDText.urn()
            let ranges = object.head.extent?.ranges ?? [0..<object.bodyLength]
            // Before the first is written: from standard output nothing can be taken back.
            let plans = try ranges.enumerated().map { index, range in
                try self.plan(
                    ArchivedResponse(object, range, index, of: ranges.count), of: object, range,
                    objectID: objectID)
            }
            for plan in plans { try self.write(plan, of: object, objectID: objectID) }
            self.summary.responses += 1
            self.summary.fileBytes = self.output.count
        } catch let refusal as ExportRefusal {
            self.summary = before
            self.isFirst = wasFirst
            self.summary.leave(out: refusal)
            try self.output.takeBack(to: place)
        }
    }

    // MARK: Entries

    /// What is known of an entry before it is written.
    private struct Plan {
        let response: ArchivedResponse
        let range: Range<UInt64>
        /// Whether its content stands there as it is, but for what JSON has escaped.
        let isText: Bool
    }

    private func plan(
        _ response: ArchivedResponse, of object: InspectedObject, _ range: Range<UInt64>,
        objectID: String
    ) throws -> Plan {
        for fields in [response.fields, response.varyingFields, response.trailers] {
            guard Self.isText(fields) else { throw ExportRefusal.headNotText }
        }
        // No byte of the content takes less than one of the entry.
        guard let length = Int(exactly: response.contentLength), length <= self.longestEntry else {
            throw ExportRefusal.tooLarge
        }
        var check = UTF8Check()
        var escapedLength = 0
        let isCoded = response.fields.contains(FieldName(.contentEncoding))
        try self.source.read(object, range) { piece in
            if isCoded { return }
            check.take(piece)
            escapedLength += JSONText.escaped(piece).count
        }
        let plan = Plan(
            response: response, range: range, isText: !isCoded && check.isWhole)
        let rest = Self.opening(of: plan, objectID: objectID).utf8.count + Self.closing.utf8.count
        let content = plan.isText ? escapedLength : (length + 2) / 3 * 4
        guard rest + content <= self.longestEntry else { throw ExportRefusal.tooLarge }
        return plan
    }

    private func write(_ plan: Plan, of object: InspectedObject, objectID: String) throws {
        try self.output.write(Array((self.isFirst ? "\n" : ",\n").utf8))
        self.isFirst = false
        try self.output.write(Array(Self.opening(of: plan, objectID: objectID).utf8))
        if plan.isText {
            try self.source.read(object, plan.range) { piece in
                try self.output.write(JSONText.escaped(piece))
            }
        } else {
            var base64 = Base64Stream()
            try self.source.read(object, plan.range) { try self.output.write(base64.take($0)) }
            try self.output.write(base64.finish())
        }
        try self.output.write(Array(Self.closing.utf8))
        self.summary.records += 1
        self.summary.bodyBytes += plan.response.contentLength
    }

    /// Whether a text can say what these fields hold: it need not be UTF-8 (RFC 9110 §5.5, obs-text).
    private static func isText(_ fields: Fields) -> Bool {
        fields.lines.allSatisfy { line in
            var check = UTF8Check()
            check.take(fields.value(of: line))
            return check.isWhole
        }
    }

    /// From the beginning to the first byte of the content.
    private static func opening(of plan: Plan, objectID: String) -> String {
        Self.head(of: plan.response, objectID: objectID) + Self.contentHead(of: plan.response)
            + (plan.isText ? #","text":""# : #","encoding":"base64","text":""#)
    }

    /// What follows behind its last one.
    private static let closing = "\"}}}"

    /// From the beginning to the response's own members, its content excepted.
    private static func head(of response: ArchivedResponse, objectID: String) -> String {
        let request = Self.fields(of: response.requestHead())
        let time = max(0, (response.responseTime - response.requestTime).inMicroseconds) / 1000
        var larder = response.larderFields(object: objectID)
        larder.append("WARC-Date", WARCDate.format(response.responseTime))
        var text = #"{"startedDateTime":\#(JSONText.of(WARCDate.format(response.requestTime)))"#
        text += #","time":\#(time),"request":{"method":\#(JSONText.of(response.method.rawValue))"#
        text += #","url":\#(JSONText.of(response.uri.description)),"httpVersion":"HTTP/1.1""#
        text += #","cookies":[],"headers":\#(Self.pairs(request))"#
        text += #","queryString":\#(Self.query(of: response.uri))"#
        text += #","headersSize":-1,"bodySize":0},"cache":{}"#
        text += #","timings":{"send":0,"wait":\#(time),"receive":0}"#
        text += #","_larder":\#(Self.pairs(larder)),"response":{"#
        return text
    }

    /// The response up to its content's text.
    private static func contentHead(of response: ArchivedResponse) -> String {
        let head = try? ResponseHeadParser.parse(block: response.responseHead().span)
        let fields = head?.fields ?? response.fields
        let status = head?.status ?? response.status
        var text = #""status":\#(status),"statusText":\#(JSONText.of(head?.reason ?? ""))"#
        text += #","httpVersion":"HTTP/1.1","cookies":\#(Self.cookies(of: fields))"#
        text += #","headers":\#(Self.pairs(fields))"#
        text += #","redirectURL":\#(JSONText.of(fields.string(FieldName(.location)) ?? ""))"#
        text += #","headersSize":-1,"bodySize":\#(response.contentLength)"#
        text += #","content":{"size":\#(response.contentLength)"#
        text += #","mimeType":\#(JSONText.of(fields.string(FieldName(.contentType)) ?? ""))"#
        return text
    }

    /// The fields of a request head that this wrote.
    private static func fields(of head: [UInt8]) -> Fields {
        var fields = Fields()
        for line in head.split(separator: ASCII.lf).dropFirst() {
            guard let colon = line.firstIndex(of: ASCII.colon) else { continue }
            fields.append(
                String(decoding: line[..<colon], as: UTF8.self),
                line[(colon + 1)...].dropLast().drop { ASCII.isOWS($0) })
        }
        return fields
    }

    private static func pairs(_ fields: Fields) -> String {
        Self.list(fields.pairs.map { ($0.name, $0.value) })
    }

    private static func list(_ pairs: [(String, String)]) -> String {
        let members = pairs.map {
            #"{"name":\#(JSONText.of($0.0)),"value":\#(JSONText.of($0.1))}"#
        }
        return "[\(members.joined(separator: ","))]"
    }

    private static func query(of uri: TargetURI) -> String {
        guard let mark = uri.pathAndQuery.firstIndex(of: "?") else { return "[]" }
        let query = uri.pathAndQuery[uri.pathAndQuery.index(after: mark)...]
        return Self.list(
            query.split(separator: "&").map { pair in
                let parts = pair.split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (String(parts.first ?? ""), parts.count > 1 ? String(parts[1]) : "")
            })
    }

    private static func cookies(of fields: Fields) -> String {
        Self.list(
            fields.values(FieldName(.setCookie)).compactMap { line in
                let pair = line.prefix { $0 != ASCII.semicolon }
                guard let equals = pair.firstIndex(of: ASCII.equals) else { return nil }
                return (
                    String(decoding: pair[..<equals], as: UTF8.self),
                    String(decoding: pair[(equals + 1)...], as: UTF8.self)
                )
            })
    }
}

/// Text as JSON has it (RFC 8259 §7).
enum JSONText {
    static func of(_ text: String) -> String {
        "\"" + String(decoding: self.escaped(Array(text.utf8)), as: UTF8.self) + "\""
    }

    /// Bytes of UTF-8 with those escaped that must not stand in a string.
    static func escaped(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count + bytes.count / 16)
        let digits = Array("0123456789abcdef".utf8)
        for byte in bytes {
            switch byte {
            case 0x22, 0x5C: out += [0x5C, byte]
            case 0x0A: out += [0x5C, UInt8(ascii: "n")]
            case 0x0D: out += [0x5C, UInt8(ascii: "r")]
            case 0x09: out += [0x5C, UInt8(ascii: "t")]
            case 0..<0x20:
                out += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: out.append(byte)
            }
        }
        return out
    }
}

/// Base 64 (RFC 4648 §4) of bytes that come in pieces.
struct Base64Stream {
    private static let letters = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private var rest: [UInt8] = []

    mutating func take(_ piece: [UInt8]) -> [UInt8] {
        let bytes = self.rest + piece
        let whole = bytes.count / 3 * 3
        self.rest = Array(bytes[whole...])
        var out: [UInt8] = []
        out.reserveCapacity(whole / 3 * 4)
        for start in stride(from: 0, to: whole, by: 3) {
            let group =
                Int(bytes[start]) << 16 | Int(bytes[start + 1]) << 8 | Int(bytes[start + 2])
            for shift in [18, 12, 6, 0] { out.append(Self.letters[group >> shift & 63]) }
        }
        return out
    }

    mutating func finish() -> [UInt8] {
        guard let first = self.rest.first else { return [] }
        let second = self.rest.count > 1 ? self.rest[1] : 0
        let group = Int(first) << 16 | Int(second) << 8
        let count = self.rest.count
        self.rest = []
        var out = [18, 12, 6].map { Self.letters[group >> $0 & 63] }
        if count == 1 { out[2] = UInt8(ascii: "=") }
        return out + [UInt8(ascii: "=")]
    }
}
