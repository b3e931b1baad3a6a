import LarderCookies
import LarderCredentials

/// One thing that a session remembers: what is sealed in a record.
enum StateRecord: Sendable, Equatable {
    /// That a principal has records, and its name.
    case principal(String)
    case cookie(Cookie)
    case credential(Credential, ProtectionSpace)
    case defaultUser(String, ProtectionSpace)
    case named(NamedCredential)
    case transfer(KeptTransfer)

    /// What a record is about; its number stands in the record's key.
    enum Kind: UInt8, Sendable, CaseIterable {
        case principal = 0
        case cookie = 1
        case credential = 2
        /// After the credentials, so that what is loaded in the order of keys can be restored.
        case defaultUser = 3
        case named = 4
        case transfer = 5
    }

    var kind: Kind {
        switch self {
        case .principal: .principal
        case .cookie: .cookie
        case .credential: .credential
        case .defaultUser: .defaultUser
        case .named: .named
        case .transfer: .transfer
        }
    }

    /// The version of what is written by ``write(to:)``.
    private static let version: UInt8 = 1
    /// Records are sealed in multiples of this, so that a length tells little of a password's.
    private static let padding = 64

    /// Version, length, content, zeros.
    func write(to writer: inout RecordWriter) {
        var content = RecordWriter()
        switch self {
        case .principal(let name): content.append(text: name)
        case .cookie(let cookie): CookieRecord.write(cookie, to: &content)
        case .credential(let credential, let space):
            CredentialRecord.write(credential, space, to: &content)
        case .defaultUser(let user, let space):
            CredentialRecord.write(defaultUser: user, space, to: &content)
        case .named(let credential): CredentialRecord.write(credential, to: &content)
        case .transfer(let transfer): KeptTransferRecord.write(transfer, to: &content)
        }
        writer.append(Self.version)
        content.withBytes { writer.append(octets: $0) }
        writer.pad(to: Self.padding)
    }

    /// Reads a record; every byte of it must be as ``write(to:)`` would write it.
    init(_ kind: Kind, _ bytes: Span<UInt8>) throws(RecordFault) {
        var outer = RecordReader()
        guard try outer.byte(bytes) == Self.version else { throw .version }
        let length = Int(try outer.number(bytes, as: UInt32.self))
        let start = 1 + 4
        guard length <= bytes.count - start else { throw .short }
        let end = start + length
        guard bytes.count - end < Self.padding, bytes.count % Self.padding == 0 else {
            throw .long
        }
        for i in end..<bytes.count where bytes[i] != 0 { throw .value }
        let content = bytes.extracting(start..<end)
        var reader = RecordReader()
        switch kind {
        case .principal: self = .principal(try reader.text(content))
        case .cookie: self = .cookie(try CookieRecord.read(content, &reader))
        case .transfer: self = .transfer(try KeptTransferRecord.read(content, &reader))
        case .credential, .defaultUser, .named:
            self = try Self.credential(kind, content, &reader)
        }
        try reader.end(content)
    }

    private static func credential(
        _ kind: Kind, _ content: Span<UInt8>, _ reader: inout RecordReader
    ) throws(RecordFault) -> StateRecord {
        let change: CredentialChange =
            switch kind {
            case .credential: try CredentialRecord.stored(content, &reader)
            case .defaultUser: try CredentialRecord.defaultUser(content, &reader)
            case .principal, .cookie, .named, .transfer:
                try CredentialRecord.named(content, &reader)
            }
        switch change {
        case .stored(let credential, let space): return .credential(credential, space)
        case .defaultChanged(let user?, let space): return .defaultUser(user, space)
        case .named(let credential): return .named(credential)
        case .removed, .namedRemoved, .defaultChanged: throw .value
        }
    }

    /// What tells it from all others of its kind and principal; to be hashed, never to be shown.
    func writeIdentity(to writer: inout RecordWriter) {
        switch self {
        case .principal: break
        case .cookie(let cookie): CookieRecord.write(cookie.identity, to: &writer)
        case .credential(let credential, let space):
            CredentialRecord.write(space, to: &writer)
            writer.append(text: credential.user)
        case .defaultUser(_, let space): CredentialRecord.write(space, to: &writer)
        case .named(let credential): writer.append(text: credential.name)
        case .transfer(let transfer): writer.append(number: transfer.id)
        }
    }
}
