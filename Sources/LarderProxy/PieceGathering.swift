import CLinux
import Glibc
import LarderHTTP
import NIOCore

/// Pieces of one answer that go to the socket together, past the channel.
///
/// To write a piece by way of the channel costs some 5,000 instructions, whatever its size, and 1 MiB
/// from disk comes in seventeen. One for each event loop, confined to it: an answer has it for as long as
/// its content is asked for piece by piece.
final class PieceGathering {
    /// So many go in one call at most.
    static let most = 16

    private(set) var isInUse = false
    private(set) var bytes = 0
    private var pieces: [ByteBuffer] = []

    var isFull: Bool { self.pieces.count >= Self.most }

    func begin() {
        self.isInUse = true
    }

    func end() {
        self.isInUse = false
    }

    func append(_ piece: ByteBuffer) {
        self.pieces.append(piece)
        self.bytes &+= piece.readableBytes
    }

    /// Gives a socket what it takes of what was gathered, in one call, without waiting.
    ///
    /// An error ends it like a full socket: who writes the rest meets it again.
    ///
    /// - Parameter rest: gets what was not taken, piece by piece.
    /// - Returns: how many bytes were.
    func send(to socket: CInt?, _ rest: (ByteBuffer) -> Void) -> Int {
        var pieces = exchange(&self.pieces, with: [])
        self.bytes = 0
        let sent = socket.map { Self.send(pieces, to: $0) } ?? 0
        var left = sent
        for piece in pieces {
            if left < piece.readableBytes { rest(piece.dropping(left)) }
            left = max(0, left - piece.readableBytes)
        }
        // To be used again, where nothing was gathered meanwhile.
        pieces.removeAll(keepingCapacity: true)
        if self.pieces.isEmpty { self.pieces = pieces }
        return sent
    }

    private static func send(_ pieces: [ByteBuffer], to socket: CInt) -> Int {
        var places = unsafe InlineArray<16, iovec>(repeating: iovec())
        let count = min(pieces.count, Self.most)
        for index in 0..<count {
            // Invariant: the piece keeps its bytes where they are until the call is over.
            unsafe places[index] = unsafe pieces[index].withUnsafeReadableBytes {
                unsafe iovec(
                    iov_base: UnsafeMutableRawPointer(mutating: $0.baseAddress), iov_len: $0.count)
            }
        }
        var span = unsafe places.mutableSpan
        let sent = unsafe span.withUnsafeMutableBufferPointer {
            unsafe larder_send_pieces(socket, $0.baseAddress, UInt(count))
        }
        return withExtendedLifetime(pieces) { max(0, sent) }
    }
}

extension ClientConnection {
    /// Has what is written from now on wait for more of it, where it can go to the socket at once.
    func beginGathering() {
        guard !self.loop.gathering.isInUse, self.openSocket != nil, self.hasNothingUnsent else {
            return
        }
        self.isGathering = true
        self.loop.gathering.begin()
    }

    /// Sends what has been gathered, where that is enough; the last few bytes go along with it.
    ///
    /// - Parameter framing: what is to come.
    func sendEnough(before framing: ResponseFraming) {
        guard self.isGathering else { return }
        let gathering = self.loop.gathering
        if gathering.isFull
            || gathering.bytes >= self.configuration.sendBufferHigh.clamped
                && !framing.isNearlyComplete(within: Self.joinedBody)
        {
            self.sendGathered()
        }
    }

    /// Sends what has been gathered: what is written from now on goes by the channel.
    func endGathering() {
        guard self.isGathering else { return }
        self.sendGathered()
        self.isGathering = false
        self.loop.gathering.end()
    }

    private func sendGathered() {
        let gathering = self.loop.gathering
        let sent = gathering.send(to: self.openSocket) { rest in
            // And so what comes next comes behind it.
            self.isGathering = false
            self.write(rest)
        }
        self.loop.counters.sent(sent)
        if !self.isGathering { gathering.end() }
    }
}
