import LarderArchive
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore

/// A kind of file that stored responses are written to.
protocol ExportFormat: AnyObject {
    var summary: ExportSummary { get }
    func begin() throws
    /// Writes a stored response, or counts why it is left out.
    func write(_ object: InspectedObject) throws
    func end() throws
}

/// Where an export reads from, and what it takes.
struct ExportSource {
    private let inspector: DiskInspector
    let start: Timestamp
    /// Ids from this one on were given out later; times say nothing where the clock was set back.
    private let end: ObjectID

    init(_ inspector: DiskInspector, startMicroseconds: Int64) throws(StoreError) {
        self.inspector = inspector
        self.start = Timestamp(microseconds: startMicroseconds)
        self.end = try inspector.nextID()
    }

    func check(_ object: InspectedObject) throws(ExportRefusal) {
        guard object.id < self.end else { throw .later }
    }

    /// Reads stored bytes, each verified before.
    func read(
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
}

extension ArchivedResponse {
    /// A stored response, or a part of one, as an archive has it.
    init(
        _ object: InspectedObject, _ range: Range<UInt64>, _ index: Int, of count: Int
    ) throws(ExportRefusal) {
        let parts = object.key.parts
        guard var uri = TargetURI(text: parts.uri) else { throw .unnameable }
        if let own = object.head.pathAndQuery { uri.pathAndQuery = own }
        let key = CacheKey(
            method: Method(rawValue: parts.method), uri: uri, partition: parts.partition)
        guard key == object.key || key.withoutSearch == object.key else { throw .unnameable }
        let head = object.head
        self.init(
            uri: uri, status: head.status, reason: head.reason, fields: head.fields,
            requestTime: head.requestTime, responseTime: head.responseTime,
            storedTime: head.storedTime, lastUsed: object.lastUsed,
            contentLength: range.upperBound - range.lowerBound)
        self.partition = parts.partition
        self.method = head.method
        self.varyingFields = head.varyingFields
        self.trailers = object.trailers
        self.hits = object.hits
        self.isInvalidated = head.isInvalidated
        self.answersCredentials = head.answersCredentials
        if let extent = head.extent {
            self.part = Part(
                range: range, completeLength: extent.completeLength, index: index, count: count)
        }
    }
}

/// Names that nobody else gives.
enum UUIDText {
    /// A random UUID (RFC 9562 §5.4) as a URI in brackets, as WARC names records.
    static func urn() -> String {
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

    static func hex(_ byte: UInt8) -> String {
        let text = String(byte, radix: 16)
        return byte < 16 ? "0" + text : text
    }
}
