import LarderHTTP
import LarderSession
import Testing

@testable import LarderProxy

@Suite("Answers to requests whose fetch failed")
struct OwnAnswerTests {
    private static func answer(_ failure: UpstreamFailure) -> (status: UInt16, text: String) {
        let answer = OwnAnswer(ExchangeFailure(failure)).answer(to: Fields(), name: "p")
        return (
            answer.head.status.rawValue,
            answer.head.fields.string(FieldName("Proxy-Status")) ?? ""
        )
    }

    @Test(
        "name the setting of the bound that was passed",
        arguments: [
            (UpstreamFailure.Limit.resolve, "timeouts.resolve"), (.connect, "timeouts.connect"),
            (.response, "timeouts.response"), (.stall, "timeouts.stall"), (.head, "limits.head"),
            (.fieldCount, "limits.field-count"), (.idle, "timeouts.idle of its session"),
        ])
    func settings(_ limit: UpstreamFailure.Limit, _ setting: String) {
        var failure = UpstreamFailure(.httpResponseTimeout, detail: "too late")
        #expect(Self.answer(failure).text.hasSuffix("details=\"too late\""))
        failure.limit = limit
        let text = "details=\"too late (the proxy's setting \(setting))\""
        #expect(Self.answer(failure).text.hasSuffix(text))
    }

    @Test(
        "pass on what a parent refused a tunnel with, where that is for the client (RFC 9209 §2.1.4)",
        arguments: [
            (403, UpstreamFailure.Kind.httpRequestDenied, 403),
            (451, .httpRequestDenied, 451), (429, .httpRequestDenied, 429),
            (302, .httpRequestDenied, 403), (401, .httpRequestDenied, 403),
            (416, .httpRequestDenied, 403), (502, .destinationUnavailable, 502),
            (500, .destinationUnavailable, 503), (503, .destinationUnavailable, 503),
            (504, .connectionTimeout, 504), (404, .destinationNotFound, 500),
        ])
    func parents(_ received: UInt16, _ kind: UpstreamFailure.Kind, _ status: UInt16) {
        var failure = UpstreamFailure(kind, detail: "no")
        failure.receivedStatus = StatusCode(received)
        let answer = Self.answer(failure)
        #expect(answer.status == status)
        #expect(answer.text.contains("; received-status=\(received);"))
    }

    @Test("refuse a head that is sent to nobody with 431 (RFC 6585 §5)")
    func head() {
        let failure = UpstreamFailure(.requestHeadTooLarge, party: .client, detail: "no")
        #expect(Self.answer(failure).status == 431)
    }
}
