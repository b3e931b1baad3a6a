package import LarderHTTP

/// The scheme Basic (RFC 7617): the password, encoded and in no way hidden.
package enum Basic {
    /// Whether a challenge is one of this scheme as it must be: with a realm, and with no other
    /// charset than the one there is (§2, §2.1).
    package static func check(_ challenge: Challenge) throws(ChallengeFault) {
        guard challenge.scheme == .basic else { throw .otherScheme }
        guard challenge.token68 == nil else { throw .badParameter }
        guard challenge["realm"] != nil else { throw .missingParameter }
        guard challenge.word("charset").map({ $0 == "utf-8" }) ?? true else {
            throw .badParameter
        }
    }

    /// The value of `Authorization` or `Proxy-Authorization`.
    ///
    /// Always in UTF-8: with `charset` it is demanded, without it any encoding that agrees with
    /// ASCII is allowed (§2.1), and no other is in use any more.
    ///
    /// - Throws: `.colonInUser`, `.controlCharacter`.
    package static func fieldValue(
        for credential: Credential
    ) throws(CredentialFault) -> [UInt8] {
        let user = Array(credential.user.utf8)
        let password = credential.password.revealed
        guard !user.contains(ASCII.colon) else { throw .colonInUser }
        guard !user.hasControl, !password.hasControl else { throw .controlCharacter }
        return Array("Basic ".utf8) + Base64.encode(user + [ASCII.colon] + password)
    }

    /// The user name and password in such a field's value, for a party that is asked for access.
    ///
    /// - Throws: `.malformed`, `.controlCharacter`.
    package static func read(
        _ value: FieldValue
    ) throws(CredentialFault) -> (user: [UInt8], password: Secret) {
        let scheme = value.prefix { $0 != ASCII.space }
        let token = value.dropFirst(scheme.count).drop { $0 == ASCII.space }
        guard scheme.spells("basic"), !token.isEmpty, let octets = Base64.decode(token),
            let colon = octets.firstIndex(of: ASCII.colon)
        else { throw .malformed }
        guard !octets.hasControl else { throw .controlCharacter }
        return (Array(octets[..<colon]), Secret(Array(octets[(colon + 1)...])))
    }

    /// Whether credentials that were accepted for one URI may be sent with a request for another
    /// before anyone asks: one origin, and a path at or below the last slash (§2.2).
    package static func covers(_ accepted: TargetURI, _ uri: TargetURI) -> Bool {
        guard accepted.hasSameOrigin(as: uri) else { return false }
        let path = accepted.path
        let directory = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
        // A dot segment that the origin resolves could lead out of the directory.
        return uri.path.utf8.starts(with: directory.utf8)
            && !DotSegments.isIn(uri.path.utf8)
    }
}
