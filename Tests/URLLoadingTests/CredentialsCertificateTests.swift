import Foundation
import LarderHTTP
import Testing

@testable import URLLoading

@Suite("A server's certificates (§6.4)")
struct CredentialsTrustTests {
    private static func peer(
        _ fault: TLSFault? = nil, host: String = "example.com"
    ) -> TLSPeer {
        TLSPeer(
            host: host, port: 443,
            certificates: [
                CertificateFixtures.certificate, CertificateFixtures.root,
            ].map { Array(CertificateFixtures.der($0)) }, fault: fault)
    }

    private func hex(_ data: Data) -> String {
        data.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test("a certificate is read: whose, by whom, when, and what pins are made of")
    func facts() throws {
        let der = CertificateFixtures.der(CertificateFixtures.certificate)
        let certificate = try #require(ServerCertificate(der: der))
        #expect(certificate.subject == "CN=client\\, one,O=Example")
        #expect(certificate.issuer == "CN=Test Root,O=Example Näme")
        #expect(certificate.der == der)
        #expect(
            self.hex(certificate.fingerprint)
                == "c23d4b9edd470a83cf045cea381665bf44ddea64f9a7954625fa8ee5bc5b65b6")
        #expect(
            self.hex(certificate.publicKeyHash)
                == "b7699042434f3d5aa83fc0bc10a85fd9ee1ea46b7d2c238f117028d083f601d6")
        #expect(certificate.publicKey.count == 91)
        #expect(certificate.validity.start == Date(timeIntervalSince1970: 1_795_277_698))
        #expect(certificate.validity.end == Date(timeIntervalSince1970: 4_948_877_698))
    }

    @Test("whatever is not exactly a certificate is none, wherever it is damaged")
    func damaged() {
        let der = CertificateFixtures.der(CertificateFixtures.certificate)
        #expect(ServerCertificate(der: Data()) == nil)
        #expect(ServerCertificate(der: der + [0]) == nil)
        for length in 0..<der.count {
            #expect(ServerCertificate(der: der.prefix(length)) == nil)
        }
        for index in der.indices {
            var changed = der
            changed[index] ^= 0xFF
            _ = ServerCertificate(der: changed)
        }
    }

    @Test("trust shows the chain and what the system's rules say of it")
    func trust() throws {
        let challenge = TLSChallenge.serverTrust(Self.peer(.unknownRoot))
        let space = challenge.protectionSpace
        #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)
        #expect(space.receivesCredentialSecurely)
        #expect(challenge.isSessionWide)
        #expect(challenge.proposedCredential == nil)
        #expect((challenge.error as? URLError)?.code == .serverCertificateHasUnknownRoot)
        let trust = try #require(space.serverTrust)
        #expect(trust.host == "example.com")
        #expect(trust.certificateData.count == 2)
        #expect(trust.certificates.map(\.subject).last == "CN=Test Root,O=Example Näme")
        #expect(trust.fault == .unknownRoot)
        #expect(!trust.isTrusted)
        #expect(throws: URLError.self) { try trust.evaluate() }
        try ServerTrust(Self.peer()).evaluate()
    }

    @Test(
        "each fault has its error (§13)",
        arguments: [
            (.expired, .serverCertificateHasBadDate),
            (.notYetValid, .serverCertificateNotYetValid),
            (.unknownRoot, .serverCertificateHasUnknownRoot),
            (.wrongHost, .serverCertificateUntrusted), (.revoked, .serverCertificateUntrusted),
            (.untrusted, .serverCertificateUntrusted),
        ] as [(TLSFault, URLError.Code)])
    func faults(fault: TLSFault, code: URLError.Code) {
        #expect(URLError(fault).code == code)
        #expect(ServerTrust(Self.peer(fault)).fault?.rawValue == fault.rawValue)
    }

    private func verdict(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential? = nil
    ) -> TLSVerdict? {
        guard
            case .goOn(let verdict) = TLSChallenge.verdict(
                disposition, credential, on: Self.peer(.unknownRoot))
        else { return nil }
        return verdict
    }

    @Test("only trust in these very certificates makes a server trusted (§6.3)")
    func verdicts() {
        let trust = URLCredential(trust: ServerTrust(Self.peer(.unknownRoot)))
        #expect(trust.persistence == .none)
        #expect(self.verdict(.useCredential, trust) == .trusted)
        var other = Self.peer(.unknownRoot)
        other.certificates.removeLast()
        for credential in [
            nil, URLCredential(trust: ServerTrust(other)),
            URLCredential(trust: ServerTrust(Self.peer(.unknownRoot, host: "else.example"))),
            URLCredential(user: "u", password: "p", persistence: .none),
        ] {
            #expect(self.verdict(.useCredential, credential) == .bySystem)
        }
        #expect(self.verdict(.performDefaultHandling, trust) == .bySystem)
        #expect(self.verdict(.rejectProtectionSpace, trust) == .bySystem)
        #expect(self.verdict(.cancelAuthenticationChallenge, trust) == nil)
    }
}

