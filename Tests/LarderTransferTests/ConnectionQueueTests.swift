import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("Who may have a connection")
struct ConnectionQueueTests {
    private let one = ConnectionQueue.Destination(
        TargetURI(scheme: .https, host: "one.example", port: 443, pathAndQuery: "/"), .direct)
    private let other = ConnectionQueue.Destination(
        TargetURI(scheme: .https, host: "other.example", port: 443, pathAndQuery: "/"), .direct)

    @Test("is decided for each origin by itself, by priority, then by order")
    func order() {
        var queue = ConnectionQueue(limit: 1)
        var isIn = queue.enter(1, for: self.one, priority: 0)
        #expect(isIn)
        isIn = queue.enter(2, for: self.other, priority: 0)
        #expect(isIn)
        for (id, priority) in [(3, 0.5), (4, 1), (5, 0.5), (6, .nan), (7, 0)] as [(UInt64, Float)] {
            let waits = !queue.enter(id, for: self.one, priority: priority)
            #expect(waits)
        }
        var order: [UInt64] = [1]
        while let last = order.last {
            let next = queue.leave(last, for: self.one)
            #expect(next.count <= 1)
            if next.isEmpty { break }
            order += next
        }
        #expect(order == [1, 4, 3, 5, 6, 7])
    }

    @Test("those that give up while they wait leave no trace, nor do strangers")
    func givingUp() {
        var queue = ConnectionQueue(limit: 1)
        _ = queue.enter(1, for: self.one, priority: 0)
        _ = queue.enter(2, for: self.one, priority: 0)
        _ = queue.enter(3, for: self.one, priority: 0)
        let none = queue.leave(2, for: self.one) + queue.leave(99, for: self.one)
        #expect(none.isEmpty)
        let next = queue.leave(1, for: self.one)
        #expect(next == [3])
        let stranger = queue.leave(1, for: self.other)
        #expect(stranger.isEmpty)
    }

    @Test(
        "those that are held are passed over, and come back to their place when they are released")
    func holding() {
        var queue = ConnectionQueue(limit: 1)
        for id in 1...5 as ClosedRange<UInt64> { _ = queue.enter(id, for: self.one, priority: 0) }
        var waited = queue.hold(1, for: self.one)
        #expect(!waited, "it runs")
        waited = queue.hold(2, for: self.one)
        #expect(waited)
        waited = queue.hold(3, for: self.one)
        #expect(waited)
        var next = queue.leave(1, for: self.one)
        #expect(next == [4])
        var mayGo = queue.release(2, for: self.one)
        #expect(!mayGo)
        next = queue.leave(4, for: self.one)
        #expect(next == [2])
        next = queue.leave(2, for: self.one) + queue.leave(5, for: self.one)
        #expect(next == [5])
        mayGo = queue.release(3, for: self.one)
        #expect(mayGo, "nobody else wants to go")
        mayGo = queue.release(3, for: self.one)
        #expect(!mayGo)
    }

    @Test("those that give up while they are held leave no trace; their origin is known until then")
    func heldAlone() {
        var queue = ConnectionQueue(limit: 1)
        _ = queue.enter(1, for: self.other, priority: 0)
        _ = queue.enter(2, for: self.one, priority: 0)
        _ = queue.enter(3, for: self.one, priority: 0)
        _ = queue.hold(3, for: self.one)
        var next = queue.leave(2, for: self.one)
        #expect(next.isEmpty && queue.destinationCount == 2)
        next = queue.leave(3, for: self.one)
        #expect(next.isEmpty && queue.destinationCount == 1)
        let mayGo = queue.release(3, for: self.one)
        #expect(!mayGo)
    }

