import CLinux
import Glibc
import NIOCore

/// A pipe through which the kernel moves bytes from one socket to another (splice(2)), or from this
/// process's memory to a socket (vmsplice(2)).
///
/// They are not copied and never come into this process. Read and written, a GiB through a tunnel
/// cost 690 ms of CPU time; a bare loop of splices takes 245.
///
/// What the target does not take stays in it, and goes first when there is room. Confined to a loop.
final class SplicePipe {
    /// Where a movement stopped.
    enum Stop: Equatable {
        /// The source has no more for now.
        case inputIsEmpty
        /// As much as was wanted has been moved.
        case limit
        /// The target takes no more for now, or never again: who writes to it learns which.
        case outputIsFull
        /// The source's last byte has been moved.
        case inputEnded
        /// The source's connection is broken.
        case inputFailed
        /// One of these sockets cannot be spliced; what lies in the pipe is to be written otherwise.
        case unsupported
    }

    struct Movement {
        /// Taken from the source.
        var taken = 0
        /// What the target has got, of these and of what lay in the pipe.
        var given = 0
        var stop = Stop.limit
    }

    /// At which one that is not root is bounded, too.
    private static let wantedSize: CInt = 1 << 20
    /// A user who has many pipes gets small ones (pipe(7)); through those, copying is cheaper.
    private static let smallestSize = 64 << 10

    private let readEnd: CInt
    private let writeEnd: CInt
    private let capacity: Int
    /// Bytes that the target has still to get.
    private(set) var held = 0

    /// Nil where the process has no descriptors left, or may have no larger pipe.
    init?() {
        var ends: [CInt] = [-1, -1]
        let capacity = unsafe larder_open_pipe(&ends, Self.wantedSize)
        guard capacity > 0 else { return nil }
        self.readEnd = ends[0]
        self.writeEnd = ends[1]
        self.capacity = capacity
        // From here on the ends are closed with it.
        guard capacity >= Self.smallestSize else { return nil }
    }

    deinit {
        _ = close(self.readEnd)
        _ = close(self.writeEnd)
    }

    /// Moves what lies here and then what has come to `source` on to `target`; never waits.
    ///
    /// - Parameter limit: how much is taken from the source, about.
    func move(from source: CInt, to target: CInt, limit: Int) -> Movement {
        var movement = Movement()
        while true {
            let before = self.held
            let hindrance = self.pass(to: target)
            movement.given += before - self.held
            // Only an empty one is filled: EAGAIN then tells of the source, never of the pipe.
            if let hindrance {
                movement.stop = hindrance
                return movement
            }
            guard movement.taken < limit else { return movement }
            let taken = Self.splice(source, self.writeEnd, self.capacity)
            guard taken > 0 else {
                movement.stop = taken == 0 ? .inputEnded : Self.stop(ofInput: errno)
                return movement
            }
            self.held = taken
            movement.taken += taken
        }
    }

    /// Passes what lies here on; nil when that is all, else why some is left.
    private func pass(to target: CInt) -> Stop? {
        while self.held > 0 {
            let given = Self.splice(self.readEnd, target, self.held)
            guard given > 0 else {
                return given < 0 && Self.isRefusal(errno) ? .unsupported : .outputIsFull
            }
            self.held -= given
        }
        return nil
    }

    /// Takes the first bytes out, to be written in another way; nil where they are lost.
    func take(atMost most: Int = .max) -> ByteBuffer? {
        let wanted = min(self.held, most)
        var buffer = ByteBuffer()
        buffer.reserveCapacity(wanted)
        while buffer.readableBytes < wanted {
            let left = wanted - buffer.readableBytes
            let got = unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: left) {
                unsafe max(0, read(self.readEnd, $0.baseAddress, min(left, $0.count)))
            }
            guard got > 0 else { return nil }
            self.held -= got
        }
        return buffer
    }

    /// Puts references to a body's pages into the pipe, which must be empty.
    ///
    /// - Returns: to how many bytes; negative, with `errno`, where the system lends none.
    func lend(_ body: ByteBuffer) -> Int {
        let lent = unsafe body.withUnsafeReadableBytes {
            unsafe larder_lend_pages(
                self.writeEnd, $0.baseAddress, UInt(min($0.count, self.capacity)))
        }
        self.held += max(0, lent)
        return lent
    }

    /// Passes on what lies here, in one call; how much was taken.
    ///
    /// - Parameter more: further bytes follow at once.
    func passOnce(to target: CInt, more: Bool) -> Int {
        let given = min(max(0, Self.splice(self.readEnd, target, self.held, more: more)), self.held)
        self.held -= given
        return given
    }

    private static func splice(
        _ from: CInt, _ to: CInt, _ count: Int, more: Bool = false
    ) -> Int {
        while true {
            let result = larder_splice(from, to, UInt(count), more ? 1 : 0)
            if result >= 0 || errno != EINTR { return result }
        }
    }

    private static func stop(ofInput code: CInt) -> Stop {
        if code == EAGAIN { return .inputIsEmpty }
        return Self.isRefusal(code) ? .unsupported : .inputFailed
    }

    /// Whether an error says that a socket is not to be spliced, rather than what has become of it.
    private static func isRefusal(_ code: CInt) -> Bool {
        switch code {
        case EINVAL, EOPNOTSUPP, ENOSYS, EPERM: true
        default: false
        }
    }
}
