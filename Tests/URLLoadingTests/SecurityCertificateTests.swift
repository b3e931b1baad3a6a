import Foundation
import LarderHTTP
import LarderTransfer
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite(
    "What is wrong with a certificate, from end to end (§13)", .timeLimit(.minutes(5)),
    .enabled(if: SecureOrigin.isAvailable, "nginx and openssl are needed as the origin"))
struct SecurityCertificateTests {
    /// A session's engine for which one root is the system's only one.
    private func engine(trusting root: MadeCertificate) -> SessionEngine {
        let settings = URLSessionConfiguration.ephemeral
        settings.connectionProxyDictionary = [:]
        return SessionEngine(
            settings,
            surroundings: SessionEngine.Surroundings(
                upstream: { (configuration) throws(TransferError) in
                    var configuration = configuration
                    configuration.certificateFile = root.certificate
                    return try CurlUpstream(configuration)
                }))
    }

    private func heard(
        _ engine: SessionEngine, _ url: String, _ answering: LoadProbe.Answering? = nil
    ) async throws -> LoadProbe.Heard {
        let probe = LoadProbe(answering: answering)
        let load = engine.load(
            LoadOrder(request: request(url), task: URLSessionTask()), observer: probe)
        defer { withExtendedLifetime(load) {} }
        return try await probe.ended()
    }

    @Test("has its code, and whoever is asked is told the same")
    func server() async throws {
        try await Scratch.with { scratch in
            let root = try await MadeCertificate.make("root", in: scratch.url)
            let other = try await MadeCertificate.make("other", in: scratch.url)
            let valid = try await MadeCertificate.make("valid", in: scratch.url, by: root)
            let expired = try await MadeCertificate.dated(
                "expired", in: scratch.url, from: "20000101000000Z", until: "20010101000000Z",
                by: root)
            let early = try await MadeCertificate.dated(
                "early", in: scratch.url, from: "20900101000000Z", until: "20910101000000Z",
                by: root)
            for (made, host, trusted, code) in [
                (valid, "localhost", root, nil),
                (expired, "localhost", root, .serverCertificateHasBadDate),
                (early, "localhost", root, .serverCertificateNotYetValid),
                (valid, "127.0.0.1", root, .serverCertificateUntrusted),
                (valid, "localhost", other, .serverCertificateHasUnknownRoot),
            ] as [(MadeCertificate, String, MadeCertificate, URLError.Code?)] {
                let origin = try await SecureOrigin.nginx(made, in: scratch.url)
                let engine = self.engine(trusting: trusted)
                let alone = try await self.heard(engine, origin.url(host))
                #expect(alone.error?.code == code, "\(made.certificate), \(host)")
                #expect((alone.status == 200) == (code == nil))
                let told = Event<URLError.Code?>(nil)
                let asked = try await self.heard(engine, origin.url(host)) { challenge in
                    told.change { $0 = (challenge.error as? URLError)?.code }
                    return (.performDefaultHandling, nil)
                }
                #expect(asked.error?.code == code && told.value == code)
                #expect(asked.challenges == 1 || code == nil)
                try await origin.stop()
            }
        }
    }

    @Test(
        "of a client's that is missing or has expired is told, too",
        arguments: ["-tls1_2", "-tls1_3"])
    func client(_ version: String) async throws {
        try await Scratch.with { scratch in
            let root = try await MadeCertificate.make("root", in: scratch.url)
            let made = try await MadeCertificate.make("localhost", in: scratch.url, by: root)
            let expired = try await MadeCertificate.dated(
                "expired", in: scratch.url, from: "20000101000000Z", until: "20010101000000Z",
                by: root)
            let origin = try await SecureOrigin.server(
                made,
                ["-Verify", "1", "-verify_return_error", "-CAfile", root.certificate, version])
            let engine = self.engine(trusting: root)
            let alone = try await self.heard(engine, origin.url())
            // TLS 1.2 has no word for that, and nobody has asked what the server wants.
            let code: URLError.Code =
                version == "-tls1_2" ? .secureConnectionFailed : .clientCertificateRequired
            #expect(alone.error?.code == code)
            let refusing = try await self.heard(engine, origin.url()) { _ in
                (.performDefaultHandling, nil)
            }
            #expect(refusing.error?.code == .clientCertificateRequired)
            let identity = try expired.identity
            let shown = try await self.heard(engine, origin.url()) { challenge in
                guard challenge.protectionSpace.serverTrust == nil else {
                    return (.performDefaultHandling, nil)
                }
                return (
                    .useCredential,
                    URLCredential(identity: identity, certificates: nil, persistence: .forSession)
                )
            }
            #expect(shown.error?.code == .clientCertificateRejected)
        }
    }
}