    @Test("one that nobody waits for ends for another that has to wait, one for each of them")
    func endingForOthers() {
        var queue = ConnectionQueue(limit: 2)
        _ = queue.enter(1, for: self.one, priority: 0)
        queue.offerEnd(of: 1, for: self.one)
        _ = queue.enter(2, for: self.one, priority: 0)
        queue.offerEnd(of: 2, for: self.one)
        queue.offerEnd(of: 2, for: self.one)
        var offer = queue.takeOffer(for: self.one)
        #expect(offer == nil, "nobody waits")
        _ = queue.enter(3, for: self.one, priority: 0)
        offer = queue.takeOffer(for: self.other)
        #expect(offer == nil, "it waits for somebody else's connection")
        offer = queue.takeOffer(for: self.one)
        #expect(offer == 1)
        var next = queue.leave(1, for: self.one)
        #expect(next == [3])
        offer = queue.takeOffer(for: self.one)
        #expect(offer == nil)
        // What has ended offers nothing any more.
        next = queue.leave(2, for: self.one)
        _ = queue.enter(4, for: self.one, priority: 0)
        _ = queue.enter(5, for: self.one, priority: 0)
        offer = queue.takeOffer(for: self.one)
        #expect(next.isEmpty && offer == nil)
        queue.offerEnd(of: 5, for: self.one)
        offer = queue.takeOffer(for: self.one)
        #expect(offer == nil, "it is in nobody's way but its own")
        _ = queue.enter(6, for: self.one, priority: 0)
        for id in [3, 4] as [UInt64] { queue.offerEnd(of: id, for: self.one) }
        offer = queue.takeOffer(for: self.one)
        #expect(offer == 5, "it is in the way of another now")
        offer = queue.takeOffer(for: self.one)
        #expect(offer == 3)
        offer = queue.takeOffer(for: self.one)
        #expect(offer == nil, "two wait, and two end")
        queue.keep(3, for: self.one)
        offer = queue.takeOffer(for: self.one)
        #expect(offer == 4, "that one does not")
        next = queue.leave(5, for: self.one) + queue.leave(4, for: self.one)
        offer = queue.takeOffer(for: self.one)
        #expect(next == [6] && offer == nil)
    }

    @Test("those that share a connection stand in nobody's way")
    func sharedOffers() {
        var queue = ConnectionQueue(limit: 1)
        _ = queue.enter(1, for: self.one, priority: 0, mayShare: true)
        _ = queue.learn(.shared, of: self.one)
        queue.offerEnd(of: 1, for: self.one)
        let isIn = queue.enter(2, for: self.one, priority: 0, mayShare: true)
        let offer = queue.takeOffer(for: self.one)
        #expect(isIn && offer == nil)
    }

    @Test("remembers no origin to which nothing is under way")
    func memory() {
        var queue = ConnectionQueue(limit: 1)
        for number in 0..<1000 as Range<UInt64> {
            let destination = ConnectionQueue.Destination(
                TargetURI(
                    scheme: .https, host: "\(number).example", port: 443, pathAndQuery: "/"),
                .direct)
            _ = queue.enter(number, for: destination, priority: 0, mayShare: true)
            _ = queue.learn(.shared, of: destination)
            _ = queue.leave(number, for: destination)
        }
        #expect(queue.destinationCount == 1)
    }

    @Test("has no bound where an origin's requests share connections, or none is set")
    func unbounded() {
        var queue = ConnectionQueue(limit: 1)
        _ = queue.enter(1, for: self.one, priority: 0, mayShare: true)
        _ = queue.enter(2, for: self.one, priority: 0, mayShare: true)
        _ = queue.enter(3, for: self.one, priority: 1, mayShare: true)
        var next = queue.learn(.shared, of: self.one)
        #expect(next == [3, 2])
        var isIn = queue.enter(4, for: self.one, priority: 0, mayShare: true)
        #expect(isIn)
        // Another connection of theirs may be of an older kind.
        next = queue.learn(.none, of: self.one)
        isIn = queue.enter(5, for: self.one, priority: 0, mayShare: true)
        #expect(next.isEmpty && isIn)
        queue = ConnectionQueue(limit: 0)
        for id in 1...100 as ClosedRange<UInt64> {
            let isIn = queue.enter(id, for: self.one, priority: 0)
            #expect(isIn)
        }
    }

