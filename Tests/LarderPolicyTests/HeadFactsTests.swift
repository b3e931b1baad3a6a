import LarderHTTP
import LarderPolicy
import Testing

/// What is read from a stored response's fields is remembered: never longer than it holds.
@Suite("What a stored head says is read once, and anew when it has changed (RFC 9111 §4)")
struct HeadFactsTests {
    private func lifetime(
        _ head: StoredHead, by configuration: PolicyConfiguration = .shared
    ) -> Duration {
        Freshness.of(head, at: t0, configuration: configuration).lifetime
    }

    @Test("other fields have another lifetime, and the copy made before keeps its own")
    func otherFields() {
        var head = stored("Cache-Control: max-age=60")
        #expect(self.lifetime(head) == .seconds(60))
        let copy = head
        head.fields = fields("Cache-Control: max-age=90")
        #expect(self.lifetime(head) == .seconds(90))
        #expect(self.lifetime(copy) == .seconds(60))
        head.fields.set("Cache-Control", "max-age=5")
        #expect(self.lifetime(head) == .seconds(5))
        #expect(self.lifetime(copy) == .seconds(60))
    }

    @Test("the century of a two-digit year is that of the receipt (RFC 9110 §5.6.7)")
    func otherReceipt() {
        var head = stored("Date: Sunday, 06-Nov-94 08:49:37 GMT")
        let first = AgeArithmetic.of(head, at: t0).dateValue
        head.responseTime = t0 + .seconds(60 * 365 * 86_400)
        let second = AgeArithmetic.of(head, at: t0).dateValue
        #expect(first == Timestamp(seconds: 784_111_777))
        #expect(second != nil && second != first)
    }

    @Test("settings that change count at once: nothing of them is remembered")
    func otherSettings() {
        let head = stored("Cache-Control: s-maxage=30, max-age=60 | CDN-Cache-Control: max-age=7")
        var targeted = PolicyConfiguration.shared
        targeted.targetedFields = ["cdn-cache-control"]
        #expect(self.lifetime(head) == .seconds(30))
        #expect(self.lifetime(head, by: .private) == .seconds(60))
        #expect(self.lifetime(head, by: targeted) == .seconds(7))
        #expect(self.lifetime(head) == .seconds(30))
    }

    @Test("other variants are selected once Vary says so (§4.1)")
    func otherVary() {
        var head = stored("Vary: Accept-Charset", varying: "Accept-Charset: utf-8")
        let presented = request("Accept-Charset: latin1")
        #expect(!Variance.matches(head, presented, configuration: .shared))
        head.fields.remove("Vary")
        #expect(Variance.matches(head, presented, configuration: .shared))
    }

    @Test("an answer's Age and Content-Length are its own, its Date the origin's (§5.1)")
    func answer() {
        var head = stored("Content-Length: 3 | Age: 7 | X-One: 1 | Date: @-10")
        func names(_ age: Int64) -> [String] {
            StoredAnswer.head(
                for: head, outcome: .full, bodyLength: 3, age: .seconds(age), now: t0
            ).fields.pairs.map { "\($0.name): \($0.value)" }
        }
        let date = "Date: \(HTTPDate.format(t0 - .seconds(10)))"
        #expect(names(20) == ["X-One: 1", date, "Age: 20"])
        #expect(names(21) == ["X-One: 1", date, "Age: 21"])
        head.fields = fields("X-Two: 2")
        #expect(names(5) == ["X-Two: 2", "Date: \(HTTPDate.format(t0))", "Age: 5"])
    }

    @Test("heads are equal by what they are, whether they have been read or not")
    func equality() {
        let read = stored("Cache-Control: max-age=60")
        _ = self.lifetime(read)
        #expect(read == stored("Cache-Control: max-age=60"))
        #expect(read != stored("Cache-Control: max-age=61"))
    }
}
