import Crypto
import LarderArchive
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy

/// Writes stored responses to a WARC file, each as a `request` and a `response` record.
///
/// A digest stands before the content that it is of, and a response that turns out to be damaged must
/// not be in the file: so a body is read twice, once for its digest and to see that it is sound, once
/// to be written. One that fits into memory is read once.
final class WARCWriter {
    private let output: ArchiveFile
    private let inspector: DiskInspector
    private let session: String
    private let name: String?
    private let start: Timestamp
    private var infoID = ""
    private(set) var summary = ExportSummary()

    /// Bodies up to this are held while they are written.
    private static let held: UInt64 = 8 << 20

    init(
        _ output: ArchiveFile, inspector: DiskInspector, session: String, name: String?,
        startMicroseconds: Int64
    ) {
        self.output = output
        self.inspector = inspector
        self.session = session
        self.name = name
        self.start = Timestamp(microseconds: startMicroseconds)
    }

    /// Writes the `warcinfo` record.
    func begin() throws {
        self.infoID = Self.newID()
        let lines = [
            "software: \(Release.line)", "format: WARC File Format 1.1",
            "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/"
                + "warc-1.1/",
            "description: what the session \(self.session) of a caching proxy has stored",
        ]
        let block = Array(lines.map { $0 + "\r\n" }.joined().utf8)
        var fields = self.fields(id: self.infoID, date: self.start)
        if let name {
            fields.append("WARC-Filename", String(name.split(separator: "/").last ?? ""))
        }
        fields.append("WARC-Block-Digest", Self.digest(SHA256.hash(data: block)))
        fields.append("Content-Type", "application/warc-fields")
        try self.record("warcinfo", fields, block)
    }

    /// Writes a stored response, or counts why it is left out.
    func write(_ object: InspectedObject) throws {
        let place = self.output.count
        do {
            try self.writeAll(object)
            self.summary.responses += 1
            self.summary.fileBytes = self.output.count
        } catch let refusal as ExportRefusal {
            self.summary.leave(out: refusal)
            guard self.output.count > place else { return }
            guard self.output.canUndo else {
                throw CommandFailure(
                    .inputOutput, "a response changed while it was written to standard output",
                    remedy: "export to a file, which can be mended")
            }
            try self.output.undo(to: place)
        }
    }

    private func writeAll(_ object: InspectedObject) throws {
        guard object.head.storedTime <= self.start else { throw ExportRefusal.later }
        let ranges = object.head.extent?.ranges ?? [0..<object.bodyLength]
        let objectID = Self.newID()
        var bodyBytes: UInt64 = 0
        for (index, range) in ranges.enumerated() {
            let response = try Self.archived(object, range, index, of: ranges.count)
            try self.write(response, of: object, range, objectID: objectID)
            bodyBytes += range.upperBound - range.lowerBound
        }
        self.summary.bodyBytes += bodyBytes
    }

    /// A response, or a part of one, as an archive has it.
    private static func archived(
        _ object: InspectedObject, _ range: Range<UInt64>, _ index: Int, of count: Int
    ) throws(ExportRefusal) -> ArchivedResponse {
        let parts = object.key.parts
        guard var uri = TargetURI(text: parts.uri) else { throw .unnameable }
        if let own = object.head.pathAndQuery { uri.pathAndQuery = own }
        let key = CacheKey(
            method: Method(rawValue: parts.method), uri: uri, partition: parts.partition)
        guard key == object.key || key.withoutSearch == object.key else { throw .unnameable }
        let head = object.head
        var response = ArchivedResponse(
            uri: uri, status: head.status, reason: head.reason, fields: head.fields,
            requestTime: head.requestTime, responseTime: head.responseTime,
            storedTime: head.storedTime, lastUsed: object.lastUsed,
            contentLength: range.upperBound - range.lowerBound)
        response.partition = parts.partition
        response.method = head.method
        response.varyingFields = head.varyingFields
        response.trailers = object.trailers
        response.hits = object.hits
        response.isInvalidated = head.isInvalidated
        if let extent = head.extent {
            response.part = ArchivedResponse.Part(
                range: range, completeLength: extent.completeLength, index: index, count: count)
        }
        return response
    }

    // MARK: Records

