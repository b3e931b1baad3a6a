import LarderCookies
import LarderHTTP

/// A cookie as it lies in a record, before it is sealed.
enum CookieRecord {
    private static let hostOnly: UInt8 = 1
    private static let secure: UInt8 = 2
    private static let httpOnly: UInt8 = 4
    /// In the order of their numbers; never to be reordered.
    private static let sameSites: [SameSite] = [.unspecified, .none, .lax, .strict]

    static func write(_ cookie: Cookie, to writer: inout RecordWriter) {
        writer.append(octets: cookie.name)
        writer.append(octets: cookie.value)
        writer.append(text: cookie.domain)
        writer.append(text: cookie.path)
        var flags: UInt8 = 0
        if cookie.isHostOnly { flags |= Self.hostOnly }
        if cookie.isSecure { flags |= Self.secure }
        if cookie.isHTTPOnly { flags |= Self.httpOnly }
        writer.append(flags)
        let sameSite: UInt8 =
            switch cookie.sameSite {
            case .unspecified: 0
            case .none: 1
            case .lax: 2
            case .strict: 3
            }
        writer.append(sameSite)
        writer.append(number: cookie.creation.microseconds)
        writer.append(number: cookie.lastAccess.microseconds)
        writer.append(cookie.expiry != nil)
        if let expiry = cookie.expiry { writer.append(number: expiry.microseconds) }
    }

    static func read(
        _ record: Span<UInt8>, _ reader: inout RecordReader
    ) throws(RecordFault) -> Cookie {
        let name = try reader.octets(record)
        let value = try reader.octets(record)
        let domain = try reader.text(record)
        let path = try reader.text(record)
        let flags = try reader.byte(record)
        let sameSite = Int(try reader.byte(record))
        guard flags & ~(Self.hostOnly | Self.secure | Self.httpOnly) == 0,
            Self.sameSites.indices.contains(sameSite), path.hasPrefix("/"), !domain.isEmpty
        else { throw .value }
        let creation = Timestamp(microseconds: try reader.number(record))
        let lastAccess = Timestamp(microseconds: try reader.number(record))
        var expiry: Timestamp?
        if try reader.flag(record) { expiry = Timestamp(microseconds: try reader.number(record)) }
        return Cookie(
            name: name, value: value, domain: domain, isHostOnly: flags & Self.hostOnly != 0,
            path: path, isSecure: flags & Self.secure != 0, isHTTPOnly: flags & Self.httpOnly != 0,
            sameSite: Self.sameSites[sameSite], creation: creation, lastAccess: lastAccess,
            expiry: expiry)
    }

    /// What tells it from every other cookie, to be hashed.
    static func write(_ identity: Cookie.Identity, to writer: inout RecordWriter) {
        writer.append(octets: identity.name)
        writer.append(text: identity.domain)
        writer.append(identity.isHostOnly)
        writer.append(text: identity.path)
    }
}
