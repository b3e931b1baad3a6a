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
final class WARCWriter: ExportFormat {
    private let output: ArchiveFile
    private let source: ExportSource
    private let session: String
    private let name: String?
    private var infoID = ""
    private(set) var summary = ExportSummary()

    /// Bodies up to this are held while they are written.
    private static let held: UInt64 = 8 << 20

    init(
        _ output: ArchiveFile, source: ExportSource, session: String, name: String?
    ) {
        self.output = output
        self.source = source
        self.session = session
        self.name = name
    }

    func end() throws { self.summary.fileBytes = self.output.count }

    /// Writes the `warcinfo` record.
    func begin() throws {
        self.infoID = UUIDText.urn()
        let lines = [
            "software: \(Release.line)", "format: WARC File Format 1.1",
            "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/"
                + "warc-1.1/",
            "description: what the session \(self.session) of a caching proxy has stored",
        ]
        let block = Array(lines.map { $0 + "\r\n" }.joined().utf8)
        var fields = self.fields(id: self.infoID, date: self.source.start)
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
        let before = self.summary
        do {
            try self.writeAll(object)
            self.summary.responses += 1
            self.summary.fileBytes = self.output.count
        } catch let refusal as ExportRefusal {
            self.summary = before
            self.summary.leave(out: refusal)
            try self.output.takeBack(to: place)
        }
    }

    private func writeAll(_ object: InspectedObject) throws {
        try self.source.check(object)
        let ranges = object.head.extent?.ranges ?? [0..<object.bodyLength]
        let objectID = UUIDText.urn()
        var bodyBytes: UInt64 = 0
        for (index, range) in ranges.enumerated() {
            let response = try ArchivedResponse(object, range, index, of: ranges.count)
            try self.write(response, of: object, range, objectID: objectID)
            bodyBytes += range.upperBound - range.lowerBound
        }
        self.summary.bodyBytes += bodyBytes
    }

    // MARK: Records

    private func write(
        _ response: ArchivedResponse, of object: InspectedObject, _ range: Range<UInt64>,
        objectID: String
    ) throws {
        let head = response.responseHead()
        guard ResponseBlock.canRead(head, to: response.method) else {
            throw ExportRefusal.headTooLarge
        }
        let body = try self.hash(object, range, behind: head)
        let requestID = UUIDText.urn()
        let responseID = UUIDText.urn()
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
        try self.write(WARCHead(type: "response", contentLength: length, fields: fields))
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
        try self.write(head)
        try self.output.write(block)
        try self.output.write(WARCHead.end)
        self.summary.records += 1
    }

    /// Writes the head of a record, if an import takes it.
    private func write(_ head: WARCHead) throws {
        guard head.isReadable else { throw ExportRefusal.headTooLarge }
        try self.output.write(head.serialized())
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
        /// The digest of the HTTP head and the payload.
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
        try self.source.read(object, range) { piece in
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
        try self.source.read(object, range) { piece in
            hash.update(data: piece)
            try self.output.write(piece)
        }
        guard hash.finalize() == digest else { throw ExportRefusal.damaged }
    }

    // MARK: Names

    private static func digest(_ digest: SHA256Digest) -> String {
        "sha256:" + digest.map { UUIDText.hex($0) }.joined()
    }
}
