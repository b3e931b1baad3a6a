package import LarderHTTP

/// A hash that Digest names (RFC 7616 §6.1).
package enum DigestHash: String, Sendable, Hashable, CaseIterable {
    case md5 = "MD5"
    case sha256 = "SHA-256"
    case sha512Over256 = "SHA-512-256"
}

/// Who computes hashes: the port through which a library for it is reached.
package protocol DigestHasher: Sendable {
    /// The hash of the octets; nil where this hasher does not know it.
    ///
    /// `SHA-512-256` is SHA-512/256 of FIPS 180-4, with its own initial value: not a SHA-512 cut
    /// short, as the example in RFC 7616 §3.9.2 has it (erratum 4897).
    func hash(_ octets: [UInt8], by hash: DigestHash) -> [UInt8]?
}

/// `algorithm`: a hash, and whether its session variant (RFC 7616 §3.4.2).
package struct DigestAlgorithm: Sendable, Hashable {
    package let hash: DigestHash
    package let isSession: Bool

    package init(_ hash: DigestHash, isSession: Bool = false) {
        self.hash = hash
        self.isSession = isSession
    }

    /// Reads the parameter's value, case set aside.
    init?(word: String) {
        let isSession = word.hasSuffix("-sess")
        let name = isSession ? word.dropLast(5) : word[...]
        guard let hash = DigestHash.allCases.first(where: { $0.rawValue.lowercased() == name })
        else { return nil }
        self.init(hash, isSession: isSession)
    }

    package var name: String { self.hash.rawValue + (self.isSession ? "-sess" : "") }
}

/// Quality of protection: of the request line alone, or of the content too (RFC 7616 §3.4).
package enum DigestProtection: String, Sendable, Hashable, CaseIterable {
    case auth
    case authInt = "auth-int"
}

/// A challenge of the scheme Digest, checked (RFC 7616 §3.3).
package struct DigestChallenge: Sendable, Equatable {
    package let realm: [UInt8]
    package let nonce: [UInt8]
    package let opaque: [UInt8]?
    package let algorithm: DigestAlgorithm
    /// Whether the challenge says its algorithm; the answer does likewise, for old servers.
    package let namesAlgorithm: Bool
    /// Empty where the challenge names none, as before RFC 2617.
    package let protections: Set<DigestProtection>
    /// The last nonce was too old, and the password right.
    package let isStale: Bool
    package let hashesUser: Bool
    /// The URIs that the challenge is for, as written; empty for the whole origin.
    package let domain: [[UInt8]]

    /// More references than this in `domain` cover nothing: every request is challenged.
    private static let domainLimit = 64

    /// Checks a challenge.
    ///
    /// - Throws: `.otherScheme`, `.missingParameter` for realm or nonce, `.unsupportedAlgorithm`,
    ///   `.unsupportedProtection` where `qop` names only unknown ones, `.badParameter`.
    package init(_ challenge: Challenge) throws(ChallengeFault) {
        guard challenge.scheme == .digest else { throw .otherScheme }
        guard let realm = challenge["realm"], let nonce = challenge["nonce"] else {
            throw .missingParameter
        }
        // An empty nonce would let one answer serve for ever.
        guard !nonce.isEmpty else { throw .badParameter }
        guard let algorithm = DigestAlgorithm(word: challenge.word("algorithm") ?? "md5") else {
            throw .unsupportedAlgorithm
        }
        var protections: Set<DigestProtection> = []
        if let qop = challenge.word("qop") {
            protections = Set(
                ListMembers(Array(qop.utf8)[...]).compactMap {
                    DigestProtection(rawValue: String(decoding: $0, as: UTF8.self))
                })
            guard !protections.isEmpty else { throw .unsupportedProtection }
        } else if algorithm.isSession {
            throw .missingParameter  // Without a cnonce there is no session key.
        }
        if let charset = challenge.word("charset"), charset != "utf-8" { throw .badParameter }
        self.realm = realm
        self.nonce = nonce
        self.opaque = challenge["opaque"]
        self.algorithm = algorithm
        self.namesAlgorithm = challenge["algorithm"] != nil
        self.protections = protections
        self.isStale = challenge.word("stale") == "true"
        self.hashesUser = challenge.word("userhash") == "true"
        self.domain = (challenge["domain"] ?? []).split(separator: ASCII.space).map { Array($0) }
    }

    /// Whether a request for `uri` may bear an answer to this challenge, which came from `origin`,
    /// before anyone asks (RFC 7616 §3.3, `domain`).
    ///
    /// URIs of other origins in `domain` are not followed: a server does not say where else a
    /// secret of it goes.
    package func covers(_ uri: TargetURI, from origin: TargetURI) -> Bool {
        guard origin.hasSameOrigin(as: uri) else { return false }
        if self.domain.isEmpty { return true }
        // Each is resolved for each request.
        guard self.domain.count <= Self.domainLimit else { return false }
        return self.domain.contains { reference in
            guard let named = origin.resolving(reference[...]), named.hasSameOrigin(as: uri)
            else { return false }
            return uri.pathAndQuery.utf8.starts(with: named.pathAndQuery.utf8)
        }
    }
}
