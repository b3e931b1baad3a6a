import Foundation
import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite(
    "Trust in servers is the observer's to give (RFC 9110 §4.3.4)", .timeLimit(.minutes(10)),
    .enabled(if: TLSOrigin.isAvailable, "nginx and openssl are needed as the origin"))
struct TrustTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var verdict: TLSVerdict
        var trustsRoot = true
        var host = "localhost"
        var days = 2
        var fault: TLSFault?
        var cause: UpstreamFailure.Cause?
        var testDescription: String { "\(self.verdict) of \(self.fault?.rawValue ?? "no fault")" }
    }

    @Test(
        "by a verdict upon the chain and what the system finds wrong with it",
        arguments: [
            Case(verdict: .bySystem),
            Case(verdict: .trusted),
            Case(verdict: .refused, cause: .certificateRefused),
            Case(verdict: .undecided, cause: .certificateUndecided),
            Case(
                verdict: .bySystem, trustsRoot: false, fault: .unknownRoot,
                cause: .certificateUnknownRoot),
            Case(verdict: .trusted, trustsRoot: false, fault: .unknownRoot),
            Case(
                verdict: .undecided, trustsRoot: false, fault: .unknownRoot,
                cause: .certificateUndecided),
            Case(
                verdict: .bySystem, host: "127.0.0.1", fault: .wrongHost,
                cause: .certificateWrongHost),
            Case(verdict: .trusted, host: "127.0.0.1", fault: .wrongHost),
        ])
    func verdicts(_ c: Case) async throws {
        let origin = try await TLSOrigin(days: c.days)
        let observer = RecordingObserver { _ in c.verdict }
        let record = try await withUpstream({
            if c.trustsRoot { $0.certificateFile = origin.certificate }
        }) { await $0.answer(to: origin.request(host: c.host).observed(by: observer)) }
        #expect(record.failure?.cause == c.cause)
        #expect((record.head?.status == .ok) == (c.cause == nil))
        #expect(record.violations == [])
        let peer = try #require(observer.heard.peers.first)
        #expect(observer.heard.peers.count == 1)
        #expect(peer.fault == c.fault)
        #expect(peer.host == c.host && peer.port == origin.port)
        let pem = try String(contentsOfFile: origin.certificate, encoding: .utf8)
        let base64 = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        #expect(peer.certificates == [Array(try #require(Data(base64Encoded: base64)))])
        await observer.isMeasured.passed()
        #expect(observer.heard.measurements.count == 1)
    }

    @Test("is not lent to requests whose observer does not give it, nor to those without one")
    func reuse() async throws {
        let origin = try await TLSOrigin()
        try await withUpstream({ $0.sharesThreads = true }) { upstream in
            let trusting = RecordingObserver { _ in .trusted }
            let first = await upstream.answer(to: origin.request().observed(by: trusting))
            #expect(first.head?.status == .ok && first.facts?.reused == false)
            let again = await upstream.answer(to: origin.request().observed(by: trusting))
            #expect(again.facts?.reused == true)
            let strict = RecordingObserver()
            let refused = await upstream.answer(to: origin.request().observed(by: strict))
            #expect(refused.failure?.cause == .certificateUnknownRoot)
            let undecided = RecordingObserver { _ in .undecided }
            let asked = await upstream.answer(to: origin.request().observed(by: undecided))
            #expect(asked.failure?.cause == .certificateUndecided)
            let blind = await upstream.answer(to: origin.request())
            #expect(blind.failure?.cause == .certificateUnknownRoot)
            let onlooker = RecordingObserver(evaluates: false) { _ in .trusted }
            let looked = await upstream.answer(to: origin.request().observed(by: onlooker))
            #expect(looked.failure?.cause == .certificateUnknownRoot)
            #expect(onlooker.heard.peers.isEmpty)
        }
    }

    @Test("is asked for at each new connection, as no session is resumed")
    func sessions() async throws {
        let origin = try await TLSOrigin(settings: "keepalive_timeout 0;")
        let observer = RecordingObserver()
        try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.http2 = false
        }) { upstream in
            for _ in 0..<3 {
                let record = await upstream.answer(to: origin.request().observed(by: observer))
                #expect(record.head?.status == .ok)
            }
        }
        #expect(observer.heard.peers.count == 3)
    }

    @Test("costs a cancelled fetch nothing, whenever it is cancelled")
    func cancelled() async throws {
        let origin = try await TLSOrigin()
        try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.http2 = false
        }) { upstream in
            for round in 0..<200 {
                let observer = RecordingObserver()
                let request = origin.request().observed(by: observer)
                let fetch = upstream.fetch(request, body: nil, receiver: Recorder())
                for _ in 0..<round { await Task.yield() }
                fetch.cancel()
                await observer.isMeasured.passed()
                #expect(observer.heard.measurements.count == 1)
            }
            let record = await upstream.answer(to: origin.request())
            #expect(record.head?.status == .ok)
        }
    }

    @Test("is for one certificate of a client's, or none: connections are not shared")
    func identity() async throws {
        let client = try await TLSOrigin()
        let origin = try await TLSOrigin(
            settings: """
                ssl_verify_client optional_no_ca;
                location /who { return 200 "$ssl_client_verify $ssl_client_s_dn"; }
                """)
        let identity = try client.identity
        try await withUpstream({ $0.certificateFile = origin.certificate }) { upstream in
            // Of a name with two addresses libcurl 8.14 opens a socket for each.
            #expect(await upstream.answer(to: origin.request(.get, "/who")).text == "NONE ")
            let each = upstream.statistics().connectionsOpened
            for _ in 0..<2 {
                let without = await upstream.answer(to: origin.request(.get, "/who"))
                #expect(without.text == "NONE ")
                let request = origin.request(.get, "/who").observed { $0.identity = identity }
                let with = await upstream.answer(to: request)
                #expect(with.text.hasSuffix("CN=localhost"))
            }
            #expect(upstream.statistics().connectionsOpened == 2 * each)
            let broken = TLSIdentity(form: .pkcs12, certificate: [1, 2, 3], password: "x")
            let failed = await upstream.answer(
                to: origin.request().observed { $0.identity = broken })
            #expect(failed.failure?.cause == .clientCertificateRejected)
            #expect(failed.failure?.kind == .proxyConfigurationError)
        }
    }

    @Test("a certificate that a server wants is asked for, and the handshake broken off to do so")
    func wanted() async throws {
        let origin = try await TLSOrigin(
            settings: "ssl_verify_client optional; ssl_client_certificate cert.pem;")
        try await withUpstream({ $0.certificateFile = origin.certificate }) { upstream in
            let asking = RecordingObserver(breaksOff: true)
            let record = await upstream.answer(to: origin.request().observed(by: asking))
            #expect(record.failure?.cause == .clientCertificateUndecided)
            #expect(asking.heard.wants.count == 1)
            let issuers = try #require(asking.heard.wants.first)
            #expect(issuers.count == 1 && issuers[0].first == 0x30)
            let without = RecordingObserver()
            let plain = await upstream.answer(to: origin.request().observed(by: without))
            #expect(plain.head?.status == .ok && without.heard.wants.count == 1)
            let with = RecordingObserver()
            let identity = try origin.identity
            let shown = await upstream.answer(
                to: origin.request().observed(by: with) { $0.identity = identity })
            #expect(shown.head?.status == .ok && with.heard.wants.isEmpty)
        }
    }

    @Test("faults are told apart (X509_STORE_CTX_get_error(3))")
    func faults() {
        for (code, fault) in [
            (0, nil), (10, .expired), (9, .notYetValid), (18, .unknownRoot), (20, .unknownRoot),
            (62, .wrongHost), (23, .revoked), (7, TLSFault.untrusted),
        ] as [(Int32, TLSFault?)] {
            #expect(TLSFault(verifyResult: code) == fault)
        }
    }

    @Test("without an observer is by the system's rules, whose causes are told apart, too")
    func causes() async throws {
        let origin = try await TLSOrigin()
        let unknown = try await withUpstream { await $0.answer(to: origin.request()) }
        #expect(unknown.failure?.cause == .certificateUnknownRoot)
        let misnamed = try await withUpstream({ $0.certificateFile = origin.certificate }) {
            await $0.answer(to: origin.request(host: "127.0.0.1"))
        }
        #expect(misnamed.failure?.cause == .certificateWrongHost)
    }
}
