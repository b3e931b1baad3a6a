import LarderHTTP
import NIOCore
import Testing

@testable import LarderProxy

@Suite("A body between a connection and its reader")
struct BodyFeedTests {
    @Test("is full at its bound, and says when there is room again")
    func bound() {
        let signals = Event<[BodyFeed.Signal]>([])
        let feed = BodyFeed(bound: 10) { signal in signals.change { $0.append(signal) } }
        #expect(feed.push(ByteBuffer(string: "12345")))
        #expect(!feed.push(ByteBuffer(string: "67890")))
        #expect(feed.isFull)
        guard case .piece = feed.next() else {
            Issue.record("no piece")
            return
        }
        #expect(signals.value == [.wanted, .roomAgain])
        #expect(!feed.isFull)
    }

    @Test("gives what it has before it fails, and wakes once for each wait")
    func failure() {
        let wakes = Event(0)
        let feed = BodyFeed(bound: 10) { _ in }
        feed.attach { wakes.change { $0 += 1 } }
        guard case .pending = feed.next() else {
            Issue.record("not pending")
            return
        }
        feed.push(ByteBuffer(string: "a"))
        feed.push(ByteBuffer(string: "b"))
        feed.fail(.client("gone"))
        #expect(wakes.value == 1)
        guard case .piece(ByteBuffer(string: "ab")) = feed.next(),
            case .failed(.client("gone")) = feed.next()
        else {
            Issue.record("not in order")
            return
        }
        feed.end(trailers: Fields())
        guard case .failed = feed.next() else {
            Issue.record("a failure is final")
            return
        }
    }

    @Test("keeps nothing but the bytes alive, however few come at a time")
    func gathering() {
        let total = 100_000
        let feed = BodyFeed(bound: total) { _ in }
        for number in 0..<total {
            // As from a socket: the byte lies in what was made ready for many.
            var read = ByteBuffer()
            read.reserveCapacity(2_048)
            read.writeInteger(UInt8(truncatingIfNeeded: number))
            feed.push(read)
        }
        let large = ByteBuffer(repeating: 120, count: 4_096)
        feed.push(large)
        feed.end(trailers: Fields())
        var (bytes, storage, pieces): ([UInt8], Int, Int) = ([], 0, 0)
        while case .piece(let piece) = feed.next() {
            bytes += Array(buffer: piece)
            storage += piece.storageCapacity
            pieces += 1
        }
        #expect(bytes.count == total + 4_096)
        #expect(bytes.prefix(total).enumerated().allSatisfy { $1 == UInt8(truncatingIfNeeded: $0) })
        #expect(storage <= 2 * (total + 4_096))
        #expect(pieces == 5)
    }

    @Test("forgets all when its reader goes")
    func cancel() {
        let signals = Event<[BodyFeed.Signal]>([])
        let feed = BodyFeed(bound: 1) { signal in signals.change { $0.append(signal) } }
        feed.push(ByteBuffer(string: "abc"))
        feed.cancel()
        feed.cancel()
        #expect(signals.value == [.abandoned])
        #expect(feed.push(ByteBuffer(string: "abc")))
        guard case .failed(.cancelled) = feed.next() else {
            Issue.record("still there")
            return
        }
    }
}
