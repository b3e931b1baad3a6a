import LarderCredentials
import LarderHTTP

/// Credentials as they lie in records, before they are sealed; all of them are permanent.
enum CredentialRecord {
    // MARK: By protection space

    static func write(_ space: ProtectionSpace, to writer: inout RecordWriter) {
        switch space.party {
        case .server(let scheme):
            writer.append(0 as UInt8)
            writer.append(text: scheme.rawValue)
        case .proxy(let kind):
            writer.append(1 as UInt8)
            writer.append(text: kind.rawValue)
        }
        writer.append(text: space.host)
        writer.append(number: space.port)
        writer.append(optional: space.realm)
        writer.append(text: space.method.rawValue)
    }

    private static func space(
        _ record: Span<UInt8>, _ reader: inout RecordReader
    ) throws(RecordFault) -> ProtectionSpace {
        let party: ProtectionSpace.Party
        let isProxy = try reader.flag(record)
        let word = try reader.text(record)
        if isProxy {
            guard let kind = ProtectionSpace.ProxyKind(rawValue: word) else { throw .value }
            party = .proxy(kind)
        } else {
            guard let scheme = Scheme(rawValue: word) else { throw .value }
            party = .server(scheme)
        }
        let host = try reader.text(record)
        let port: UInt16 = try reader.number(record)
        let realm = try reader.optionalText(record)
        guard let method = AuthenticationMethod(rawValue: try reader.text(record)) else {
            throw .value
        }
        let space = ProtectionSpace(
            party: party, host: host, port: port, realm: realm, method: method)
        guard space.host == host else { throw .value }
        return space
    }

    static func write(
        _ credential: Credential, _ space: ProtectionSpace, to writer: inout RecordWriter
    ) {
        Self.write(space, to: &writer)
        writer.append(text: credential.user)
        writer.append(credential.password)
    }

    static func stored(
        _ record: Span<UInt8>, _ reader: inout RecordReader
    ) throws(RecordFault) -> CredentialChange {
        let space = try Self.space(record, &reader)
        let user = try reader.text(record)
        let password = try reader.secret(record)
        return .stored(
            Credential(user: user, password: password, persistence: .permanent), space)
    }

    static func write(
        defaultUser user: String, _ space: ProtectionSpace, to writer: inout RecordWriter
    ) {
        Self.write(space, to: &writer)
        writer.append(text: user)
    }

    static func defaultUser(
        _ record: Span<UInt8>, _ reader: inout RecordReader
    ) throws(RecordFault) -> CredentialChange {
        let space = try Self.space(record, &reader)
        return .defaultChanged(user: try reader.text(record), space)
    }

    // MARK: By name

    static func write(_ credential: NamedCredential, to writer: inout RecordWriter) {
        writer.append(text: credential.name)
        switch credential.kind {
        case .password(let user, let password):
            writer.append(0 as UInt8)
            writer.append(text: user)
            writer.append(password)
        case .bearer(let token):
            writer.append(1 as UInt8)
            writer.append(token)
        case .field(let name, let value):
            writer.append(2 as UInt8)
            writer.append(text: name)
            writer.append(value)
        }
    }

    static func named(
        _ record: Span<UInt8>, _ reader: inout RecordReader
    ) throws(RecordFault) -> CredentialChange {
        let name = try reader.text(record)
        guard NamedCredential.isName(name) else { throw .value }
        let kind: NamedCredential.Kind
        switch try reader.byte(record) {
        case 0:
            let user = try reader.text(record)
            kind = .password(user: user, password: try reader.secret(record))
        case 1: kind = .bearer(try reader.secret(record))
        case 2:
            let field = try reader.text(record)
            kind = .field(name: field, value: try reader.secret(record))
        default: throw .value
        }
        return .named(NamedCredential(name: name, kind: kind, persistence: .permanent))
    }
}
