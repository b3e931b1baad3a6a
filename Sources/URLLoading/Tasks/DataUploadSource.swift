import Foundation
import LarderHTTP
import NIOCore
import Synchronization

/// Content that is in memory: handed out in pieces, so that no second copy of the whole exists.
final class DataUploadSource: BodySource {
    /// How much is handed out at a time.
    static let pieceSize = 65_536

    private let rest: Mutex<Data>

    init(_ data: Data) {
        self.rest = Mutex(data)
    }

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        self.rest.withLock { rest in
            guard !rest.isEmpty else { return .end(trailers: Fields()) }
            let piece = ByteBuffer(bytes: rest.prefix(Self.pieceSize))
            rest = rest.dropFirst(Self.pieceSize)
            return .piece(piece)
        }
    }

    func cancel() {
        self.rest.withLock { $0 = Data() }
    }
}