    @Test("the first finds out whether requests share a connection, and the others wait for that")
    func scout() {
        for (sharing, next) in [
            (ConnectionQueue.Sharing.shared, [2, 3, 4, 5] as [UInt64]), (.none, [2, 3]),
        ] {
            var queue = ConnectionQueue(limit: 4)
            for id in 1...5 as ClosedRange<UInt64> {
                let isIn = queue.enter(id, for: self.one, priority: 0, mayShare: true)
                #expect(isIn == (id == 1))
            }
            // Who cannot share waits for nobody, and finds nothing out.
            var isIn = queue.enter(6, for: self.one, priority: 0)
            #expect(isIn)
            var admitted = queue.learn(sharing, of: self.one)
            #expect(admitted == next)
            admitted = queue.learn(sharing, of: self.one)
            #expect(admitted.isEmpty)
            // And has a bound, which those that share do not count for.
            for id in 7...9 as ClosedRange<UInt64> {
                isIn = queue.enter(id, for: self.one, priority: 0)
                #expect(isIn == (sharing == .shared))
            }
            isIn = queue.enter(20, for: self.one, priority: 0)
            #expect(!isIn)
            admitted = queue.leave(6, for: self.one)
            #expect(admitted == (sharing == .shared ? [20] : [4]))
            // Another origin's are not known by that.
            _ = queue.enter(10, for: self.other, priority: 0, mayShare: true)
            let waits = !queue.enter(11, for: self.other, priority: 0, mayShare: true)
            #expect(waits)
        }
    }

    @Test("one that leaves, or stands still, leaves it to the next; others go past them")
    func nextScout() {
        var queue = ConnectionQueue(limit: 3)
        for id in 1...5 as ClosedRange<UInt64> {
            _ = queue.enter(id, for: self.one, priority: 0, mayShare: true)
        }
        var next = queue.leave(1, for: self.one)
        #expect(next == [2])
        next = queue.stopWaiting(for: 3, to: self.one)
        #expect(next.isEmpty)
        next = queue.stopWaiting(for: 2, to: self.one)
        #expect(next == [3])
        var isIn = queue.enter(6, for: self.one, priority: 0)
        #expect(isIn)
        isIn = queue.enter(7, for: self.one, priority: 0)
        #expect(!isIn, "three are under way")
        next = queue.leave(2, for: self.one)
        #expect(next == [7])
        next = queue.learn(.shared, of: self.one)
        #expect(next == [4, 5])
    }

    @Test("one that cannot be connected leaves it to each of the others, until none is left")
    func deadScout() {
        var queue = ConnectionQueue(limit: 3)
        for id in 1...5 as ClosedRange<UInt64> {
            _ = queue.enter(id, for: self.one, priority: 0, mayShare: true)
        }
        var next = queue.leave(1, for: self.one, isDead: true)
        #expect(next == [2, 3, 4])
        for id in 2...4 as ClosedRange<UInt64> { next += queue.leave(id, for: self.one) }
        #expect(next == [2, 3, 4, 5])
        next = queue.leave(5, for: self.one)
        #expect(next.isEmpty)
        _ = queue.enter(6, for: self.one, priority: 0, mayShare: true)
        let waits = !queue.enter(7, for: self.one, priority: 0, mayShare: true)
        #expect(waits)
        // Also where what was known is: the connection may be gone.
        _ = queue.learn(.shared, of: self.one)
        for id in [6, 7] as [UInt64] { _ = queue.leave(id, for: self.one) }
        _ = queue.enter(8, for: self.one, priority: 0, mayShare: true)
        let waitsAgain = !queue.enter(9, for: self.one, priority: 0, mayShare: true)
        #expect(waitsAgain)
    }

    struct Shares: Sendable, CustomTestStringConvertible {
        let limit: Int
        /// How many get a connection of clients that want 200 each, one client after the other.
        let got: [Int]

        var testDescription: String { "\(self.limit)" }
    }

