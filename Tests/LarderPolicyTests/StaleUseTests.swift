import LarderHTTP
import LarderPolicy
import Testing

@Suite("A stale response when the origin fails (RFC 9111 §4.2.4, RFC 5861 §4)")
struct StaleOnErrorTests {
    struct Case: Sendable {
        let held: String
        let asked: String
        let age: Int64
        let configuration: PolicyConfiguration
        let reason: PolicyReason?

        init(
            _ held: String, asked: String = "", age: Int64 = 12,
            by configuration: PolicyConfiguration = .shared, _ reason: PolicyReason?
        ) {
            self.held = "Cache-Control: max-age=10" + held
            self.asked = asked
            self.age = age
            self.configuration = configuration
            self.reason = reason
        }
    }

    static let grace = PolicyConfiguration(staleIfErrorGrace: .seconds(60))
    static let disconnected: PolicyConfiguration = {
        var configuration = PolicyConfiguration.shared
        configuration.unreachableGrace = .seconds(10)
        return configuration
    }()

    @Test(
        "is used within the window, unless somebody forbids it",
        arguments: [
            Case("", nil), Case(", stale-if-error=2", .staleIfError),
            Case(", stale-if-error=1", nil), Case(", stale-if-error=x", nil),
            Case("", asked: "Cache-Control: stale-if-error=2", .staleIfError),
            Case("", asked: "Cache-Control: stale-if-error=1", nil),
            Case(", stale-if-error=1", asked: "Cache-Control: stale-if-error=2", .staleIfError),
            Case("", by: grace, .graceOnError), Case("", age: 70, by: grace, .graceOnError),
            Case("", age: 71, by: grace, nil), Case(", stale-if-error=5", by: grace, .staleIfError),
            Case(", stale-if-error=1", by: grace, .graceOnError),
            Case(", must-revalidate, stale-if-error=5", by: grace, nil),
            Case(", proxy-revalidate, stale-if-error=5", by: grace, nil),
            Case(", s-maxage=10, stale-if-error=5", by: grace, nil),
            Case(", no-cache, stale-if-error=5", by: grace, nil),
            Case(", no-store, stale-if-error=5", by: grace, nil),
            Case(", no-cache=\"x\", stale-if-error=5", by: grace, .staleIfError),
            Case(", proxy-revalidate, stale-if-error=5", by: .private, .staleIfError),
            Case(", s-maxage=10, stale-if-error=5", by: .private, .staleIfError),
            Case(", stale-if-error=5", asked: "Cache-Control: no-cache", by: grace, nil),
            Case(", stale-if-error=5", asked: "Pragma: no-cache", by: grace, nil),
            Case(", stale-if-error=5", asked: "Cache-Control: max-age=60", by: grace, nil),
            Case(", stale-if-error=5", asked: "Cache-Control: min-fresh=1", by: grace, nil),
            Case(
                ", stale-if-error=5", asked: "Cache-Control: max-age=60, max-stale=60",
                .staleIfError),
            Case(", stale-if-error=5", asked: "Cache-Control: max-stale=1", by: grace, nil),
            Case(", stale-if-error=5", asked: "Cache-Control: max-stale=2", .staleIfError),
            Case(", stale-if-error=5", asked: "Cache-Control: max-stale", .staleIfError),
            Case(", private, stale-if-error=5", by: grace, nil),
            Case(", private, stale-if-error=5", by: .private, .staleIfError),
            Case(", no-cache=\"etag\", stale-if-error=5 | ETag: \"a\"", by: grace, nil),
        ])
    func window(_ c: Case) {
        let reason = StaleOnError.permits(
            stored(c.held), request: request(c.asked), now: t0 + .seconds(c.age),
            configuration: c.configuration)
        #expect(reason == c.reason)
    }

