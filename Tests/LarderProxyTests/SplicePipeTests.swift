import Glibc
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

    @Test("moves what there is, in order", arguments: [1, 100, 4_097, 60_000])
    func moving(count: Int) throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        let sent = source.fill(count)
        let movement = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
        #expect(movement.stop == .inputIsEmpty)
        #expect(movement.count == count)
        #expect(movement.rest.readableBytes == 0)
        #expect(target.taken() == sent)
    }

    @Test("stops at the limit, and goes on from there")
    func limit() throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        let sent = source.fill(40_000)
        let first = pipe.move(from: source.near, to: target.near, limit: 1)
        #expect(first.stop == .limit)
        #expect(first.count >= 1)
        let second = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
        #expect(second.stop == .inputIsEmpty)
        #expect(first.count + second.count == 40_000)
        #expect(target.taken() == sent)
    }

    @Test("gives back what the target does not take")
    func fullTarget() throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        var sent: [UInt8] = []
        var movement = SplicePipe.Movement()
        for _ in 0..<1_000 where movement.stop != .outputIsFull {
            sent += source.fill(100_000)
            movement = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
        }
        #expect(movement.stop == .outputIsFull)
        var got = target.taken() + Array(buffer: movement.rest)
        // What was not taken off the source yet comes behind the rest.
        while movement.count > 0 {
            movement = pipe.move(from: source.near, to: target.near, limit: 1 << 20)
            got += target.taken() + Array(buffer: movement.rest)
        }
        #expect(got == sent)
    }

    @Test("tells the end, what fails, and what cannot be spliced")
    func stops() throws {
        let (source, target, pipe) = (try Sockets(), try Sockets(), try #require(SplicePipe()))
        let directory = unsafe open("/", O_RDONLY)
        #expect(pipe.move(from: directory, to: target.near, limit: 10).stop == .unsupported)
        _ = close(directory)
        #expect(pipe.move(from: -1, to: target.near, limit: 10).stop == .inputFailed)
        let sent = source.fill(100)
        #expect(shutdown(source.far, CInt(SHUT_WR)) == 0)
        let movement = pipe.move(from: source.near, to: target.near, limit: 1_000)
        #expect(movement.stop == .inputEnded)
        #expect(movement.count == 100)
        #expect(target.taken() == sent)
    }
}
