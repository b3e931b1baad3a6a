package import LarderHTTP

/// A transfer that outlives its client and the process: what it takes to ask for it again.
///
/// Its fields may hold what is secret: it lies sealed, as cookies and credentials do.
package struct KeptTransfer: Sendable, Equatable {
    /// Tells it from all others of its principal.
    package var id: UInt64
    /// The target of the GET, as an absolute URI.
    package var uri: String
    package var fields: Fields
    package var begun: Timestamp
    package var requester: Requester

    package init(id: UInt64, uri: String, fields: Fields, begun: Timestamp, requester: Requester) {
        self.id = id
        self.uri = uri
        self.fields = fields
        self.begun = begun
        self.requester = requester
    }

    /// One that is known by its number alone, to name the record of.
    init(placeholderFor id: UInt64) {
        self.init(
            id: id, uri: "", fields: Fields(), begun: Timestamp(microseconds: 0),
            requester: Requester(address: ""))
    }
}

/// A transfer as it lies in a record, before it is sealed.
enum KeptTransferRecord {
    static func write(_ transfer: KeptTransfer, to writer: inout RecordWriter) {
        writer.append(number: transfer.id)
        writer.append(text: transfer.uri)
        writer.append(number: transfer.begun.microseconds)
        writer.append(text: transfer.requester.address)
        writer.append(transfer.requester.uid != nil)
        if let uid = transfer.requester.uid { writer.append(number: uid) }
        writer.append(optional: transfer.requester.user)
        writer.append(number: UInt32(clamping: transfer.fields.lines.count))
        for line in transfer.fields.lines {
            writer.append(octets: Array(transfer.fields.name(of: line)))
            writer.append(octets: Array(transfer.fields.value(of: line)))
        }
    }

    static func read(
        _ record: Span<UInt8>, _ reader: inout RecordReader
    ) throws(RecordFault) -> KeptTransfer {
        let id: UInt64 = try reader.number(record)
        let uri = try reader.text(record)
        let begun = Timestamp(microseconds: try reader.number(record))
        let address = try reader.text(record)
        var requester = Requester(address: address)
        if try reader.flag(record) { requester.uid = try reader.number(record) }
        requester.user = try reader.optionalText(record)
        let count = try reader.number(record, as: UInt32.self)
        var fields = Fields()
        // A count that is too large is found out by the end of the record.
        for _ in 0..<count {
            let name = try reader.text(record)
            let value = try reader.octets(record)
            fields.append(name, value)
            // Bytes that no field may hold were replaced: nobody has written those.
            guard let line = fields.lines.last, fields.name(of: line).elementsEqual(name.utf8),
                fields.value(of: line).elementsEqual(value)
            else { throw .value }
        }
        return KeptTransfer(id: id, uri: uri, fields: fields, begun: begun, requester: requester)
    }
}

extension StateFile {
    /// The transfers of a principal that are not over, in no order.
    package func transfers(of principal: String) throws(StateError) -> [KeptTransfer] {
        try self.records([.transfer], of: principal).compactMap {
            guard case .transfer(let transfer) = $0 else { return nil }
            return transfer
        }
    }

    /// Makes it last that transfers have begun and that others are over, all or none of it.
    package func keep(
        _ begun: [KeptTransfer], forgetting over: [UInt64], of principal: String
    ) throws(StateError) {
        try self.apply(
            begun.map { .put(.transfer($0)) }
                + over.map { .remove(.transfer(KeptTransfer(placeholderFor: $0))) },
            of: principal)
    }
}