    @Test(
        "has a window of its own where no answer came at all (RFC 9111 §4.2.4)",
        arguments: [
            Case("", nil), Case("", by: disconnected, .graceWithoutAnswer),
            Case("", age: 20, by: disconnected, .graceWithoutAnswer),
            Case("", age: 21, by: disconnected, nil),
            Case(", stale-if-error=5", by: disconnected, .staleIfError),
            Case(", stale-if-error=1", by: disconnected, .graceWithoutAnswer),
            Case(", must-revalidate", by: disconnected, nil),
            Case(", no-cache", by: disconnected, nil), Case(", s-maxage=10", by: disconnected, nil),
            Case("", asked: "Cache-Control: no-cache", by: disconnected, nil),
            Case("", age: 70, by: grace, .graceOnError),
            Case("", asked: "Cache-Control: max-stale=1", by: disconnected, nil),
            Case("", asked: "Cache-Control: max-age=0, max-stale=1", by: disconnected, nil),
            Case("", asked: "Cache-Control: no-store", by: disconnected, nil),
            Case("", asked: "Cache-Control: max-age=0, no-cache", by: disconnected, nil),
            Case("", asked: "Pragma: no-cache", by: disconnected, nil),
        ])
    func disconnectedWindow(_ c: Case) {
        for hasAnswered in [true, false] {
            let reason = StaleOnError.permits(
                stored(c.held), request: request(c.asked), hasAnswered: hasAnswered,
                now: t0 + .seconds(c.age), configuration: c.configuration)
            let expected = hasAnswered && c.reason == .graceWithoutAnswer ? nil : c.reason
            #expect(reason == expected)
        }
    }

    @Test(
        "is used against the client's preference where no answer came (RFC 9111 §5.2.1.1, §5.2.1.3)",
        arguments: [
            Case("", asked: "Cache-Control: max-age=0", by: disconnected, .graceWithoutAnswer),
            Case(
                "", asked: "Cache-Control: max-age=0", age: 5, by: disconnected,
                .graceWithoutAnswer),
            Case("", asked: "Cache-Control: max-age=60", by: disconnected, .graceWithoutAnswer),
            Case("", asked: "Cache-Control: min-fresh=1", by: disconnected, .graceWithoutAnswer),
            Case(
                ", stale-if-error=5", asked: "Cache-Control: max-age=0", by: disconnected,
                .staleIfError),
            Case("", asked: "Cache-Control: max-age=0", by: grace, .graceOnError),
            Case("", asked: "Cache-Control: max-age=0", age: 21, by: disconnected, nil),
            Case(
                ", must-revalidate", asked: "Cache-Control: max-age=0", by: disconnected, nil),
            Case(", no-cache", asked: "Cache-Control: max-age=0", by: disconnected, nil),
            Case(
                ", proxy-revalidate", asked: "Cache-Control: max-age=0", by: disconnected, nil),
            Case(", s-maxage=10", asked: "Cache-Control: max-age=0", by: disconnected, nil),
            // A cache that uses nothing stale of its own accord, as the library's, holds to it.
            Case(", stale-if-error=5", asked: "Cache-Control: max-age=0", by: .private, nil),
            Case(", stale-if-error=5", asked: "Cache-Control: min-fresh=1", by: .private, nil),
        ])
    func preference(_ c: Case) {
        for hasAnswered in [true, false] {
            let reason = StaleOnError.permits(
                stored(c.held), request: request(c.asked), hasAnswered: hasAnswered,
                now: t0 + .seconds(c.age), configuration: c.configuration)
            #expect(reason == (hasAnswered ? nil : c.reason))
        }
    }

    @Test("is never one that was invalidated")
    func invalidated() {
        let head = stored("Cache-Control: max-age=10, stale-if-error=5", invalidated: true)
        let reason = StaleOnError.permits(
            head, request: request(), now: t0, configuration: Self.grace)
        #expect(reason == nil)
    }

    @Test("is asked for after 500, 502, 503 and 504")
    func failures() {
        let failing = (200...599).filter { StaleOnError.isFailure(StatusCode(UInt16($0))) }
        #expect(failing == [500, 502, 503, 504])
    }
}

@Suite("A failure to validate what must be validated (RFC 9111 §5.2.2.2)")
struct DemandedErrorTests {
    @Test(
        "is told as such",
        arguments: [
            ("max-age=1", .shared, nil), ("max-age=1, must-revalidate", .shared, .mustRevalidate),
            ("max-age=1, must-revalidate", .private, .mustRevalidate),
            ("no-cache, must-revalidate", .shared, .mustRevalidate), ("no-cache", .shared, nil),
            ("max-age=1, proxy-revalidate", .shared, .proxyRevalidate),
            ("max-age=1, proxy-revalidate", .private, nil),
            ("s-maxage=1", .shared, .sharedLifetimeOver), ("s-maxage=1", .private, nil),
        ] as [(String, PolicyConfiguration, PolicyReason?)])
    func reason(_ held: String, _ configuration: PolicyConfiguration, _ reason: PolicyReason?) {
        let found = StaleOnError.demandsError(
            stored("Cache-Control: \(held)"), configuration: configuration)
        #expect(found == reason)
    }
}