@Suite("A client certificate (§6.4)")
struct CredentialsIdentityTests {
    private func reason(_ make: () throws -> URLClientIdentity) -> URLClientIdentity.Fault.Reason? {
        do {
            _ = try make()
            return nil
        } catch {
            return (error as? URLClientIdentity.Fault)?.reason
        }
    }

    private static func data(_ texts: String...) -> Data {
        Data(texts.joined(separator: "\n").utf8)
    }

    @Test("is read from PEM, in one piece or two, with the chain")
    func pem() throws {
        let one = try CertificateFixtures.identity()
        #expect(one.certificates.map(\.subject) == ["CN=client\\, one,O=Example"])
        let whole = try URLClientIdentity(
            pem: Self.data(
                CertificateFixtures.certificate, CertificateFixtures.root,
                CertificateFixtures.key))
        #expect(whole.certificates.count == 2)
        #expect(whole.privateKey == one.privateKey)
        let encrypted = try URLClientIdentity(
            pem: Self.data(CertificateFixtures.certificate),
            key: Self.data(CertificateFixtures.encryptedKey), password: "secret")
        #expect(encrypted == one)
    }

    @Test("is read from PKCS #12, and means the same")
    func pkcs12() throws {
        let identity = try URLClientIdentity(
            pkcs12: CertificateFixtures.bundle, password: "secret")
        #expect(identity.certificates.count == 2)
        #expect(identity.privateKey == (try CertificateFixtures.identity().privateKey))
        // What the handshake is given reads back.
        let again = try URLClientIdentity(
            pem: Data(identity.tls.certificate), key: Data(identity.tls.key))
        #expect(again == identity)
        #expect(identity.tls.form == .pem)
        #expect(identity.tls.password.isEmpty)
    }

