public import Foundation
import LarderHTTP

/// A server as its certificates show it, and what the system's rules say of it.
///
/// In the place of Apple's `SecTrust`. Immutable, and safe to use on any thread.
public final class ServerTrust: Sendable {
    /// The name that was asked for.
    public let host: String
    /// The port that was asked for.
    public let port: Int
    private let peer: TLSPeer

    init(_ peer: TLSPeer) {
        self.peer = peer
        self.host = peer.host
        self.port = Int(peer.port)
    }

    /// What the system's rules find wrong.
    public enum Fault: String, Sendable, Hashable, CaseIterable {
        /// A certificate has run out.
        case expired
        /// A certificate is not valid yet.
        case notYetValid
        /// No authority that the system trusts stands behind it.
        case unknownRoot
        /// The certificate is not for this host.
        case wrongHost
        /// A certificate has been revoked.
        case revoked
        /// Anything else that is wrong with the chain.
        case untrusted
    }

    /// What is wrong by the system's rules, the name of the host included; nil: nothing.
    public var fault: Fault? { self.peer.fault.flatMap { Fault(rawValue: $0.rawValue) } }

    /// The certificates as the server sent them, its own first, DER.
    public var certificateData: [Data] { self.peer.certificates.map { Data($0) } }

    /// The certificates as the server sent them, its own first; one that cannot be read is left out.
    public var certificates: [ServerCertificate] {
        self.peer.certificates.compactMap { ServerCertificate(der: Data($0)) }
    }

    /// Throws where the system's rules do not trust the server.
    ///
    /// - Throws: the `URLError` that a task ends with which does not say otherwise.
    public func evaluate() throws {
        if let fault = self.peer.fault { throw URLError(fault) }
    }

    /// Whether the system's rules trust the server.
    public var isTrusted: Bool { self.peer.fault == nil }

    /// Whether it is the same server with the same certificates, as somebody decided on it.
    func covers(_ other: TLSPeer) -> Bool {
        self.peer.host == other.host && self.peer.port == other.port
            && self.peer.certificates == other.certificates
    }
}

extension ServerTrust: Hashable {
    public static func == (a: ServerTrust, b: ServerTrust) -> Bool { a.peer == b.peer }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.host)
        hasher.combine(self.port)
        hasher.combine(self.peer.certificates.first)
    }
}

extension ServerTrust: CustomStringConvertible {
    public var description: String {
        "\(self.host):\(self.port), \(self.peer.certificates.count) certificates, "
            + (self.fault.map { "not trusted: \($0.rawValue)" } ?? "trusted")
    }
}

extension URLError {
    /// What a task fails with whose server is not trusted.
    init(_ fault: TLSFault) {
        let code: URLError.Code =
            switch fault {
            case .expired: .serverCertificateHasBadDate
            case .notYetValid: .serverCertificateNotYetValid
            case .unknownRoot: .serverCertificateHasUnknownRoot
            case .wrongHost, .revoked, .untrusted: .serverCertificateUntrusted
            }
        self.init(code)
    }
}
