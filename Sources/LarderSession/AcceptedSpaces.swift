import LarderCredentials
import LarderHTTP

/// Where which credential was good, as far as a session remembers: a value.
///
/// It says what may be sent before anyone asks (RFC 7617 §2.2, RFC 7616 §3.6), counts the uses of
/// nonces, and knows what was refused. Bounded: what was used least recently goes first.
struct AcceptedSpaces: Sendable {
    struct Entry: Sendable {
        let space: ProtectionSpace
        let scheme: AuthenticationScheme
        let credential: Credential
        let owner: String?
        /// What was asked for when it was accepted: the middle of what it covers.
        var uri: TargetURI
        var digest: DigestSession?
        /// False: an answer with its nonce is under way for the first time.
        var isAccepted: Bool
        fileprivate var used: UInt64

        func covers(_ uri: TargetURI) -> Bool {
            guard self.isAccepted else { return false }
            switch self.scheme {
            case .basic: return Basic.covers(self.uri, uri)
            case .digest: return self.digest?.challenge.covers(uri, from: self.uri) ?? false
            default: return self.uri.hasSameOrigin(as: uri)
            }
        }

        fileprivate func isOf(_ sent: SentCredential) -> Bool {
            self.space == sent.space && self.owner == sent.owner
        }
    }

    private struct Origin: Hashable {
        let scheme: Scheme
        let host: String
        let port: UInt16

        init(_ uri: TargetURI) {
            self.scheme = uri.scheme
            self.host = uri.host
            self.port = uri.port
        }
    }

    private struct Refusal: Hashable {
        let space: ProtectionSpace
        let owner: String?
    }

    private let limit: Int
    private var entries: [Origin: [Entry]] = [:]
    private var refusals: [Refusal: (credential: Credential, at: UInt64)] = [:]
    private var count = 0
    private var tick: UInt64 = 0

    /// - Parameter limit: how many spaces are remembered, and how many refusals.
    init(limit: Int = 256) {
        self.limit = max(1, limit)
    }

    var isEmpty: Bool { self.entries.isEmpty }

    // MARK: What may be sent

    /// The entries that cover a URI, the best one first: those that were good in its own directory or
    /// above, then by the strength of the scheme, then by how much of the path they have in common.
    ///
    /// Digest covers the whole origin where it names no domain, thus also what asks for Basic.
    func covering(_ uri: TargetURI) -> [Entry] {
        guard let known = self.entries[Origin(uri)] else { return [] }
        let strength = AuthenticationScheme.byStrength
        return known.filter { $0.covers(uri) }.sorted { a, b in
            func rank(_ entry: Entry) -> (Int, Int, Int) {
                (
                    Basic.covers(entry.uri, uri) ? 0 : 1,
                    strength.firstIndex(of: entry.scheme) ?? strength.count,
                    -entry.uri.path.utf8.count
                )
            }
            return rank(a) < rank(b)
        }
    }

    /// Takes the next count of the nonce that is in use for a space.
    ///
    /// - Parameter nonce: that one and no other; nil: whichever it is.
    /// - Returns: the session to compute one answer with; nil where there is none.
    mutating func reserve(
        _ space: ProtectionSpace, _ credential: Credential, owner: String?, at uri: TargetURI,
        nonce: [UInt8]? = nil
    ) -> DigestSession? {
        guard var known = self.entries[Origin(uri)],
            let index = known.firstIndex(where: {
                $0.space == space && $0.owner == owner && $0.credential == credential
            }), nonce == nil || known[index].digest?.nonce == nonce
        else { return nil }
        self.tick &+= 1
        known[index].used = self.tick
        let reserved = known[index].digest?.reserving()
        self.entries[Origin(uri)] = known
        return reserved
    }

    // MARK: What becomes of it

    /// Enters a nonce, or replaces the one of its space.
    mutating func begin(_ sent: SentCredential, _ digest: DigestSession, at uri: TargetURI) {
        let wasAccepted = self.entries[Origin(uri)]?.first { $0.isOf(sent) }?.isAccepted ?? false
        self.enter(sent, digest, at: uri, isAccepted: wasAccepted)
    }

