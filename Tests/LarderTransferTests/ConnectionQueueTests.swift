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
    func order() throws {
        var queue = try #require(ConnectionQueue(limit: 1))
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
    func givingUp() throws {
        var queue = try #require(ConnectionQueue(limit: 1))
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
    func holding() throws {
        var queue = try #require(ConnectionQueue(limit: 1))
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
    func heldAlone() throws {
        var queue = try #require(ConnectionQueue(limit: 1))
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

    @Test("does not remember without bound which origins' requests share connections")
    func memory() throws {
        var queue = try #require(ConnectionQueue(limit: 1))
        for number in 0..<1000 as Range<UInt64> {
            let destination = ConnectionQueue.Destination(
                TargetURI(
                    scheme: .https, host: "\(number).example", port: 443, pathAndQuery: "/"),
                .direct)
            _ = queue.enter(number, for: destination, priority: 0)
            _ = queue.shares(destination)
            _ = queue.leave(number, for: destination)
        }
        #expect(queue.destinationCount == ConnectionQueue.mostKept)
    }

    @Test("has no bound where an origin's requests share connections, or none is set")
    func unbounded() throws {
        var queue = try #require(ConnectionQueue(limit: 1))
        _ = queue.enter(1, for: self.one, priority: 0)
        _ = queue.enter(2, for: self.one, priority: 0)
        _ = queue.enter(3, for: self.one, priority: 1)
        let next = queue.shares(self.one)
        #expect(next == [3, 2])
        let isIn = queue.enter(4, for: self.one, priority: 0)
        #expect(isIn)
        #expect(ConnectionQueue(limit: 0) == nil)
    }
}
