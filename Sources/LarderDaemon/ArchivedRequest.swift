import LarderArchive
import LarderHTTP
import NIOCore

/// A request of an archive, and what tells to which response it belongs.
struct ArchivedRequest {
    var recordID: String?
    var concurrentTo: [String]
    var targetURI: String?
    var date: Timestamp?
    var head: RequestHead

    /// nil where the block is no request.
    init?(_ record: WARCHead, _ block: inout ByteBuffer) {
        var parser = RequestHeadParser(
            limits: HeadLimits(startLine: 65_536, head: 262_144, fieldCount: 512))
        guard let head = try? parser.parse(&block) else { return nil }
        self.recordID = record.recordID
        self.concurrentTo = record.concurrentTo
        self.targetURI = record.targetURI
        self.date = record.date
        self.head = head
    }

    /// One that stands beside its response.
    init(_ head: RequestHead) {
        self.concurrentTo = []
        self.head = head
    }

    /// Whether it led to a response: one of the two names the other, or neither names any and they
    /// are about one URI at one time.
    func belongs(to response: WARCHead) -> Bool {
        if let id = self.recordID, response.concurrentTo.contains(id) { return true }
        if let id = response.recordID, self.concurrentTo.contains(id) { return true }
        return response.concurrentTo.isEmpty && self.concurrentTo.isEmpty
            && self.targetURI != nil && self.targetURI == response.targetURI
            && self.date != nil && self.date == response.date
    }

    /// What a session would have seen of it: end-to-end fields alone.
    func request(to uri: TargetURI) -> Request {
        var fields = Fields()
        let named = HopByHop.connectionOptions(self.head.fields).map { FieldName($0) }
        for line in self.head.fields.lines {
            switch line.known {
            case .host, .contentLength, .transferEncoding, .expect: continue
            default: break
            }
            if HopByHop.isConnectionField(line.known) { continue }
            if named.contains(where: { self.head.fields.matches(line, $0) }) { continue }
            fields.append(line, of: self.head.fields)
        }
        return Request(
            method: self.head.method, uri: uri, fields: fields, bodyLength: self.head.bodyLength)
    }
}

/// The requests that came last: a response is seldom far behind its own.
struct ArchivedRequests {
    private var recent: [ArchivedRequest] = []
    private var next = 0
    private static let most = 64

    mutating func add(_ request: ArchivedRequest) {
        if self.recent.count < Self.most {
            self.recent.append(request)
        } else {
            self.recent[self.next] = request
        }
        self.next = (self.next + 1) % Self.most
    }

    func first(for response: WARCHead) -> ArchivedRequest? {
        self.recent.first { $0.belongs(to: response) }
    }
}