    @Test("what is wrong is said")
    func faults() {
        let (certificate, key) = (
            Self.data(CertificateFixtures.certificate), Self.data(CertificateFixtures.key)
        )
        #expect(self.reason { try URLClientIdentity(pem: Data()) } == .noCertificate)
        #expect(self.reason { try URLClientIdentity(pem: key) } == .noCertificate)
        #expect(self.reason { try URLClientIdentity(pem: certificate) } == .noKey)
        let sealed = Self.data(CertificateFixtures.encryptedKey)
        for password in [nil, "", "wrong"] {
            #expect(
                self.reason {
                    try URLClientIdentity(pem: certificate, key: sealed, password: password)
                } == .noKey)
        }
        let other = Self.data(CertificateFixtures.otherKey)
        #expect(self.reason { try URLClientIdentity(pem: certificate, key: other) } == .mismatch)
        let bundle = CertificateFixtures.bundle
        #expect(
            self.reason { try URLClientIdentity(pkcs12: bundle, password: "else") }
                == .wrongPassword)
        #expect(
            self.reason { try URLClientIdentity(pkcs12: certificate, password: "") } == .malformed)
        #expect(self.reason { try URLClientIdentity(pkcs12: Data(), password: "") } == .malformed)
        #expect(
            self.reason {
                try URLClientIdentity(
                    pkcs12: CertificateFixtures.oldBundle, password: "secret")
            } == .unsupported)
        let absent = URL(fileURLWithPath: "/nonexistent/identity.p12")
        #expect(
            self.reason { try URLClientIdentity(contentsOfPKCS12: absent, password: "") }
                == .unreadable)
        #expect(
            self.reason { try URLClientIdentity(contentsOfPEM: absent) } == .unreadable)
    }

    @Test("a damaged file is refused or read, and never anything else")
    func damaged() {
        let bundle = CertificateFixtures.bundle
        for index in stride(from: 0, to: bundle.count, by: 7) {
            var changed = bundle
            changed[index] ^= 0x55
            _ = self.reason { try URLClientIdentity(pkcs12: changed, password: "secret") }
            _ = self.reason {
                try URLClientIdentity(pkcs12: bundle.prefix(index), password: "secret")
            }
        }
    }

    @Test("shows its key in no description")
    func secrecy() throws {
        let identity = try CertificateFixtures.identity()
        var dumped = ""
        dump(identity, to: &dumped)
        let key = String(decoding: identity.tls.key, as: UTF8.self).prefix(60)
        for text in ["\(identity)", String(reflecting: identity), dumped, "\(identity.tls)"] {
            #expect(!text.contains(key))
        }
    }

    @Test("a credential shows it to servers that ask, and intermediate certificates with it")
    func credential() throws {
        let identity = try CertificateFixtures.identity()
        let credential = URLCredential(
            identity: identity, certificates: [CertificateFixtures.der(CertificateFixtures.root)],
            persistence: .forSession)
        #expect(credential.identity?.certificates.count == 2)
        #expect(credential.certificates.count == 1)
        #expect(credential.user == nil)
        #expect(!credential.hasPassword)
        guard case .goOn(let shown?) = TLSChallenge.identity(.useCredential, credential) else {
            Issue.record("nothing is shown")
            return
        }
        #expect(String(decoding: shown.certificate, as: UTF8.self).contains("BEGIN CERTIFICATE"))
        for disposition in [
            URLSession.AuthChallengeDisposition.performDefaultHandling, .rejectProtectionSpace,
        ] {
            guard case .goOn(nil) = TLSChallenge.identity(disposition, credential) else {
                Issue.record("something is shown by \(disposition)")
                continue
            }
        }
        guard case .fail(let error) = TLSChallenge.identity(.cancelAuthenticationChallenge, nil)
        else {
            Issue.record("not cancelled")
            return
        }
        #expect(error.code == .cancelled)
    }

    @Test("the challenge names the issuers, and proposes what is stored for the server")
    func challenge() throws {
        let storage = URLCredentialStorage()
        let credential = URLCredential(
            identity: try CertificateFixtures.identity(), certificates: nil,
            persistence: .forSession)
        storage.setDefaultCredential(
            credential,
            for: URLProtectionSpace(
                host: "example.com", port: 443, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
                authenticationMethod: NSURLAuthenticationMethodClientCertificate))
        let challenge = TLSChallenge.clientCertificate(
            from: [[0x30, 0x00]], host: "example.com", port: 443, storage: storage)
        #expect(challenge.protectionSpace.distinguishedNames == [Data([0x30, 0x00])])
        #expect(challenge.proposedCredential == credential)
        #expect(challenge.isSessionWide)
    }

    @Test("a key and a certificate in DER make one, and what does not fit makes none")
    func der() throws {
        let certificate = CertificateFixtures.der(CertificateFixtures.certificate)
        let fitting = URLCredential(
            clientKey: CertificateFixtures.der(CertificateFixtures.key),
            clientCertificate: certificate, persistence: .forSession)
        #expect(fitting.privateClientCertificate == certificate)
        #expect(fitting.privateClientKey != nil)
        let other = URLCredential(
            clientKey: CertificateFixtures.der(CertificateFixtures.otherKey),
            clientCertificate: certificate, persistence: .forSession)
        #expect(other.identity == nil)
    }
}
