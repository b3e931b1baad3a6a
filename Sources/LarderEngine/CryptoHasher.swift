import Crypto
package import LarderCredentials

/// The hashes of Digest by swift-crypto (RFC 7616 §6.1): SHA-512/256 is not among them.
///
/// MD5 protects nothing, and is here because it is what most servers with Digest ask for.
package struct CryptoHasher: DigestHasher {
    package init() {}

    package func hash(_ octets: [UInt8], by hash: DigestHash) -> [UInt8]? {
        switch hash {
        case .md5: Array(Insecure.MD5.hash(data: octets))
        case .sha256: Array(SHA256.hash(data: octets))
        case .sha512Over256: nil
        }
    }
}