    mutating func accepted(
        _ sent: SentCredential, at uri: TargetURI, _ information: AuthenticationInformation?
    ) {
        self.refusals[Refusal(space: sent.space, owner: sent.owner)] = nil
        guard sent.scheme == .digest else {
            return self.enter(sent, nil, at: uri, isAccepted: true)
        }
        guard var known = self.entries[Origin(uri)],
            let index = known.firstIndex(where: { $0.isOf(sent) }),
            known[index].credential == sent.credential,
            known[index].digest?.nonce == sent.digest?.nonce
        else {
            // Another nonce is in use by now: of this one nothing more is to be learned.
            return
        }
        known[index].digest?.accepted(information)
        known[index].isAccepted = true
        self.entries[Origin(uri)] = known
    }

    /// - Returns: whether it is not to be sent again. Where it had been good before, it gets one more
    ///   chance, after the next challenge.
    mutating func refused(_ sent: SentCredential, at uri: TargetURI) -> Bool {
        var wasAccepted = false
        if var known = self.entries[Origin(uri)] {
            let before = known.count
            known.removeAll { entry in
                guard entry.isOf(sent), entry.credential == sent.credential else { return false }
                wasAccepted = wasAccepted || entry.isAccepted
                return true
            }
            self.count -= before - known.count
            self.entries[Origin(uri)] = known.isEmpty ? nil : known
        }
        if wasAccepted { return false }
        self.tick &+= 1
        self.refusals[Refusal(space: sent.space, owner: sent.owner)] = (sent.credential, self.tick)
        if self.refusals.count > self.limit,
            let oldest = self.refusals.min(by: { $0.value.at < $1.value.at })?.key
        {
            self.refusals[oldest] = nil
        }
        return true
    }

    func isRefused(_ credential: Credential, for space: ProtectionSpace, owner: String?) -> Bool {
        self.refusals[Refusal(space: space, owner: owner)]?.credential == credential
    }

    /// Credentials have changed: what was refused may be good now.
    mutating func forgetRefusals() { self.refusals = [:] }

    /// Forgets what was accepted for a space, but for one user's.
    mutating func forget(_ space: ProtectionSpace, except user: String?) {
        for (origin, known) in self.entries {
            let kept = known.filter { $0.space != space || $0.credential.user == user }
            self.count -= known.count - kept.count
            self.entries[origin] = kept.isEmpty ? nil : kept
        }
    }

    private mutating func enter(
        _ sent: SentCredential, _ digest: DigestSession?, at uri: TargetURI, isAccepted: Bool
    ) {
        self.tick &+= 1
        var known = self.entries[Origin(uri)] ?? []
        let before = known.count
        let entry = Entry(
            space: sent.space, scheme: sent.scheme, credential: sent.credential, owner: sent.owner,
            uri: uri, digest: digest, isAccepted: isAccepted, used: self.tick)
        if let index = known.firstIndex(where: {
            $0.isOf(sent) && $0.credential == sent.credential
                && ($0.scheme != .basic || Basic.covers($0.uri, uri))
        }) {
            // What covers it already covers more than it would itself.
            let middle = known[index].uri
            known[index] = entry
            if sent.scheme != .digest { known[index].uri = middle }
        } else {
            known.removeAll { old in
                guard old.isOf(sent) else { return false }
                return old.credential != sent.credential || old.scheme != .basic
                    || Basic.covers(uri, old.uri)
            }
            known.append(entry)
        }
        self.entries[Origin(uri)] = known
        self.count += known.count - before
        while self.count > self.limit { self.dropOldest() }
    }

    private mutating func dropOldest() {
        let oldest = self.entries.compactMap { origin, known in
            known.map(\.used).min().map { (origin, $0) }
        }.min { $0.1 < $1.1 }
        guard let (origin, used) = oldest, var known = self.entries[origin] else {
            self.count = 0
            return
        }
        let before = known.count
        known.removeAll { $0.used == used }
        self.count -= before - known.count
        self.entries[origin] = known.isEmpty ? nil : known
    }
}
