package import LarderHTTP

/// The bearer tokens that clients may show to the proxy (RFC 6750): `name:token`, or
/// `name:sha256:HEX` where the file is not to hold the token itself.
///
/// A name may have several, so that one can take over from another.
package struct TokenFile: Sendable {
    package enum Proof: Sendable, Hashable {
        case token(Secret)
        /// The SHA-256 of the token.
        case digest([UInt8])
    }

    package struct Entry: Sendable, Equatable {
        /// From 1.
        package let line: Int
        /// UTF-8, without a colon or a control character.
        package let name: [UInt8]
        package let proof: Proof
    }

    /// 128 bits in base 64: what is shorter might be found by trying.
    package static let shortestToken = 22
    package static let longestToken = 4_096
    private static let digestPrefix = Array("sha256:".utf8)

    /// In the order of the file.
    package let entries: [Entry]

    /// - Throws: the first fault.
    package init(parsing bytes: [UInt8]) throws(CredentialFileFault) {
        var entries: [Entry] = []
        var lines: [Proof: (line: Int, name: [UInt8])] = [:]
        for line in try CredentialFileLines.read(bytes) {
            let proof = try Self.proof(line)
            if let first = lines[proof], first.name != line.name {
                throw CredentialFileFault(line: line.number, .sharedToken(line: first.line))
            }
            lines[proof] = (line.number, line.name)
            entries.append(Entry(line: line.number, name: line.name, proof: proof))
        }
        self.entries = entries
    }

    private static func proof(
        _ line: CredentialFileLines.Line
    ) throws(CredentialFileFault) -> Proof {
        if line.rest.starts(with: Self.digestPrefix) {
            guard let digest = line.rest.dropFirst(Self.digestPrefix.count).hexadecimal,
                digest.count == 32
            else { throw CredentialFileFault(line: line.number, .badDigest) }
            return .digest(digest)
        }
        guard Self.isToken(line.rest) else {
            throw CredentialFileFault(line: line.number, .badToken)
        }
        guard line.rest.count >= Self.shortestToken else {
            throw CredentialFileFault(line: line.number, .shortToken)
        }
        return .token(Secret(Array(line.rest)))
    }

    /// The token in a value of `Proxy-Authorization`; nil where it holds none.
    package static func token(in value: FieldValue) -> Secret? {
        let scheme = value.prefix { $0 != ASCII.space }
        let token = value.dropFirst(scheme.count).drop { $0 == ASCII.space }
        guard scheme.spells("bearer"), Self.isToken(token) else { return nil }
        return Secret(Array(token))
    }

    /// `b64token` (RFC 6750 §2.1), of a length that can be one.
    private static func isToken(_ text: FieldValue) -> Bool {
        let digits = text.prefix { $0 != UInt8(ascii: "=") }
        return !digits.isEmpty && text.count <= Self.longestToken
            && digits.allSatisfy(Self.isTokenDigit)
            && text.dropFirst(digits.count).allSatisfy { $0 == UInt8(ascii: "=") }
    }

    private static func isTokenDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }
}

extension ArraySlice<UInt8> {
    /// The octets that pairs of hexadecimal digits write; nil for anything else.
    fileprivate var hexadecimal: [UInt8]? {
        guard self.count % 2 == 0 else { return nil }
        var octets: [UInt8] = []
        var high: UInt8?
        for byte in self {
            guard let digit = Self.digit(byte) else { return nil }
            if let first = high.take() {
                octets.append(first << 4 | digit)
            } else {
                high = digit
            }
        }
        return octets
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch ASCII.lowercased(byte) {
        case let digit where ASCII.isDigit(digit): digit - 0x30
        case let letter where letter >= 0x61 && letter <= 0x66: letter - 0x57
        default: nil
        }
    }
}