    @Test(
        "a client has at most three times as many as it leaves to others, where there are eight",
        arguments: [
            Shares(limit: 96, got: [72, 18, 5, 1, 0]), Shares(limit: 64, got: [48, 12, 3, 1, 0]),
            Shares(limit: 8, got: [6, 2, 0]), Shares(limit: 7, got: [7, 0]),
            Shares(limit: 1, got: [1, 0]), Shares(limit: 0, got: [200, 200]),
        ])
    func shares(_ c: Shares) {
        var queue = ConnectionQueue(limit: c.limit)
        var id: UInt64 = 0
        for (client, expected) in c.got.enumerated() {
            var got = 0
            for _ in 0..<200 {
                id += 1
                if queue.enter(id, for: self.one, priority: 0, client: client) { got += 1 }
            }
            #expect(got == expected, "client \(client)")
            let isIn = queue.enter(id + 1000, for: self.other, priority: 0, client: client)
            #expect(isIn || client > 0, "another origin's are others")
        }
    }

    @Test("what waits for its client's share is passed by others', and goes when that has room")
    func sharesOver() {
        var queue = ConnectionQueue(limit: 8)
        for id in 1...7 as ClosedRange<UInt64> {
            let isIn = queue.enter(id, for: self.one, priority: 1, client: 1)
            #expect(isIn == (id < 7))
        }
        var isIn = queue.enter(8, for: self.one, priority: 0, client: 2)
        #expect(isIn)
        isIn = queue.enter(9, for: self.one, priority: 0)
        #expect(isIn, "it is nobody's")
        isIn = queue.enter(10, for: self.one, priority: 0, client: 2)
        #expect(!isIn, "all are taken")
        var next = queue.leave(9, for: self.one)
        #expect(next == [10], "the first has its share")
        next = queue.leave(8, for: self.one)
        #expect(next.isEmpty)
        next = queue.leave(1, for: self.one)
        #expect(next == [7])
        for id in 2...7 as ClosedRange<UInt64> { next += queue.leave(id, for: self.one) }
        #expect(next == [7])
        // Nothing is left of it.
        for id in 11...16 as ClosedRange<UInt64> {
            let isIn = queue.enter(id, for: self.one, priority: 0, client: 1)
            #expect(isIn)
        }
    }

    @Test("nobody ends for one that waits for its client's share alone, but one of its own")
    func sharesAndOffers() {
        var queue = ConnectionQueue(limit: 8)
        for id in 1...6 as ClosedRange<UInt64> {
            _ = queue.enter(id, for: self.one, priority: 0, client: 1)
        }
        _ = queue.enter(7, for: self.one, priority: 0, client: 2)
        let isIn = queue.enter(8, for: self.one, priority: 0, client: 1)
        #expect(!isIn)
        queue.offerEnd(of: 7, for: self.one)
        var offer = queue.takeOffer(for: self.one)
        #expect(offer == nil, "a connection is free")
        queue.offerEnd(of: 6, for: self.one)
        offer = queue.takeOffer(for: self.one)
        #expect(offer == 6)
        let next = queue.leave(6, for: self.one)
        #expect(next == [8])
        _ = queue.enter(9, for: self.one, priority: 0, client: 3)
        offer = queue.takeOffer(for: self.one)
        #expect(offer == nil)
        let waits = !queue.enter(10, for: self.one, priority: 0, client: 3)
        offer = queue.takeOffer(for: self.one)
        #expect(waits && offer == 7, "all are taken")
    }

    @Test("those that share a connection count for nobody's share")
    func sharesOfShared() {
        var queue = ConnectionQueue(limit: 8)
        _ = queue.enter(1, for: self.one, priority: 0, mayShare: true, client: 1)
        _ = queue.learn(.shared, of: self.one)
        for id in 2...100 as ClosedRange<UInt64> {
            let isIn = queue.enter(id, for: self.one, priority: 0, mayShare: true, client: 1)
            #expect(isIn)
        }
        for id in 101...107 as ClosedRange<UInt64> {
            let isIn = queue.enter(id, for: self.one, priority: 0, client: 1)
            #expect(isIn == (id < 107))
        }
    }
}
