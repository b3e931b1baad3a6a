public import Foundation
import LarderCredentials
import LarderEngine
import LarderHTTP
import LarderTransfer

/// A certificate in a form that people and pins can read.
public struct ServerCertificate: Sendable, Hashable {
    private let facts: X509Certificate

    /// Reads a certificate (X.509, DER); nil where the data are not exactly one.
    public init?(der: Data) {
        guard let facts = X509Certificate(der: Array(der)) else { return nil }
        self.facts = facts
    }

    /// The certificate itself, DER.
    public var der: Data { Data(self.facts.der) }

    /// Whose it is: a distinguished name as text (RFC 4514), `CN=example.com,O=Example`.
    public var subject: String { self.facts.subject }

    /// Who vouches for it, likewise.
    public var issuer: String { self.facts.issuer }

    /// From when to when it is valid.
    public var validity: DateInterval {
        let from = Date(self.facts.validFrom)
        let until = Date(self.facts.validUntil)
        // One that ends before it begins is never valid.
        return DateInterval(start: from, end: max(from, until))
    }

    /// The SHA-256 of the whole certificate: 32 octets.
    public var fingerprint: Data { Self.hash(self.facts.der) }

    /// The public key with its algorithm (`SubjectPublicKeyInfo`), DER.
    public var publicKey: Data { Data(self.facts.publicKeyInfo) }

    /// The SHA-256 of the public key (`SubjectPublicKeyInfo`), as pins have it (RFC 7469 §2.4): 32
    /// octets, the same as long as the key is, also in another certificate.
    public var publicKeyHash: Data { Self.hash(self.facts.publicKeyInfo) }

    private static func hash(_ octets: [UInt8]) -> Data {
        Data(CryptoHasher().hash(octets, by: .sha256) ?? [])
    }
}

extension ServerCertificate: CustomStringConvertible {
    public var description: String { "\(self.subject), issued by \(self.issuer)" }
}

extension Date {
    fileprivate init(_ moment: Timestamp) {
        self.init(timeIntervalSince1970: Double(moment.microseconds) / 1_000_000)
    }
}