    private func write(
        _ response: ArchivedResponse, of object: InspectedObject, _ range: Range<UInt64>,
        objectID: String
    ) throws {
        let head = response.responseHead()
        let body = try self.hash(object, range, behind: head)
        let requestID = Self.newID()
        let responseID = Self.newID()
        let uri = response.uri.description
        let request = response.requestHead()
        var fields = self.fields(id: requestID, date: response.responseTime, uri: uri)
        fields.append("WARC-Concurrent-To", responseID)
        fields.append("WARC-Block-Digest", Self.digest(SHA256.hash(data: request)))
        fields.append("Content-Type", "application/http; msgtype=request")
        try self.record("request", fields, request)
        fields = self.fields(id: responseID, date: response.responseTime, uri: uri)
        fields.append("WARC-Concurrent-To", requestID)
        fields.append("WARC-Block-Digest", Self.digest(body.block))
        fields.append("WARC-Payload-Digest", Self.digest(body.payload))
        fields.append("Content-Type", "application/http; msgtype=response")
        fields.append(contentsOf: response.larderFields(object: objectID))
        let length = UInt64(head.count) + response.contentLength
        try self.output.write(
            WARCHead(type: "response", contentLength: length, fields: fields).serialized())
        try self.output.write(head)
        if let held = body.held {
            try self.output.write(held)
        } else {
            try self.copy(object, range, expecting: body.payload)
        }
        try self.output.write(WARCHead.end)
        self.summary.records += 1
    }

    private func record(_ type: String, _ fields: Fields, _ block: [UInt8]) throws {
        let head = WARCHead(type: type, contentLength: UInt64(block.count), fields: fields)
        try self.output.write(head.serialized())
        try self.output.write(block)
        try self.output.write(WARCHead.end)
        self.summary.records += 1
    }

    private func fields(id: String, date: Timestamp, uri: String? = nil) -> Fields {
        var fields = Fields()
        if let uri { fields.append("WARC-Target-URI", uri) }
        fields.append("WARC-Date", WARCDate.format(date))
        fields.append("WARC-Record-ID", id)
        if id != self.infoID { fields.append("WARC-Warcinfo-ID", self.infoID) }
        return fields
    }

    // MARK: Bodies

    private struct Hashed {
        var payload: SHA256Digest
        /// Of the HTTP head and the payload.
        var block: SHA256Digest
        /// The body, where it is small.
        var held: [UInt8]?
    }

    private func hash(
        _ object: InspectedObject, _ range: Range<UInt64>, behind head: [UInt8]
    ) throws -> Hashed {
        var payload = SHA256()
        var block = SHA256()
        block.update(data: head)
        var held: [UInt8]? = range.upperBound - range.lowerBound <= Self.held ? [] : nil
        try self.read(object, range) { piece in
            payload.update(data: piece)
            block.update(data: piece)
            held?.append(contentsOf: piece)
        }
        return Hashed(payload: payload.finalize(), block: block.finalize(), held: held)
    }

    private func copy(
        _ object: InspectedObject, _ range: Range<UInt64>, expecting digest: SHA256Digest
    ) throws {
        var hash = SHA256()
        try self.read(object, range) { piece in
            hash.update(data: piece)
            try self.output.write(piece)
        }
        guard hash.finalize() == digest else { throw ExportRefusal.damaged }
    }

    private func read(
        _ object: InspectedObject, _ range: Range<UInt64>, _ piece: ([UInt8]) throws -> Void
    ) throws {
        do {
            try self.inspector.readBytes(of: object, range, piece)
        } catch let error as StoreError {
            switch error.code {
            case .closed: throw ExportRefusal.removed
            case .damaged: throw ExportRefusal.damaged
            default: throw error
            }
        }
    }

    // MARK: Names

    private static func digest(_ digest: SHA256Digest) -> String {
        "sha256:" + digest.map { Self.hex($0) }.joined()
    }

    private static func hex(_ byte: UInt8) -> String {
        let text = String(byte, radix: 16)
        return byte < 16 ? "0" + text : text
    }

    /// A random UUID (RFC 9562 §5.4) as a URI.
    private static func newID() -> String {
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        var text = ""
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text += "-" }
            text += Self.hex(byte)
        }
        return "<urn:uuid:\(text)>"
    }
}
