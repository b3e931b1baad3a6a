import Foundation
import NIOCore

/// A body that is kept in memory for whoever waits for all of it.
enum KeptBody {
    /// None has come.
    case none
    /// It came as a whole, and nobody had to be waited for.
    case whole(ByteBuffer)
    case pieces(MemoryConsumer)

    /// What has come; an empty body is an empty `Data`.
    func data() -> Data {
        switch self {
        case .none: Data()
        // From the bytes: of a collection `Data` first asks at run time whether it lies in one piece.
        case .whole(let body): unsafe body.withUnsafeReadableBytes { unsafe Data($0) }
        case .pieces(let consumer): consumer.takeData()
        }
    }
}
