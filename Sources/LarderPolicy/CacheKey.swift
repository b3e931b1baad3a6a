package import LarderHTTP

/// The primary key of stored responses (RFC 9111 §2): session partition, method, target URI.
///
/// Two requests have the same key exactly when these bytes are the same; hashes of them only find
/// the place. `HEAD` shares the key of `GET`, whose stored response answers it too.
package struct CacheKey: Hashable, Sendable {
    /// `partition SP method SP URI`, each as text; the partition is empty in a shared cache.
    ///
    /// The login of an ftp URI stands there in clear, so that no other client is answered with what it
    /// brought: such a key must not reach a disk (`StoredHead.staysInMemory`).
    package let bytes: [UInt8]
    /// The hash of the bytes, seeded anew by each process: computed once, as a miss that is stored
    /// asks a dozen tables for its key.
    package let digest: Int

    package init(bytes: [UInt8]) {
        self.bytes = bytes
        var hasher = Hasher()
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        self.digest = hasher.finalize()
    }

    package static func == (a: CacheKey, b: CacheKey) -> Bool {
        a.digest == b.digest && a.bytes.span.hasSameBytes(as: b.bytes.span)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.digest)
    }

    /// The key under which a response to `method` on `uri` is stored and looked up.
    ///
    /// - Parameter partition: the principal that owns the entry, where a session is split by
    ///   principal; must not hold a space.
    package init(method: Method, uri: TargetURI, partition: String = "") {
        let method = method == .head ? Method.get : method
        let (scheme, user, host, rest) = (uri.scheme, uri.userInfo, uri.host, uri.pathAndQuery)
        let size =
            partition.utf8.count + method.rawValue.utf8.count + (user?.utf8.count ?? 0)
            + host.utf8.count + rest.utf8.count + Self.mostBeside
        let isEncoded =
            rest.utf8.span.firstIndex(
                of: UInt8(ascii: "%"), in: 0..<rest.utf8.count) != nil
        var bytes: [UInt8] = []
        bytes.append(addingCapacity: size) { out in
            out.append(text: partition)
            out.append(ASCII.space)
            out.append(text: method.rawValue)
            out.append(ASCII.space)
            out.append(text: scheme.rawValue)
            out.append(text: "://")
            if let user {
                out.append(text: user)
                out.append(UInt8(ascii: "@"))
            }
            out.append(text: host)
            if uri.port != scheme.defaultPort {
                out.append(ASCII.colon)
                out.append(decimal: UInt64(uri.port))
            }
            if !isEncoded { out.append(text: rest) }
        }
        if isEncoded { Self.append(rest, to: &bytes) }
        self.init(bytes: bytes)
    }

    /// More than scheme, port and separators take.
    private static let mostBeside = 24

    /// Path and query in the one spelling that RFC 3986 §6.2.2 and RFC 9110 §4.2.3 give all that are
    /// equivalent: `%7e` and `%7E` are `~`, and `%2b` is `%2B`.
    ///
    /// An encoded dot stays one: bare, it could make a segment that means another path. What is not
    /// encoded as it should be is left alone.
    private static func append(_ pathAndQuery: String, to bytes: inout [UInt8]) {
        let raw = pathAndQuery.utf8
        let start = bytes.count
        var rest = Array(raw)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let high = ASCII.hexDigit(rest[rest.startIndex]),
                let low = ASCII.hexDigit(rest[rest.startIndex + 1])
            else {
                bytes.removeSubrange(start...)
                return bytes.append(contentsOf: raw)
            }
            let meant = high << 4 | low
            let isLetter = ASCII.lowercased(meant) &- UInt8(ascii: "a") < 26
            if isLetter || ASCII.isDigit(meant) || "-_~".utf8.contains(meant) {
                bytes.append(meant)
            } else {
                let digits = Array("0123456789ABCDEF".utf8)
                bytes += [byte, digits[Int(high)], digits[Int(low)]]
            }
            rest = rest.dropFirst(2)
        }
    }

    /// Where the URI begins; the end where the bytes are no key.
    var uriStart: Int {
        guard let first = self.bytes.firstIndex(of: ASCII.space),
            let second = self.bytes[(first + 1)...].firstIndex(of: ASCII.space)
        else { return self.bytes.endIndex }
        return second + 1
    }

    /// Partition, method and URI as text, for people; an ftp password is left out.
    package var parts: (partition: String, method: String, uri: String) {
        let bytes = self.leavesOutSearch ? self.bytes.dropLast() : self.bytes[...]
        guard let first = bytes.firstIndex(of: ASCII.space),
            let second = bytes[(first + 1)...].firstIndex(of: ASCII.space)
        else { return ("", "", String(decoding: bytes, as: UTF8.self)) }
        return (
            String(decoding: bytes[..<first], as: UTF8.self),
            String(decoding: bytes[(first + 1)..<second], as: UTF8.self),
            Self.withoutUserInfo(bytes[(second + 1)...])
        )
    }

    private static func withoutUserInfo(_ uri: ArraySlice<UInt8>) -> String {
        let scheme = uri.prefix { $0 != ASCII.colon }
        let rest = uri[scheme.endIndex...]
        guard rest.starts(with: "://".utf8) else { return String(decoding: uri, as: UTF8.self) }
        let authority = rest.dropFirst(3).prefix { $0 != UInt8(ascii: "/") }
        guard let at = authority.firstIndex(of: UInt8(ascii: "@")) else {
            return String(decoding: uri, as: UTF8.self)
        }
        return String(decoding: scheme + rest.prefix(3) + uri[(at + 1)...], as: UTF8.self)
    }
}
