import Foundation
import LarderHTTP
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Servers of https, and who trusts them (§6.1)")
struct HTTPTrustTests {
    /// Shows a certificate, and does as it is told about it.
    private func upstream(_ fault: TLSFault?, leaf: UInt8 = 1) -> ScriptedUpstream {
        ScriptedUpstream { request, receiver, _ in
            let peer = TLSPeer(
                host: request.uri.host, port: request.uri.port, certificates: [[leaf]],
                fault: fault)
            switch request.observer?.transfer(evaluates: peer) {
            case .trusted: receiver.answer(200, "trusted")
            case .bySystem where fault == nil: receiver.answer(200, "by the system")
            case .bySystem, .refused, .undecided, nil: receiver.fail(.tlsCertificateError)
            }
        }
    }

    /// Wants a client certificate, and takes it as long as it is told to.
    private func demanding(_ accepts: Event<Bool>) -> ScriptedUpstream {
        ScriptedUpstream { request, receiver, _ in
            let (isShown, isAccepted) = (request.transfer.identity != nil, accepts.value)
            if isShown, isAccepted { return receiver.answer(200, "come in") }
            let breaksOff =
                !isShown
                && request.observer?.transfer(
                    wantsCertificateFrom: [], host: request.uri.host, port: request.uri.port)
                    ?? false
            receiver.upstream(
                failed: UpstreamFailure(
                    .tlsCertificateError,
                    cause: breaksOff
                        ? .clientCertificateUndecided
                        : isShown ? .clientCertificateRejected : .clientCertificateRequired,
                    detail: "by the script"))
        }
    }

    private func heard(
        _ engine: SessionEngine, _ answering: LoadProbe.Answering?,
        _ url: String = "https://example.test/"
    ) async throws -> LoadProbe.Heard {
        let probe = LoadProbe(answering: answering)
        let load = engine.load(
            LoadOrder(request: request(url), task: URLSessionTask()), observer: probe)
        defer { withExtendedLifetime(load) {} }
        return try await probe.ended()
    }

    @Test(
        "nobody is asked where there is nobody to ask; what is wrong has its code (§13)",
        arguments: [
            (TLSFault.expired, URLError.Code.serverCertificateHasBadDate),
            (.notYetValid, .serverCertificateNotYetValid),
            (.unknownRoot, .serverCertificateHasUnknownRoot),
            (.wrongHost, .serverCertificateUntrusted), (.revoked, .serverCertificateUntrusted),
            (.untrusted, .serverCertificateUntrusted),
        ])
    func bySystem(_ fault: TLSFault, _ code: URLError.Code) async throws {
        let upstream = self.upstream(fault)
        let heard = try await self.heard(upstream.engine(), nil)
        #expect(heard.calls == ["failed", "measured"])
        #expect(heard.error?.code == code)
        #expect(upstream.requests.value.count == 1)
    }

    @Test("somebody is asked about a server once, and default handling is the system's")
    func defaultHandling() async throws {
        let upstream = self.upstream(nil)
        let engine = upstream.engine()
        let first = try await self.heard(engine) { _ in (.performDefaultHandling, nil) }
        #expect(first.calls == ["challenged", "answered", "measured"])
        #expect(first.text == "by the system")
        let second = try await self.heard(engine) { _ in (.cancelAuthenticationChallenge, nil) }
        #expect(second.calls == ["answered", "measured"])
        // Another port is another server.
        let third = try await self.heard(
            engine, { _ in (.cancelAuthenticationChallenge, nil) }, "https://example.test:8443/")
        #expect(third.calls == ["challenged", "failed", "measured"])
        #expect(third.error?.code == .cancelled)
    }

    @Test("a server that was left to the system is asked about again once that finds a fault")
    func faultLater() async throws {
        let fault = Event<TLSFault?>(nil)
        let upstream = ScriptedUpstream { request, receiver, _ in
            let peer = TLSPeer(
                host: request.uri.host, port: request.uri.port, certificates: [[1]],
                fault: fault.value)
            let verdict = request.observer?.transfer(evaluates: peer)
            if verdict == .bySystem, peer.fault == nil || verdict == .trusted {
                return receiver.answer()
            }
            receiver.fail(.tlsCertificateError)
        }
        let engine = upstream.engine()
        let first = try await self.heard(engine) { _ in (.performDefaultHandling, nil) }
        #expect(first.calls == ["challenged", "answered", "measured"])
        fault.change { $0 = .expired }
        let second = try await self.heard(engine) { _ in (.performDefaultHandling, nil) }
        #expect(second.calls == ["challenged", "failed", "measured"])
        #expect(second.error?.code == .serverCertificateHasBadDate)
    }

    @Test("a client certificate is shown again once it was accepted, and until it is refused (§6)")
    func identities() async throws {
        let accepts = Event(false)
        let engine = self.demanding(accepts).engine()
        let credential = URLCredential(
            identity: try CertificateFixtures.identity(), certificates: nil,
            persistence: .forSession)
        let answering: LoadProbe.Answering = { _ in (.useCredential, credential) }
        for isAccepted in [false, false, true, true, false, false, true] {
            accepts.change { $0 = isAccepted }
            let heard = try await self.heard(engine, answering)
            #expect(heard.error?.code == (isAccepted ? nil : .clientCertificateRejected))
            #expect(heard.status == (isAccepted ? 200 : nil))
        }
        var asked: [Bool] = []
        accepts.change { $0 = true }
        asked.append(try await self.heard(engine, answering).calls.contains("challenged"))
        accepts.change { $0 = false }
        asked.append(try await self.heard(engine, answering).calls.contains("challenged"))
        asked.append(try await self.heard(engine, answering).calls.contains("challenged"))
        #expect(asked == [false, false, true])
    }

    @Test("a client certificate that is not to be kept is asked for each time (§6.4)")
    func identityOnce() async throws {
        let engine = self.demanding(Event(true)).engine()
        let credential = URLCredential(
            identity: try CertificateFixtures.identity(), certificates: nil, persistence: .none)
        for _ in 0..<2 {
            let heard = try await self.heard(engine) { _ in (.useCredential, credential) }
            #expect(heard.calls == ["challenged", "answered", "measured"])
        }
    }

    @Test("what the system refuses is asked about each time, unless it was trusted")
    func refused() async throws {
        let upstream = self.upstream(.unknownRoot)
        let engine = upstream.engine()
        for _ in 0..<2 {
            let heard = try await self.heard(engine) { _ in (.performDefaultHandling, nil) }
            #expect(heard.calls == ["challenged", "failed", "measured"])
            #expect(heard.error?.code == .serverCertificateHasUnknownRoot)
        }
    }
}
