package import LarderHTTP

/// What a server says after it accepted an answer (RFC 7615, RFC 7616 §3.5).
package struct AuthenticationInformation: Sendable, Equatable {
    package let nextNonce: [UInt8]?
    package let responseAuth: [UInt8]?
    package let protection: DigestProtection?
    package let cnonce: [UInt8]?
    package let nonceCount: UInt32?

    /// Reads `Authentication-Info` or `Proxy-Authentication-Info`: `#auth-param`.
    ///
    /// Nil where it is absent or holds junk: it is advice, and what is not certain is not taken.
    package init?(_ fields: Fields, name: FieldName = "Authentication-Info") {
        let lines = fields.values(name)
        guard lines.count == 1 else { return nil }
        // The grammar is that of a challenge's parameters; a scheme in front makes it one.
        let line = Array("Digest ".utf8) + lines[0]
        guard let found = try? Challenges.parse(line[...]), found.count == 1,
            found[0].token68 == nil, !found[0].parameters.isEmpty
        else { return nil }
        let challenge = found[0]
        self.nextNonce = challenge["nextnonce"].flatMap { $0.isEmpty ? nil : $0 }
        self.responseAuth = challenge["rspauth"]
        self.protection = challenge.word("qop").flatMap(DigestProtection.init)
        self.cnonce = challenge["cnonce"]
        self.nonceCount = challenge["nc"].flatMap { digits in
            guard digits.count == 8, digits.allSatisfy({ ASCII.hexDigit($0) != nil }) else {
                return nil
            }
            return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
        }
    }
}
