import Crypto
import FoundationEssentials
import LarderCredentials

/// The keys of one state file: all are derived from the secret key and the file's own salt.
///
/// Records are sealed by AES-256-GCM with a random nonce of 96 bits each, which is good for 2³²
/// records under one key (NIST SP 800-38D §8.3): more than a disk will see. The key of a record is
/// authenticated with it, so that no record opens in another's place.
struct RecordSeal: Sendable {
    static let saltSize = 32
    /// A principal's part of a record's key, then a byte of kind.
    static let principalSize = 16
    static let keySize = Self.principalSize + 1 + SHA256.byteCount
    /// Format, nonce, tag.
    static let overhead = 1 + 12 + 16
    private static let format: UInt8 = 1

    private let sealing: SymmetricKey
    private let naming: SymmetricKey
    /// Tells whether a key is the one that was used, and nothing else of it.
    let check: [UInt8]
    let digestKey: Secret

    init(_ key: StateKey, salt: [UInt8]) {
        let input = key.secret.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { unsafe SymmetricKey(data: $0) }
        }
        func derived(_ purpose: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: input, salt: salt, info: Array("larder \(purpose)".utf8),
                outputByteCount: 32)
        }
        self.sealing = derived("records")
        self.naming = derived("names")
        self.check = unsafe derived("check").withUnsafeBytes { unsafe Array($0) }
        self.digestKey = unsafe derived("digests").withUnsafeBytes { bytes in
            Secret(unsafe bytes.bindMemory(to: UInt8.self).span)
        }
    }

    // MARK: Keys

    /// What all keys of a principal's records begin with.
    func prefix(of principal: String) -> [UInt8] {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("principal \(principal)".utf8), using: self.naming)
        return Array(Array(code).prefix(Self.principalSize))
    }

    func key(_ record: StateRecord, of principal: String) -> [UInt8] {
        var identity = RecordWriter()
        record.writeIdentity(to: &identity)
        let code = identity.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                unsafe HMAC<SHA256>.authenticationCode(for: bytes, using: self.naming)
            }
        }
        return self.prefix(of: principal) + [record.kind.rawValue] + Array(code)
    }

    // MARK: Values

    func seal(_ record: StateRecord, under key: [UInt8]) throws -> [UInt8] {
        var plain = RecordWriter()
        record.write(to: &plain)
        return try plain.withBytes { try self.seal($0, under: key) }
    }

    private func seal(_ plain: Span<UInt8>, under key: [UInt8]) throws -> [UInt8] {
        let box = try unsafe plain.withUnsafeBytes { plain in
            try unsafe AES.GCM.seal(
                plain, using: self.sealing, nonce: AES.GCM.Nonce(),
                authenticating: [Self.format] + key)
        }
        return [Self.format] + Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    /// Reads a sealed record; nil where it was changed, belongs elsewhere, or means nothing here.
    func open(_ sealed: [UInt8], under key: [UInt8]) -> StateRecord? {
        guard let kind = Self.kind(of: key) else { return nil }
        return self.withPlain(sealed, under: key) { plain in
            do throws(RecordFault) { return try StateRecord(kind, plain) } catch { return nil }
        } ?? nil
    }

    /// Lends what was sealed, and clears it afterwards.
    private func withPlain<R>(
        _ sealed: [UInt8], under key: [UInt8], _ body: (Span<UInt8>) -> R
    ) -> R? {
        guard sealed.count >= Self.overhead, sealed.first == Self.format,
            let box = try? AES.GCM.SealedBox(combined: sealed.dropFirst()),
            var plain = try? AES.GCM.open(
                box, using: self.sealing, authenticating: [Self.format] + key)
        else { return nil }
        defer { unsafe plain.withUnsafeMutableBytes { unsafe clear($0) } }
        return unsafe plain.withUnsafeBytes { bytes in
            body(unsafe bytes.bindMemory(to: UInt8.self).span)
        }
    }

    static func kind(of key: [UInt8]) -> StateRecord.Kind? {
        guard key.count == Self.keySize else { return nil }
        return StateRecord.Kind(rawValue: key[Self.principalSize])
    }
}
