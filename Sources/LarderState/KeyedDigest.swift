import Crypto
package import LarderCredentials

/// HMAC-SHA-256 (RFC 2104) under a key that nobody sees: what stands for a secret where it must be
/// told from others and never be shown.
package struct KeyedDigest: Sendable {
    private let key: SymmetricKey

    package init(_ key: Secret) {
        self.key = key.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { unsafe SymmetricKey(data: $0) }
        }
    }

    /// With a key of its own, for what ends with the process.
    package init() {
        self.key = SymmetricKey(size: .bits256)
    }

    /// 32 bytes.
    package func digest(_ octets: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: octets, using: self.key))
    }
}
