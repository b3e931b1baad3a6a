import LarderHTTP

/// The computations of RFC 7616 §3.4.1 to §3.4.4, for one answer.
struct DigestComputation<Hasher: DigestHasher> {
    let session: DigestSession
    let protection: DigestProtection?
    let count: UInt32
    let cnonce: [UInt8]
    let hasher: Hasher

    private static var hexDigits: [UInt8] { Array("0123456789abcdef".utf8) }

    /// `nc`: eight hexadecimal digits.
    var countText: String {
        let digits = String(self.count, radix: 16)
        return String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    }

    /// `response`, which for an empty method is `rspauth` (§3.5).
    func response(to target: DigestSession.Target) throws(CredentialFault) -> [UInt8] {
        var data = [try self.hex(self.a1()), self.session.nonce]
        if let protection = self.protection {
            data += [
                Array(self.countText.utf8), self.cnonce, Array(protection.rawValue.utf8),
            ]
        }
        data.append(try self.hex(self.a2(target)))
        return try self.hex(Self.joined(data))
    }

    /// §3.4.2.
    private func a1() throws(CredentialFault) -> [UInt8] {
        let credential = self.session.credential
        let secret = Self.joined([
            Array(credential.user.utf8), self.session.challenge.realm,
            credential.password.revealed,
        ])
        guard self.session.challenge.algorithm.isSession else { return secret }
        // The nonce of the challenge, also after a `nextnonce`: the session began with it.
        return Self.joined([try self.hex(secret), self.session.challenge.nonce, self.cnonce])
    }

    /// §3.4.3.
    private func a2(_ target: DigestSession.Target) throws(CredentialFault) -> [UInt8] {
        let line = Self.joined([Array(target.method.rawValue.utf8), Array(target.uri.utf8)])
        guard self.protection == .authInt else { return line }
        guard let content = target.content else { throw .contentUnknown }
        return Self.joined([line, try self.hex(content)])
    }

    /// The hash in lower-case hexadecimal digits.
    func hex(_ octets: [UInt8]) throws(CredentialFault) -> [UInt8] {
        let algorithm = self.session.challenge.algorithm.hash
        guard let hash = self.hasher.hash(octets, by: algorithm) else {
            throw .unsupportedAlgorithm
        }
        let digits = Self.hexDigits
        return hash.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }

    private static func joined(_ parts: [[UInt8]]) -> [UInt8] {
        Array(parts.joined(separator: [ASCII.colon]))
    }
}

/// Writes `Digest name=value, …`, each value in the form that RFC 7616 §3.4 demands for it.
struct DigestFieldWriter {
    private(set) var bytes = Array("Digest ".utf8)
    private var isEmpty = true

    mutating func plain(_ name: String, _ value: String) {
        self.begin(name)
        self.bytes += Array(value.utf8)
    }

    mutating func quoted(_ name: String, _ value: [UInt8]) {
        self.begin(name)
        self.bytes.append(ASCII.quote)
        for byte in value {
            if byte == ASCII.quote || byte == ASCII.backslash { self.bytes.append(ASCII.backslash) }
            self.bytes.append(byte)
        }
        self.bytes.append(ASCII.quote)
    }

    /// `username`, or `username*` where the name is not ASCII (§3.4, RFC 8187 §3.2.1).
    mutating func user(_ name: [UInt8]) {
        guard name.contains(where: { $0 >= 0x80 }) else { return self.quoted("username", name) }
        self.begin("username*")
        self.bytes += Array("UTF-8''".utf8)
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in name {
            if Self.isAttributeCharacter(byte) {
                self.bytes.append(byte)
            } else {
                self.bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }

    /// `attr-char`: a token's character without `*`, `'` and `%`.
    private static func isAttributeCharacter(_ byte: UInt8) -> Bool {
        ASCII.isToken(byte) && byte != UInt8(ascii: "*") && byte != UInt8(ascii: "'")
            && byte != UInt8(ascii: "%")
    }

    private mutating func begin(_ name: String) {
        if !self.isEmpty { self.bytes += [ASCII.comma, ASCII.space] }
        self.isEmpty = false
        self.bytes += Array(name.utf8) + [ASCII.equals]
    }
}
