import Testing

@testable import LarderProxy

@Suite("How often clients may guess who they are")
struct GuessLimitTests {
    static let start = ContinuousClock().now
    static let rules = GuessLimit.Rules(
        user: FailureRules(burst: 3, refill: .seconds(10), buckets: 8),
        source: FailureRules(burst: 6, refill: .seconds(2), buckets: 8),
        recall: FailureRules(burst: 5, refill: .seconds(1), buckets: 8))

    /// Guesses that fail, each of so many at a user from an address.
    struct Failures: Sendable {
        let user: UInt64
        let address: String
        let count: Int
    }

    static func guess(_ user: UInt64, _ address: String) -> GuessLimit.Guess {
        let ip = IPAddress(address)
        return GuessLimit.Guess(
            ip.map { .ip($0, text: address, port: 1) } ?? .unix(nil), user: user)
    }

    @Test(
        "is counted by user and address, and by address in a larger bucket",
        arguments: [
            ([Failures(user: 1, address: "127.0.0.1", count: 3)], 1, "127.0.0.1", 10),
            ([Failures(user: 1, address: "127.0.0.1", count: 3)], 2, "127.0.0.1", nil),
            ([Failures(user: 1, address: "127.0.0.1", count: 3)], 1, "127.0.0.2", nil),
            // What is not verified any more costs its address nothing either.
            ([Failures(user: 1, address: "127.0.0.1", count: 1_000)], 2, "127.0.0.1", nil),
            (
                [
                    Failures(user: 1, address: "127.0.0.1", count: 3),
                    Failures(user: 2, address: "127.0.0.1", count: 3),
                ], 3, "127.0.0.1", 2
            ),
            (
                [
                    Failures(user: 1, address: "127.0.0.1", count: 3),
                    Failures(user: 2, address: "127.0.0.1", count: 3),
                ], 1, "127.0.0.1", 10
            ),
            (
                [
                    Failures(user: 1, address: "127.0.0.1", count: 3),
                    Failures(user: 2, address: "127.0.0.1", count: 3),
                ], 3, "127.0.0.2", nil
            ),
        ] as [([Failures], UInt64, String, Int?)])
    func buckets(_ failures: [Failures], _ user: UInt64, _ address: String, _ wait: Int?) {
        var limit = GuessLimit(Self.rules)
        for failure in failures {
            let guess = Self.guess(failure.user, failure.address)
            for _ in 0..<failure.count where limit.take(guess, at: Self.start) == .granted {
                _ = limit.failed(guess)
            }
        }
        let attempt = limit.look(Self.guess(user, address), at: Self.start)
        guard let wait else {
            #expect(attempt == .granted)
            return
        }
        guard case .throttled(.seconds(wait), _) = attempt else {
            Issue.record("\(attempt)")
            return
        }
    }

    @Test("gives back both tokens of what was right")
    func right() {
        var limit = GuessLimit(Self.rules)
        let guess = Self.guess(1, "127.0.0.1")
        for _ in 0..<100 {
            let attempt = limit.take(guess, at: Self.start)
            #expect(attempt == .granted)
            limit.giveBack(guess)
        }
        let other = limit.look(Self.guess(2, "127.0.0.1"), at: Self.start)
        #expect(other == .granted)
    }

    @Test(
        "lets what was verified be recognised when guesses are used up, but not be found by trying")
    func recalls() {
        var limit = GuessLimit(Self.rules)
        let guess = Self.guess(1, "127.0.0.1")
        for _ in 0..<3 { _ = limit.take(guess, at: Self.start) }
        for _ in 0..<5 {
            let recall = limit.mayRecall(guess, at: Self.start)
            #expect(recall == .granted)
            limit.missed(guess, at: Self.start)
        }
        let refused = limit.mayRecall(guess, at: Self.start)
        #expect(refused == .throttled(retryAfter: .seconds(1), isNews: false))
        let other = limit.mayRecall(Self.guess(2, "127.0.0.1"), at: Self.start)
        #expect(other == .granted)
        let later = limit.mayRecall(guess, at: Self.start + .seconds(1))
        #expect(later == .granted)
    }

    @Test("keeps tables of bounded size, whatever names are tried from wherever")
    func bounded() {
        var limit = GuessLimit(Self.rules)
        for user in 0..<2_000 {
            let guess = Self.guess(UInt64(user), "192.0.2.\(user % 250 + 1)")
            _ = limit.take(guess, at: Self.start)
            limit.missed(guess, at: Self.start)
            #expect(limit.count <= 24)
        }
    }

    @Test("is told a few times, whatever names are tried")
    func news() {
        var limit = GuessLimit(
            GuessLimit.Rules(source: FailureRules(burst: 5_000, refill: .seconds(10))))
        var told = 0
        for user in 0..<1_000 {
            let guess = Self.guess(UInt64(user), "127.0.0.1")
            _ = limit.take(guess, at: Self.start)
            if limit.failed(guess) { told += 1 }
        }
        #expect(told == 20)
    }
}
