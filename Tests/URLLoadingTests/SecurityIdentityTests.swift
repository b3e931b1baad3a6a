import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite(
    "Client certificates from end to end (§6)", .timeLimit(.minutes(5)),
    .enabled(if: SecureOrigin.isAvailable, "nginx and openssl are needed as the origin"))
struct SecurityIdentityTests {
    @Test("one is asked for, shown from PEM and PKCS #12, and left out where there is none")
    func optional() async throws {
        try await Scratch.with { scratch in
            let made = try await MadeCertificate.make("localhost", in: scratch.url)
            let client = try await MadeCertificate.make("client", in: scratch.url)
            let bundle = scratch.url.appendingPathComponent("client.p12")
            try await SecureOrigin.run([
                "pkcs12", "-export", "-in", client.certificate, "-inkey", client.key, "-out",
                bundle.path, "-passout", "pass:word",
            ])
            let origin = try await SecureOrigin.nginx(
                made, in: scratch.url,
                "ssl_verify_client optional; ssl_client_certificate \(client.certificate);")
            let identities = [
                nil,
                try client.identity,
                try URLClientIdentity(contentsOfPKCS12: bundle, password: "word"),
            ]
            for identity in identities {
                let delegate = SessionChallengeDelegate { challenge in
                    let space = challenge.protectionSpace
                    if let trust = space.serverTrust {
                        return (.useCredential, URLCredential(trust: trust))
                    }
                    return (
                        .useCredential,
                        identity.map {
                            URLCredential(identity: $0, certificates: nil, persistence: .forSession)
                        }
                    )
                }
                let session = URLSession.alone(delegate)
                for _ in 0..<2 {
                    let text = try await session.loaded(origin.url()).text
                    #expect(text.hasSuffix(identity == nil ? "HTTP/2.0 " : "CN=client"))
                }
                let spaces = delegate.challenges.value.map(\.protectionSpace)
                #expect(
                    spaces.map(\.authenticationMethod) == [
                        NSURLAuthenticationMethodServerTrust,
                        NSURLAuthenticationMethodClientCertificate,
                    ])
                #expect(spaces.last?.distinguishedNames?.count == 1)
                session.invalidateAndCancel()
            }
        }
    }

    @Test(
        "what is required and missing, or refused, has its error (§13)",
        arguments: ["-tls1_2", "-tls1_3"])
    func required(_ version: String) async throws {
        try await Scratch.with { scratch in
            let demanding = try await DemandingOrigin.start(version, in: scratch.url)
            let identity = Event<URLClientIdentity?>(nil)
            let delegate = SessionChallengeDelegate { challenge in
                if let trust = challenge.protectionSpace.serverTrust {
                    return (.useCredential, URLCredential(trust: trust))
                }
                guard let identity = identity.value else { return (.performDefaultHandling, nil) }
                return (
                    .useCredential,
                    URLCredential(identity: identity, certificates: nil, persistence: .forSession)
                )
            }
            // One for all: what was refused is not shown again.
            let session = URLSession.alone(delegate)
            for (shown, code) in demanding.cases {
                identity.change { $0 = shown }
                let loaded = try await session.loaded(demanding.origin.url())
                #expect(loaded.code == code, "\(loaded.error as Any)")
                if code == nil { #expect(loaded.status == 200) }
            }
            session.invalidateAndCancel()
        }
    }
}
