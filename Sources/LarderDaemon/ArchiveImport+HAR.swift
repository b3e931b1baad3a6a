import LarderArchive
import LarderHTTP
import LarderPolicy
import NIOCore

// HAR files: entry by entry, each judged as a record of a WARC file is.
extension ArchiveImport {
    /// Reads all entries; false where the document is not whole.
    ///
    /// - Parameters:
    ///   - first: bytes that were read already.
    ///   - more: reads on; nil at the end.
    func takeEntries(
        _ first: ByteBuffer, more: () throws -> ByteBuffer?,
        refuse: (Refusal, _ entry: UInt64) -> Void, read: (UInt64) -> Void
    ) throws -> Bool {
        var splitter = HARSplitter(limit: HARSplitter.longestEntry)
        var number: UInt64 = 0
        var piece: ByteBuffer? = first
        while let bytes = piece {
            guard !self.target.isCancelled() else { throw Cancelled() }
            for event in splitter.push(bytes.readableBytesView) {
                number += 1
                do {
                    try self.take(event)
                } catch let refusal as Refusal {
                    refuse(refusal, number)
                }
            }
            read(splitter.position)
            piece = try more()
        }
        return splitter.isWhole
    }

    private func take(_ event: HARSplitter.Event) throws {
        let json: [UInt8]
        switch event {
        case .entry(let bytes): json = bytes
        case .tooLarge: throw Refusal("too-large")
        case .failed(.malformed(let offset)):
            throw Refusal("malformed", "no JSON at byte \(offset)")
        case .failed(.tooDeep(let offset)):
            throw Refusal("malformed", "too many brackets in each other at byte \(offset)")
        }
        guard let entry = HAREntry(json) else {
            throw Refusal("malformed", "the entry cannot be read")
        }
        guard let uri = TargetURI(text: entry.url) else { throw Refusal("no-uri") }
        guard (200..<600).contains(entry.status), let code = UInt16(exactly: entry.status) else {
            throw Refusal("no-response")
        }
        guard let content = entry.content else { throw Refusal("no-content") }
        var record = Fields()
        record.append("WARC-Target-URI", uri.description)
        record.append(contentsOf: entry.larder)
        let head = WARCHead(type: "response", contentLength: 0, fields: record)
        var fields = entry.fields
        if !ArchivedResponse.isOwn(head) {
            // What a browser shows is the content without its coding, and not what its tag names.
            guard !fields.contains(FieldName(.contentEncoding)) else {
                throw Refusal("content-decoded")
            }
            fields.remove(FieldName(.contentLength))
            fields.remove(FieldName(.transferEncoding))
        }
        let received = min(head.date ?? entry.started, self.target.now())
        let request = ArchivedRequest(
            RequestHead(
                method: entry.method, target: .absolute(uri), fields: entry.requestFields,
                bodyLength: entry.requestHasBody ? .unknown : .none))
        try self.store(
            Found(record: head, uri: uri, date: received, request: request),
            ResponseHead(status: StatusCode(code), reason: entry.reason, fields: fields), content)
    }
}
