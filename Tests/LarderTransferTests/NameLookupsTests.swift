import Synchronization
import Testing

@testable import LarderTransfer

@Suite("The look-ups of names")
struct NameLookupsTests {
    private static func at(_ seconds: UInt64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    private enum Step: Sendable {
        /// A transfer wants a name; whether it may look it up.
        case take(UInt64, String, Bool)
        case found(UInt64)
        case ended(UInt64)
        case leave(UInt64, String)
        /// Who goes on at a second: with a place, and because the name is known.
        case admit(UInt64, [UInt64], [UInt64] = [])
        /// When that will be at the latest.
        case next(UInt64?)
    }

    private struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let limit: Int
        let steps: [Step]

        init(_ description: String, limit: Int = 1, _ steps: [Step]) {
            self.testDescription = description
            self.limit = limit
            self.steps = steps
        }
    }

    @Test(
        "have so many places, which are given back or come free when a look-up must be over",
        arguments: [
            Case("no bound", limit: 0, [.take(1, "a", true), .take(2, "b", true), .next(nil)]),
            Case(
                "one after the other",
                [
                    .take(1, "a", true), .take(2, "b", false), .take(3, "c", false),
                    .admit(0, []), .ended(1), .admit(1, [2]), .admit(1, []), .ended(2),
                    .admit(2, [3]),
                ]),
            Case(
                "what was given up keeps its place for the time of a look-up",
                [
                    .take(1, "a", true), .next(nil), .take(2, "b", false), .next(10),
                    .admit(9, []), .admit(10, [2]), .next(nil),
                ]),
            Case(
                "who was let in has its place when libcurl asks, before those that come",
                [
                    .take(1, "a", true), .take(2, "b", false), .ended(1), .take(3, "c", false),
                    .admit(0, [2]), .take(2, "b", true), .take(4, "d", false),
                ]),
            Case(
                "who waits for a name that was found needs no place",
                [
                    .take(1, "a", true), .take(2, "b", false), .take(3, "a", false),
                    .take(4, "a", false), .found(1), .admit(0, [2], [3, 4]), .next(nil),
                ]),
            Case(
                "one place for a name; the others wait behind those of other names",
                [
                    .take(1, "x", true), .take(2, "a", false), .take(3, "a", false),
                    .take(4, "b", false), .ended(1), .admit(0, [2]), .ended(2),
                    .admit(0, [4]), .ended(4), .admit(0, [3]),
                ]),
            Case(
                "who leaves is passed over",
                [
                    .take(1, "x", true), .take(2, "a", false), .take(3, "b", false),
                    .leave(2, "a"), .ended(1), .admit(0, [3]), .take(4, "c", false),
                    .leave(4, "c"), .leave(4, "c"), .next(nil), .admit(10, []),
                    .take(5, "d", true),
                ]),
            Case(
                "a name that nobody waits for any more is found in vain",
                [
                    .take(1, "a", true), .take(2, "a", false), .take(3, "b", false), .found(1),
                    .leave(2, "a"), .admit(0, [3]),
                ]),
            Case(
                "what is given back twice, or by who has none, changes nothing", limit: 2,
                [
                    .take(1, "a", true), .ended(1), .ended(1), .found(1), .take(2, "b", true),
                    .take(3, "c", true), .take(4, "d", false), .next(10),
                ]),
        ])
    private func steps(_ c: Case) {
        var lookups = NameLookups(limit: c.limit, lifetime: .seconds(10))
        for (index, step) in c.steps.enumerated() {
            let at = Comment("step \(index)")
            switch step {
            case .take(let id, let name, let expected):
                let isIn = lookups.take(name, for: id, Self.at(0))
                #expect(isIn == expected, at)
            case .found(let id): lookups.found(id)
            case .ended(let id): lookups.ended(id)
            case .leave(let id, let name): lookups.leave(name, id)
            case .admit(let second, let placed, let known):
                let admitted = lookups.admit(Self.at(second))
                #expect(admitted.placed == placed, at)
                #expect(admitted.known == known, at)
                #expect(!lookups.mayAdmit, at)
            case .next(let second): #expect(lookups.next == second.map(Self.at), at)
            }
        }
    }

    @Test("keep no trace of those that come and leave")
    func churn() {
        var lookups = NameLookups(limit: 2, lifetime: .seconds(1))
        for id in 0..<10_000 as Range<UInt64> {
            let now = Self.at(id / 100)
            let isIn = lookups.take("\(id)", for: id, now)
            if !isIn { lookups.leave("\(id)", id) }
            if id % 3 == 0 { lookups.ended(id) }
            #expect(lookups.count <= 2)
        }
        #expect(!lookups.isWaitedFor)
        let isIn = lookups.take("last", for: 10_000, Self.at(1_000))
        #expect(isIn)
        #expect(lookups.count == 1)
    }

    @Test(
        "are for names, and neither for addresses nor for what libcurl knows itself",
        arguments: [
            ("127.0.0.1", false), ("[::1]", false), ("localhost", false), ("LOCALHOST", false),
            ("a.localhost", false), ("a.example", true), ("localhost.example", true),
            ("127.1", true), ("mylocalhost", true),
        ])
    func names(_ host: String, _ isLookedUp: Bool) {
        #expect(NameLookups.isLookedUp(host) == isLookedUp)
    }

    @Test("and other bounds are told of once an hour, each")
    func told() {
        let told = Mutex<[TransferLimit]>([])
        let limits = TransferLimits { limit in told.withLock { $0.append(limit) } }
        limits.reached(.nameLookups, at: Self.at(0))
        limits.reached(.nameLookups, at: Self.at(3_599))
        limits.reached(.connections, at: Self.at(3_599))
        #expect(told.withLock { $0 } == [.nameLookups, .connections])
        limits.reached(.nameLookups, at: Self.at(3_600))
        limits.reached(.connections, at: Self.at(3_600))
        #expect(told.withLock { $0 } == [.nameLookups, .connections, .nameLookups])
    }

    @Test("are told of, as is that no further connection may be made")
    func connections() async throws {
        let told = Mutex<[TransferLimit]>([])
        let isAnswered = Gate()
        let slow = try ScriptedOrigin { connection in
            _ = connection.readHead()
            _ = isAnswered.block()
            connection.respond("200 OK", "", "slow")
        }
        let other = try ScriptedOrigin.echoingTargets()
        var configuration = TransferConfiguration()
        configuration.maximumConnections = 1
        let upstream = try CurlUpstream(configuration) { limit in
            told.withLock { $0.append(limit) }
        }
        let (first, second) = (Recorder(), Recorder())
        let fetches = [
            upstream.fetch(slow.request(), body: nil, receiver: first),
            upstream.fetch(other.request(), body: nil, receiver: second),
        ]
        isAnswered.open()
        #expect(await first.end().text == "slow")
        #expect(await second.end().text == "0 /")
        #expect(told.withLock { $0 } == [.connections])
        let ended = Gate()
        upstream.shutdown { ended.open() }
        await ended.passed()
        _ = fetches
    }
}
