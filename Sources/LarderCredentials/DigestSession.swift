package import LarderHTTP

/// The use of one nonce by one user (RFC 7616 §3.4): counts, and computes answers.
///
/// One client nonce serves as long as the nonce does. It is right for servers that keep the session
/// key of the first request (§3.4.2) and for those that compute it each time, and no weaker: it is
/// the count that makes each answer another.
package struct DigestSession: Sendable {
    package let challenge: DigestChallenge
    package let credential: Credential
    package private(set) var nonce: [UInt8]
    /// How many answers were given with this nonce.
    package private(set) var nonceCount: UInt32 = 0
    private let cnonce: [UInt8]

    /// Begins with a challenge.
    ///
    /// - Parameter cnonce: unpredictable text of the caller's, visible ASCII without quotes.
    package init(_ challenge: DigestChallenge, credential: Credential, cnonce: [UInt8]) {
        self.challenge = challenge
        self.credential = credential
        self.nonce = challenge.nonce
        self.cnonce = cnonce
    }

    /// What an answer is for.
    package struct Target: Sendable {
        package var method: Method
        /// The request target as it is sent: path and query, or `host:port` for CONNECT.
        package var uri: String
        /// The whole content, for `auth-int`; nil where it is not known beforehand.
        package var content: [UInt8]?

        package init(method: Method, uri: String, content: [UInt8]? = []) {
            self.method = method
            self.uri = uri
            self.content = content
        }
    }

    /// How many nonces in a row were called stale without any success between.
    private var staleInARow = 0
    private static let staleLimit = 2

    /// The session with which to answer again, after a challenge that followed an answer; nil where
    /// the credential was refused (§3.3, `stale`).
    ///
    /// Old nonces are replaced twice in a row and no more, or a server could ask for ever.
    package func renewed(by next: DigestChallenge, cnonce: [UInt8]) -> DigestSession? {
        guard next.isStale, next.nonce != self.nonce, next.realm == self.challenge.realm,
            self.staleInARow < Self.staleLimit
        else { return nil }
        var session = DigestSession(next, credential: self.credential, cnonce: cnonce)
        session.staleInARow = self.staleInARow + 1
        return session
    }

    /// An answer of this session's was accepted.
    ///
    /// - Parameter information: `Authentication-Info` of the response; its `nextnonce` is used from
    ///   now on (§3.5).
    package mutating func accepted(_ information: AuthenticationInformation? = nil) {
        self.staleInARow = 0
        guard let next = information?.nextNonce, next != self.nonce else { return }
        self.nonce = next
        self.nonceCount = 0
    }

    /// Takes the next count out, and gives the session that uses it for one answer.
    ///
    /// So that those who share a session need to lock it for the counting alone.
    package mutating func reserving() -> DigestSession {
        let mine = self
        if self.nonceCount < .max { self.nonceCount += 1 }
        return mine
    }

    /// The value of `Authorization` or `Proxy-Authorization` for one more request.
    ///
    /// - Throws: `.controlCharacter`, `.contentUnknown`, `.nonceExhausted`, `.unsupportedAlgorithm`.
    package mutating func fieldValue(
        for target: Target, hasher: some DigestHasher
    ) throws(CredentialFault) -> [UInt8] {
        let user = Array(self.credential.user.utf8)
        guard !user.hasControl, !self.credential.password.revealed.hasControl,
            !self.cnonce.hasControl, !Array(target.uri.utf8).hasControl
        else { throw .controlCharacter }
        guard self.nonceCount < .max else { throw .nonceExhausted }
        let protection = try self.protection(of: target)
        let computation = DigestComputation(
            session: self, protection: protection, count: self.nonceCount + 1, cnonce: self.cnonce,
            hasher: hasher)
        let response = try computation.response(to: target)
        self.nonceCount += 1
        var writer = DigestFieldWriter()
        if self.challenge.hashesUser {
            let hash = try computation.hex(user + [ASCII.colon] + self.challenge.realm)
            writer.quoted("username", hash)
        } else {
            writer.user(user)
        }
        writer.quoted("realm", self.challenge.realm)
        writer.quoted("nonce", self.nonce)
        writer.quoted("uri", Array(target.uri.utf8))
        writer.quoted("response", response)
        if self.challenge.namesAlgorithm {
            writer.plain("algorithm", self.challenge.algorithm.name)
        }
        if let protection {
            writer.plain("qop", protection.rawValue)
            writer.plain("nc", computation.countText)
            writer.quoted("cnonce", self.cnonce)
        }
        if let opaque = self.challenge.opaque { writer.quoted("opaque", opaque) }
        if self.challenge.hashesUser { writer.plain("userhash", "true") }
        return writer.bytes
    }

    /// `auth` where it is offered, since it asks for no content; nil where none is.
    private func protection(of target: Target) throws(CredentialFault) -> DigestProtection? {
        let offered = self.challenge.protections
        if offered.isEmpty { return nil }
        if offered.contains(.auth) { return .auth }
        guard target.content != nil else { throw .contentUnknown }
        return .authInt
    }

    /// Whether the server proved that it knows the password too (§3.5, `rspauth`).
    ///
    /// To be asked before `accepted`, which may change the nonce.
    ///
    /// - Parameters:
    ///   - target: the request's URI, and the response's content for `auth-int`.
    ///   - hasher: the same as for the answer.
    /// - Returns: nil where the response says nothing about it.
    package func verifies(
        _ information: AuthenticationInformation, for target: Target, hasher: some DigestHasher
    ) throws(CredentialFault) -> Bool? {
        guard let proof = information.responseAuth, let protection = information.protection,
            information.cnonce == self.cnonce, let count = information.nonceCount,
            (1...max(1, self.nonceCount)).contains(count)
        else { return nil }
        let computation = DigestComputation(
            session: self, protection: protection, count: count, cnonce: self.cnonce,
            hasher: hasher)
        var response = target
        response.method = Method(rawValue: "")
        return Secret(try computation.response(to: response)) == Secret(proof)
    }
}
