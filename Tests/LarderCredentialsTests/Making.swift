import Crypto
import LarderCredentials
import LarderHTTP
import SeededNumbers

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

func challenges(_ line: String) throws(ChallengeFault) -> [Challenge] {
    try Challenges.parse(bytes(line)[...])
}

/// The one challenge of a line.
func challenge(_ line: String) throws -> Challenge {
    let found = try challenges(line)
    guard let first = found.first, found.count == 1 else { throw ChallengeFault.tooMany }
    return first
}

func digest(_ parameters: String) throws -> DigestChallenge {
    try DigestChallenge(challenge("Digest " + parameters))
}

/// The hashes of RFC 7616 §6.1 that the library has: SHA-512/256 is not among them.
struct Hasher: DigestHasher {
    func hash(_ octets: [UInt8], by hash: DigestHash) -> [UInt8]? {
        switch hash {
        case .md5: Array(Insecure.MD5.hash(data: octets))
        case .sha256: Array(SHA256.hash(data: octets))
        case .sha512Over256: nil
        }
    }
}

/// Knows the SHA-512/256 of a few texts: recorded from OpenSSL, hexadecimal.
struct RecordedHasher: DigestHasher {
    let hashes: [String: String]

    func hash(_ octets: [UInt8], by hash: DigestHash) -> [UInt8]? {
        guard hash == .sha512Over256, let digits = self.hashes[text(octets)] else { return nil }
        return stride(from: 0, to: digits.utf8.count, by: 2).compactMap {
            UInt8(text(bytes(digits)[$0..<$0 + 2]), radix: 16)
        }
    }
}

extension SplitMix64 {
    private static let fragments = ["\"", "\\", ",", "=", " ", "\t", ", Basic ", "\u{0}", "=="]

    /// Damages text in a few places.
    mutating func mutated(_ text: String) -> [UInt8] {
        var out = Array(text.utf8)
        for _ in 0..<Int.random(in: 1...4, using: &self) where !out.isEmpty {
            let i = Int.random(in: out.indices, using: &self)
            switch Int.random(in: 0..<4, using: &self) {
            case 0: out[i] = UInt8.random(in: 0...255, using: &self)
            case 1: out.remove(at: i)
            case 2:
                let pick = Int.random(in: Self.fragments.indices, using: &self)
                out.insert(contentsOf: bytes(Self.fragments[pick]), at: i)
            default: out.removeSubrange(i..<min(i + 6, out.count))
            }
        }
        return out
    }
}
