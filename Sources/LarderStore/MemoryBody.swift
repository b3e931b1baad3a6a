package import LarderHTTP
package import NIOCore
import Synchronization

/// A body that lies in memory whole.
package struct MemoryBody: StoredBody {
    let bytes: ByteBuffer
    private let trailers: Fields

    /// - Parameter trailers: given behind the last byte of the whole body.
    package init(_ bytes: ByteBuffer, trailers: Fields = Fields()) {
        self.bytes = bytes
        self.trailers = trailers
    }

    package var resident: ByteBuffer? { self.bytes }

    /// A range that reaches out of the body gives the source `.failed(.store)`.
    package func reader(range: Range<UInt64>) -> any BodySource {
        guard let start = Int(exactly: range.lowerBound),
            let length = Int(exactly: range.upperBound - range.lowerBound),
            start <= self.bytes.readableBytes, length <= self.bytes.readableBytes - start,
            let slice = self.bytes.getSlice(at: self.bytes.readerIndex + start, length: length)
        else { return MemorySource(failure: .store("range outside of the stored body")) }
        let isWhole = length == self.bytes.readableBytes
        return MemorySource(slice, trailers: isWhole ? self.trailers : Fields())
    }
}

/// Hands out bytes that lie in memory, in pieces that share their storage.
///
/// Never pending.
final class MemorySource: BodySource {
    /// Small enough that a slow client's connection does not take a whole body at once.
    private static let pieceSize = 65_536

    private enum State {
        case reading(ByteBuffer)
        case failed(BodyFailure)
        case cancelled
    }

    private let state: Mutex<State>
    private let trailers: Fields

    init(_ bytes: ByteBuffer, trailers: Fields) {
        self.trailers = trailers
        self.state = Mutex(.reading(bytes))
    }

    init(failure: BodyFailure) {
        self.trailers = Fields()
        self.state = Mutex(.failed(failure))
    }

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        self.state.withLock { state in
            switch state {
            case .reading(var rest):
                guard let piece = rest.readSlice(length: min(rest.readableBytes, Self.pieceSize)),
                    piece.readableBytes > 0
                else { return .end(trailers: self.trailers) }
                state = .reading(rest)
                return .piece(piece)
            case .failed(let failure):
                return .failed(failure)
            case .cancelled:
                return .failed(.cancelled)
            }
        }
    }

    func cancel() {
        self.state.withLock { $0 = .cancelled }
    }
}
