import Glibc
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProxy

@Suite("The pipe through which tunnels are spliced")
struct SplicePipeTests {
    /// Both ends of a socket; closed with it.
    private final class Sockets {
        let near: CInt
        let far: CInt

        init() throws {
            var ends: [CInt] = [-1, -1]
            let result = unsafe socketpair(
                AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends)
            try #require(result == 0)
            self.near = ends[0]
            self.far = ends[1]
        }

        deinit {
            _ = close(self.near)
            _ = close(self.far)
        }

        /// Gives the far end bytes to send until it takes no more, at most so many.
        func fill(_ most: Int = .max) -> [UInt8] {
            var sent: [UInt8] = []
            while sent.count < most {
                let piece = (0..<min(4_096, most - sent.count)).map {
                    UInt8(truncatingIfNeeded: (sent.count + $0) / 7)
                }
                let count = unsafe piece.withUnsafeBytes {
                    unsafe write(self.far, $0.baseAddress, $0.count)
                }
                guard count > 0 else { break }
                sent += piece.prefix(count)
            }
            return sent
        }

        /// What the far end has received.
        func taken() -> [UInt8] {
            var all: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = unsafe piece.withUnsafeMutableBytes {
                    unsafe read(self.far, $0.baseAddress, $0.count)
                }
                guard count > 0 else { return all }
                all += piece.prefix(count)
            }
        }
    }

    /// Sends until the target takes no more; what was sent.
    private static func block(
        _ pipe: SplicePipe, from source: Sockets, to target: Sockets
    ) -> [UInt8] {
        var (sent, counted) = ([UInt8](), 0)
        var movement = SplicePipe.Movement()
        for _ in 0..<1_000 where movement.stop != .outputIsFull {
            sent += source.fill(100_000)
            movement = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
            counted += movement.taken
        }
        #expect(movement.stop == .outputIsFull)
        #expect(counted <= sent.count)
        return sent
    }

    @Test("moves what there is, in order", arguments: [1, 100, 4_097, 60_000])
    func moving(count: Int) throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        let sent = source.fill(count)
        let movement = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
        #expect(movement.stop == .inputIsEmpty)
        #expect((movement.taken, movement.given) == (count, count))
        #expect(pipe.held == 0)
        #expect(target.taken() == sent)
    }

    @Test("stops at the limit, and goes on from there")
    func limit() throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        let sent = source.fill(40_000)
        let first = pipe.move(from: source.near, to: target.near, limit: 1)
        #expect(first.stop == .limit)
        #expect(first.taken >= 1)
        let second = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
        #expect(second.stop == .inputIsEmpty)
        #expect(first.taken + second.taken == 40_000)
        #expect(target.taken() == sent)
    }

    @Test(
        "keeps what the target does not take, and gives it first", arguments: [0, 1, 1_000, .max])
    func fullTarget(read: Int) throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        let sent = Self.block(pipe, from: source, to: target)
        var movement = SplicePipe.Movement()
        #expect(pipe.held > 0)
        // A full target is given nothing more, and nothing more is taken for it.
        let held = pipe.held
        movement = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
        #expect((movement.taken, movement.given, pipe.held) == (0, 0, held))
        // What is read out of the pipe comes before what stays in it.
        var got = target.taken() + Array(buffer: try #require(pipe.take(atMost: read)))
        #expect(pipe.held == held - min(held, read))
        while movement.stop != .inputIsEmpty {
            movement = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
            got += target.taken()
        }
        #expect(got == sent)
    }

    @Test("of one loop are lent up to a bound, and only empty ones again")
    func pool() throws {
        let (source, target, pipes) = (try Sockets(), try Sockets(), SplicePipes(most: 2))
        let (one, other) = (try #require(pipes.borrow()), try #require(pipes.borrow()))
        #expect(pipes.borrow() == nil)
        pipes.giveBack(one)
        #expect(pipes.borrow() === one)
        _ = Self.block(other, from: source, to: target)
        pipes.giveBack(other)
        #expect(pipes.count == 1)
        let third = try #require(pipes.borrow())
        #expect(third !== other)
        #expect(third.held == 0)
        #expect(SplicePipes(most: 0).borrow() == nil)
    }

    @Test("are there for a body when tunnels have all of theirs")
    func poolForBodies() throws {
        for most in [0, 1, 3] {
            let pipes = SplicePipes(most: most)
            let tunnels = (0..<most).compactMap { _ in pipes.borrow() }
            #expect(tunnels.count == most)
            let body = try #require(pipes.borrow(for: .body))
            #expect(pipes.borrow(for: .body) == nil)
            #expect(pipes.borrow() == nil)
            pipes.giveBack(body)
            #expect(pipes.borrow() == nil)
            #expect(pipes.borrow(for: .body) === body)
        }
    }

    @Test("that wait unused are few")
    func idlePipes() {
        let pipes = SplicePipes(most: 20)
        for pipe in (0..<20).compactMap({ _ in pipes.borrow() }) { pipes.giveBack(pipe) }
        #expect(pipes.lent == 0)
        #expect(pipes.count == SplicePipes.mostIdle)
    }

    @Test("are not asked for again at once where the system has none")
    func refusedPipes() {
        var (asked, has) = (0, false)
        let pipes = SplicePipes(most: 4) {
            asked += 1
            return has ? SplicePipe() : nil
        }
        let start = NIODeadline.uptimeNanoseconds(1_000)
        let later = start + SplicePipes.refusalTime
        for use in [SplicePipes.Use.tunnel, .body, .tunnel] {
            #expect(pipes.borrow(for: use, at: start) == nil)
            #expect(pipes.borrow(for: use, at: later - .nanoseconds(1)) == nil)
        }
        #expect(asked == 1)
        #expect(pipes.borrow(at: later) == nil)
        #expect(asked == 2)
        has = true
        #expect(pipes.borrow(at: later) == nil)
        #expect(pipes.borrow(at: later + SplicePipes.refusalTime) != nil)
        #expect(pipes.borrow(at: later) != nil)
        #expect((asked, pipes.lent) == (4, 2))
    }

    @Test("come back from who lends bodies, empty or not")
    func lending() throws {
        let (client, pipes) = (try Sockets(), SplicePipes(most: 0))
        let lender = PageLender(pipes)
        for (count, isKept) in [(65_536, true), (4 << 20, false), (65_536, true)] {
            var head = ByteBuffer(string: "head")
            var body = try #require(
                LentMemory.copy(of: ByteBuffer(repeating: 1, count: count)))
            lender.send(&head, &body, to: client.near)
            #expect(head.readableBytes == 0)
            #expect((body.readableBytes == 0) == isKept)
            #expect(client.taken().count == 4 + count - body.readableBytes)
            #expect((pipes.lent, pipes.count) == (0, isKept ? 1 : 0))
        }
        let last = try #require(pipes.borrow(for: .body))
        var (head, body) = (ByteBuffer(string: "head"), ByteBuffer(repeating: 1, count: 65_536))
        lender.send(&head, &body, to: client.near)
        #expect((head.readableBytes, body.readableBytes) == (4, 65_536))
        pipes.giveBack(last)
    }

    @Test(
        "are shared among the loops",
        arguments: [(48, 1, 48), (48, 2, 24), (48, 64, 1), (1, 2, 1), (0, 2, 0), (5, 0, 5)])
    func shares(all: Int, loops: Int, share: Int) {
        #expect(SplicePipes.share(of: all, loops: loops) == share)
    }

    @Test("tells the end, what fails, and what cannot be spliced")
    func stops() throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        let directory = unsafe open("/", O_RDONLY)
        #expect(pipe.move(from: directory, to: target.near, limit: 10).stop == .unsupported)
        _ = close(directory)
        _ = source.fill(100)
        // The kernel splices to no file that is only appended to.
        let null = unsafe open("/dev/null", O_WRONLY | O_APPEND)
        let refused = pipe.move(from: source.near, to: null, limit: 10)
        #expect((refused.stop, refused.taken, refused.given) == (.unsupported, 100, 0))
        _ = close(null)
        #expect(pipe.take()?.readableBytes == 100)
        #expect(pipe.held == 0)
        #expect(pipe.move(from: -1, to: target.near, limit: 10).stop == .inputFailed)
        let sent = source.fill(100)
        #expect(shutdown(source.far, CInt(SHUT_WR)) == 0)
        let movement = pipe.move(from: source.near, to: target.near, limit: 1_000)
        #expect(movement.stop == .inputEnded)
        #expect(movement.taken == 100)
        #expect(target.taken() == sent)
    }
}
