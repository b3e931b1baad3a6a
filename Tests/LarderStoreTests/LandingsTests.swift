import LarderHTTP
import LarderPolicy
import NIOCore
import Testing

@testable import LarderStore

@Suite("What is on its way to the lower tier")
struct LandingsTests {
    private static func landing(_ number: UInt64, of name: String) -> Landing {
        let key = Sample.key(name)
        let object = StoredObject(
            id: ObjectID(rawValue: number), key: key, head: Sample.head(), bodyLength: 0,
            tier: .memory, lastUsed: Timestamp(seconds: 0), body: MemoryBody(ByteBuffer()))
        return Landing(
            ticket: object.id, key: HashedKey(key), isInMemory: true, object: object, replaced: [])
    }

    private static func three() -> Landings {
        var landings = Landings()
        for (number, name) in [(1, "a"), (2, "b"), (3, "a")] as [(UInt64, String)] {
            landings.insert(Self.landing(number, of: name))
        }
        return landings
    }

    private static func tickets(_ landings: Landings, _ name: String) -> [UInt64] {
        landings.landings(of: HashedKey(Sample.key(name))).map(\.ticket.rawValue)
    }

    @Test("is found by its key, in the order in which it was committed, until it has landed")
    func found() {
        var landings = Self.three()
        #expect(Self.tickets(landings, "a") == [1, 3])
        #expect(!landings.contains(HashedKey(Sample.key("c"))))
        let ended = (0..<2).map { _ in landings.end(ObjectID(rawValue: 1))?.ticket.rawValue }
        #expect(ended == [1, nil])
        #expect(Self.tickets(landings, "a") == [3])
        #expect(landings.contains(HashedKey(Sample.key("a"))))
        _ = landings.end(ObjectID(rawValue: 3))
        #expect(!landings.contains(HashedKey(Sample.key("a"))))
        #expect(landings.all.map(\.ticket.rawValue) == [2])
    }

    @Test("is doomed by key or by ticket, and whoever removes it waits for it")
    func doomed() {
        var landings = Self.three()
        var ended: [Int] = []
        let removal = PendingRemoval { _ in }
        landings.doom(HashedKey(Sample.key("a")), for: removal)
        landings.doom([ObjectID(rawValue: 7), ObjectID(rawValue: 2)], for: nil)
        for number in 1...3 as ClosedRange<UInt64> {
            let landing = landings.end(ObjectID(rawValue: number))
            #expect(landing?.isDoomed == true)
            ended.append(landing?.waiters.count ?? -1)
        }
        #expect(ended == [1, 0, 1])
    }

    @Test("takes a new head only while it is on its way")
    func freshened() {
        var landings = Self.three()
        let isLanding = [7, 3].map { number in
            landings.setNewHead(Sample.head(at: 9), ticket: ObjectID(rawValue: number))
        }
        #expect(isLanding == [false, true])
        let landed = landings.end(ObjectID(rawValue: 3))
        #expect(landed?.newHead == Sample.head(at: 9))
    }
}
