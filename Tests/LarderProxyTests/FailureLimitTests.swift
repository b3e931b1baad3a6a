import Testing

@testable import LarderProxy

@Suite("How often a client may fail to authenticate itself")
struct FailureLimitTests {
    static let start = ContinuousClock().now
    static let rules = FailureRules(burst: 3, refill: .seconds(10), buckets: 4)

    static func client(_ text: String) -> ClientSource {
        ClientSource(IPAddress(text).map { .ip($0, text: text, port: 1) } ?? .unix(nil))
    }

    /// What an address does, at so many seconds.
    enum Step: Sendable {
        case fails(at: Int)
        case succeeds(at: Int)
        /// - Parameter seconds: after which it may try again; nil where it may now.
        case mayTry(at: Int, seconds: Int?)
    }

    @Test(
        "is as often as a bucket holds tokens, and then once in the time of one",
        arguments: [
            [.mayTry(at: 0, seconds: nil)],
            [.fails(at: 0), .fails(at: 0), .mayTry(at: 0, seconds: nil)],
            [.fails(at: 0), .fails(at: 0), .fails(at: 0), .mayTry(at: 0, seconds: 10)],
            [.fails(at: 0), .fails(at: 0), .fails(at: 0), .mayTry(at: 9, seconds: 1)],
            [
                .fails(at: 0), .fails(at: 0), .fails(at: 0), .mayTry(at: 10, seconds: nil),
                .fails(at: 10), .mayTry(at: 10, seconds: 10), .mayTry(at: 20, seconds: nil),
            ],
            // A bucket holds no more than it holds, however long nobody comes.
            [
                .fails(at: 1000), .fails(at: 1000), .fails(at: 1000),
                .mayTry(at: 1000, seconds: 10),
            ],
            [
                .fails(at: 0), .fails(at: 1000), .fails(at: 1000), .fails(at: 1000),
                .mayTry(at: 1000, seconds: 10),
            ],
            // What succeeds costs nothing.
            [
                .succeeds(at: 0), .succeeds(at: 0), .succeeds(at: 0), .succeeds(at: 0),
                .fails(at: 0), .fails(at: 0), .succeeds(at: 0), .succeeds(at: 0),
                .mayTry(at: 0, seconds: nil), .fails(at: 0), .mayTry(at: 0, seconds: 10),
            ],
        ] as [[Step]])
    func bucket(_ steps: [Step]) {
        var limit = FailureLimit<ClientSource>(Self.rules)
        let client = Self.client("192.0.2.1")
        for step in steps {
            switch step {
            case .fails(let second):
                let attempt = limit.take(client, at: Self.start + .seconds(second))
                #expect(attempt == .granted)
                _ = limit.failed(client)
            case .succeeds(let second):
                let attempt = limit.take(client, at: Self.start + .seconds(second))
                #expect(attempt == .granted)
                limit.giveBack(client)
            case .mayTry(let second, let wait):
                let attempt = limit.look(client, at: Self.start + .seconds(second))
                if let wait {
                    guard case .throttled(.seconds(wait), _) = attempt else {
                        Issue.record("\(attempt) at \(second)")
                        return
                    }
                } else {
                    #expect(attempt == .granted)
                }
            }
        }
    }

    @Test("is told of once a burst: the first failure, and the first that is not listened to")
    func news() {
        var limit = FailureLimit<ClientSource>(Self.rules)
        let client = Self.client("192.0.2.1")
        for begin in [0, 1000] {
            let now = Self.start + .seconds(begin)
            var first: [Int] = []
            for _ in 0..<3 {
                _ = limit.take(client, at: now)
                first.append(limit.failed(client))
            }
            #expect(first == [1, 2, 3])
            var throttled: [Bool] = []
            for _ in 0..<10_000 {
                if case .throttled(_, let isNews) = limit.take(client, at: now) {
                    throttled.append(isNews)
                }
            }
            #expect(throttled.count == 10_000)
            #expect(throttled.filter { $0 }.count == 1)
            #expect(throttled.first == true)
        }
    }

    @Test(
        "is counted by whoever can have many addresses as one",
        arguments: [
            ("192.0.2.1", "192.0.2.2", false), ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8::1", "2001:db8::ffff:1", true), ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::c000:201", "192.0.2.1", false), ("192.0.2.1", "", false),
        ])
    func shared(_ one: String, _ other: String, _ isShared: Bool) {
        var limit = FailureLimit<ClientSource>(Self.rules)
        for _ in 0..<3 { _ = limit.take(Self.client(one), at: Self.start) }
        let attempt = limit.look(Self.client(other), at: Self.start)
        #expect((attempt != .granted) == isShared)
    }

    @Test("is counted by user over a Unix socket, whatever process it is")
    func users() {
        var limit = FailureLimit<ClientSource>(Self.rules)
        for pid in 1...3 {
            _ = limit.take(
                ClientSource(.unix(PeerCredentials(uid: 1000, pid: Int32(pid)))), at: Self.start)
        }
        let same = limit.look(
            ClientSource(.unix(PeerCredentials(uid: 1000, pid: 9))), at: Self.start)
        let other = limit.look(
            ClientSource(.unix(PeerCredentials(uid: 1001, pid: 1))), at: Self.start)
        #expect(same != .granted)
        #expect(other == .granted)
    }

    @Test("is kept for so many addresses: those with the fewest failures are forgotten first")
    func bounded() {
        var limit = FailureLimit<ClientSource>(Self.rules)
        let worst = Self.client("192.0.2.1")
        for _ in 0..<3 { _ = limit.take(worst, at: Self.start) }
        for number in 2...200 {
            _ = limit.take(Self.client("192.0.2.\(number)"), at: Self.start)
            #expect(limit.count <= 4)
        }
        let attempt = limit.look(worst, at: Self.start)
        #expect(attempt != .granted)
        // Full buckets make room by themselves.
        _ = limit.take(Self.client("198.51.100.1"), at: Self.start + .seconds(100))
        #expect(limit.count == 1)
    }

    @Test(
        "has bounds of its own, whatever is asked for",
        arguments: [
            (0, Duration.zero, 0), (-1, .seconds(-1), -1), (.max, .seconds(Int64.max), .max),
        ])
    func rules(_ burst: Int, _ refill: Duration, _ buckets: Int) {
        let rules = FailureRules(burst: burst, refill: refill, buckets: buckets)
        var limit = FailureLimit<ClientSource>(rules)
        let client = Self.client("192.0.2.1")
        let first = limit.take(client, at: Self.start)
        #expect(first == .granted)
        limit.giveBack(client)
        _ = limit.failed(client)
        #expect(limit.count == 1)
    }
}
