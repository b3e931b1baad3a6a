public import Foundation
import LarderCredentials
import LarderHTTP
import LarderTransfer

/// A client certificate with its private key, as a program shows it to servers that ask for one.
///
/// In the place of Apple's `SecIdentity`: made of files or data in PEM or PKCS #12. Immutable, and
/// safe to use on any thread; no description shows the key.
public final class URLClientIdentity: Sendable {
    /// Why something is no identity.
    public struct Fault: Error, Sendable, Hashable {
        /// The reasons there are.
        public enum Reason: String, Sendable, Hashable, CaseIterable {
            /// The file cannot be read.
            case unreadable
            /// It is no PEM and no PKCS #12, or a damaged one.
            case malformed
            /// There is no certificate in it.
            case noCertificate
            /// There is no private key in it, or none that the password opens.
            case noKey
            /// It is encrypted with another password.
            case wrongPassword
            /// The key does not belong to the certificate.
            case mismatch
            /// It is encrypted in a way that the TLS library at hand does not know.
            case unsupported
        }

        /// Why this one is none.
        public let reason: Reason
    }

    /// The client's own certificate first, then those that lead to its root.
    public let certificates: [ServerCertificate]
    private let key: Secret
    let tls: TLSIdentity

    /// Reads certificates and a key from PEM.
    ///
    /// - Parameters:
    ///   - pem: the client's certificate, then those that lead to its root.
    ///   - key: the private key; nil: it stands in `pem`, too.
    ///   - password: for an encrypted key; nil: it is not encrypted.
    /// - Throws: `Fault`.
    public convenience init(pem: Data, key: Data? = nil, password: String? = nil) throws {
        try self.init {
            () throws(ClientIdentityFault) in
            try ClientIdentityReader.pem(
                certificates: Array(pem), key: Array(key ?? pem), password: password ?? "")
        }
    }

    /// Reads certificates and a key from files in PEM.
    ///
    /// - Throws: `Fault`.
    public convenience init(
        contentsOfPEM certificates: URL, key: URL? = nil, password: String? = nil
    ) throws {
        try self.init(
            pem: Self.contents(certificates), key: key.map { try Self.contents($0) },
            password: password)
    }

    /// Reads all from PKCS #12.
    ///
    /// - Throws: `Fault`.
    public convenience init(pkcs12: Data, password: String) throws {
        try self.init {
            () throws(ClientIdentityFault) in
            try ClientIdentityReader.pkcs12(Array(pkcs12), password: password)
        }
    }

    /// Reads all from a file in PKCS #12 (`.p12`, `.pfx`).
    ///
    /// - Throws: `Fault`.
    public convenience init(contentsOfPKCS12 file: URL, password: String) throws {
        try self.init(pkcs12: Self.contents(file), password: password)
    }

    /// Reads a certificate and a key, both DER.
    convenience init(certificate: Data, key: Data) throws {
        try self.init {
            () throws(ClientIdentityFault) in
            try ClientIdentityReader.der(certificate: Array(certificate), key: Array(key))
        }
    }

    private convenience init(
        _ read: () throws(ClientIdentityFault) -> ClientIdentityParts
    ) throws {
        let parts: ClientIdentityParts
        do throws(ClientIdentityFault) {
            parts = try read()
        } catch {
            throw Fault(reason: Fault.Reason(error))
        }
        self.init(
            certificates: parts.certificates.compactMap { ServerCertificate(der: Data($0)) },
            key: Secret(parts.key))
    }

    private init(certificates: [ServerCertificate], key: Secret) {
        self.certificates = certificates
        self.key = key
        self.tls = TLSIdentity(
            form: .pem,
            certificate: certificates.flatMap { Self.pem("CERTIFICATE", $0.der) },
            key: Self.pem("PRIVATE KEY", Data(key.revealed)))
    }

    /// The identity with more certificates behind its own.
    func adding(_ chain: [Data]) -> URLClientIdentity {
        let more = chain.compactMap { ServerCertificate(der: $0) }.filter {
            !self.certificates.contains($0)
        }
        if more.isEmpty { return self }
        return URLClientIdentity(certificates: self.certificates + more, key: self.key)
    }

    /// The private key, DER (PKCS #8), copied out.
    var privateKey: Data { Data(self.key.revealed) }

    private static func contents(_ file: URL) throws -> Data {
        do {
            return try Data(contentsOf: file)
        } catch {
            throw Fault(reason: .unreadable)
        }
    }

    /// RFC 7468 §2.
    private static func pem(_ label: String, _ der: Data) -> [UInt8] {
        let text = der.base64EncodedString(options: [
            .lineLength64Characters, .endLineWithLineFeed,
        ])
        return Array("-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n".utf8)
    }
}

extension URLClientIdentity: Hashable {
    public static func == (a: URLClientIdentity, b: URLClientIdentity) -> Bool {
        a.certificates == b.certificates && a.key == b.key
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(self.certificates.first) }
}

extension URLClientIdentity: CustomStringConvertible, CustomReflectable {
    public var description: String {
        "client certificate of \(self.certificates.first?.subject ?? "nobody")"
    }

    /// Nothing: a mirror shows no key.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension URLClientIdentity.Fault: LocalizedError {
    /// What is wrong, for people.
    public var errorDescription: String? {
        switch self.reason {
        case .unreadable: "The file with the client certificate cannot be read."
        case .malformed: "This is neither PEM nor PKCS #12, or it is damaged."
        case .noCertificate: "There is no certificate in it."
        case .noKey: "There is no private key in it that the password opens."
        case .wrongPassword: "It is encrypted with another password."
        case .mismatch: "The private key does not belong to the certificate."
        case .unsupported: "It is encrypted in a way that the TLS library does not know."
        }
    }
}

extension URLClientIdentity.Fault.Reason {
    init(_ fault: ClientIdentityFault) {
        switch fault {
        case .malformed: self = .malformed
        case .noCertificate: self = .noCertificate
        case .noKey: self = .noKey
        case .wrongPassword: self = .wrongPassword
        case .mismatch: self = .mismatch
        case .unsupported: self = .unsupported
        }
    }
}
