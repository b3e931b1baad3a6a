import Foundation
import LarderHTTP

/// What a connection asks in the midst of its handshake, as a challenge, and what the answer to that
/// means for the handshake.
enum TLSChallenge {
    /// The question whether a server is trusted.
    ///
    /// - Parameter protocol: the scheme of the request.
    static func serverTrust(
        _ peer: TLSPeer, protocol: String = NSURLProtectionSpaceHTTPS
    ) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            URLProtectionSpace(trust: ServerTrust(peer), protocol: `protocol`),
            error: peer.fault.map { URLError($0) })
    }

    /// The question for a client certificate.
    ///
    /// - Parameters:
    ///   - issuers: the names that the server accepts, DER.
    ///   - storage: where the program may have stored a credential for the server.
    static func clientCertificate(
        from issuers: [[UInt8]], host: String, port: UInt16,
        protocol: String = NSURLProtectionSpaceHTTPS, storage: URLCredentialStorage?
    ) -> URLAuthenticationChallenge {
        let space = URLProtectionSpace(
            host: host, port: Int(port), protocol: `protocol`,
            distinguishedNames: issuers.map { Data($0) })
        let plain = URLProtectionSpace(
            host: host, port: Int(port), protocol: `protocol`, realm: nil,
            authenticationMethod: NSURLAuthenticationMethodClientCertificate)
        return URLAuthenticationChallenge(
            space, proposing: storage?.defaultCredential(for: plain))
    }

    /// What is to become of a handshake.
    enum Decision<Answer: Sendable>: Sendable {
        case goOn(Answer)
        case fail(URLError)
    }

    /// What an answer about a server means.
    ///
    /// A credential with trust in other certificates than these changes nothing about them; neither
    /// does one of another kind, or none: the system's rules hold then.
    static func verdict(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?,
        on peer: TLSPeer
    ) -> Decision<TLSVerdict> {
        switch disposition {
        case .useCredential:
            guard let trust = credential?.serverTrust, trust.covers(peer) else {
                return .goOn(.bySystem)
            }
            return .goOn(.trusted)
        case .performDefaultHandling, .rejectProtectionSpace: return .goOn(.bySystem)
        case .cancelAuthenticationChallenge: return .fail(URLError(.cancelled))
        }
    }

    /// What an answer about a client certificate means; nil: go on without one.
    static func identity(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?
    ) -> Decision<TLSIdentity?> {
        switch disposition {
        case .useCredential: .goOn(credential?.identity?.tls)
        case .performDefaultHandling, .rejectProtectionSpace: .goOn(nil)
        case .cancelAuthenticationChallenge: .fail(URLError(.cancelled))
        }
    }
}
