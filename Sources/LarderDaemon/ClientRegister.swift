import Crypto
import LarderCredentials
import LarderState

/// Who may use the proxy: what a password file and a token file say together.
struct ClientRegister: Sendable {
    /// What a user's password is to be checked against.
    struct Check: Sendable {
        let hash: PasswordHash
        /// False for a user that is not there, whose check takes as long as that of one that is.
        let isKnown: Bool
    }

    private var passwords: [[UInt8]: PasswordHash] = [:]
    /// The hashes in the order of the file, to take others' places.
    private var hashes: [PasswordHash] = []
    /// Names by the keyed digest of their token's SHA-256.
    private var tokens: [[UInt8]: String] = [:]
    private(set) var readableByOthers: [String] = []
    /// Whether there is a file of passwords at all, be it an empty one.
    let knowsPasswords: Bool
    let knowsTokens: Bool

    /// What is checked where there is no user at all.
    private static let standIn = PasswordHash(
        "$2b$10$abcdefghijklmnopqrstuuXwH7Zta3MgPcHLX9BWQKSobk.Bzgb4q")

    /// - Parameter key: for the digests of tokens.
    /// - Throws: the first thing that is wrong with either file.
    init(passwordFile: String?, tokenFile: String?, key: KeyedDigest) throws(CredentialFileError) {
        self.knowsPasswords = passwordFile != nil
        self.knowsTokens = tokenFile != nil
        if let path = passwordFile { try self.readPasswords(path) }
        if let path = tokenFile { try self.readTokens(path, key) }
    }

    private mutating func readPasswords(_ path: String) throws(CredentialFileError) {
        var contents = try CredentialFile.read(path, isSecret: false)
        defer { contents.clear() }
        do throws(CredentialFileFault) {
            let file = try PasswordFile(parsing: contents.bytes)
            for entry in file.entries {
                guard SystemCrypt.knows(entry.hash) else {
                    throw CredentialFileFault(line: entry.line, .unknownHash)
                }
                self.passwords[entry.user] = entry.hash
                self.hashes.append(entry.hash)
            }
        } catch {
            throw CredentialFileError(path, "\(error)")
        }
        if contents.isReadableByOthers { self.readableByOthers.append(path) }
    }

    private mutating func readTokens(
        _ path: String, _ key: KeyedDigest
    ) throws(CredentialFileError) {
        var contents = try CredentialFile.read(path, isSecret: true)
        defer { contents.clear() }
        do throws(CredentialFileFault) {
            let file = try TokenFile(parsing: contents.bytes)
            var lines: [[UInt8]: Int] = [:]
            for entry in file.entries {
                let digest =
                    switch entry.proof {
                    case .token(let token): key.digest(ofToken: token)
                    case .digest(let octets): key.digest(octets)
                    }
                let name = String(decoding: entry.name, as: UTF8.self)
                if let line = lines[digest], self.tokens[digest] != name {
                    throw CredentialFileFault(line: entry.line, .sharedToken(line: line))
                }
                lines[digest] = entry.line
                self.tokens[digest] = name
            }
        } catch {
            throw CredentialFileError(path, "\(error)")
        }
    }

    /// - Parameter number: of the user's name: it chooses whose hash takes the place of one that is
    ///   not there, always the same and as costly as the others are.
    func check(_ user: [UInt8], number: UInt64) -> Check? {
        if let hash = self.passwords[user] { return Check(hash: hash, isKnown: true) }
        guard !self.hashes.isEmpty else {
            return Self.standIn.map { Check(hash: $0, isKnown: false) }
        }
        let index = Int(truncatingIfNeeded: number % UInt64(self.hashes.count))
        return Check(hash: self.hashes[index], isKnown: false)
    }

    /// The name to which a token belongs.
    func name(ofToken digest: [UInt8]) -> String? { self.tokens[digest] }
}

/// Secrets are looked up by their digests: how long a comparison takes then tells nothing about them.
extension KeyedDigest {
    /// The digest by which a token is known: of its SHA-256, which may be all that a file says of
    /// it.
    func digest(ofToken token: Secret) -> [UInt8] {
        self.digest(Array(SHA256.hash(data: token.revealed)))
    }

    /// The first eight octets of the digest of a user's name.
    func number(ofUser user: [UInt8]) -> UInt64 {
        self.digest(user).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
