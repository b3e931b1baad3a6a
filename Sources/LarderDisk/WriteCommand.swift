import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

/// A part of a body on its way to the disk: one segment's payload.
struct SegmentDraft: Sendable {
    var index: UInt32
    var pieces: [ByteBuffer]
    var length: Int
}

/// A stored response that is about to become visible.
struct ObjectDraft: Sendable {
    var trailers: Fields
    var bodyLength: UInt64
    var segmentCount: UInt32
    /// The last segment, where it was not written before.
    var last: SegmentDraft?
}

/// What the writer is asked to do; each command can be applied again where its batch failed.
enum WriteCommand: Sendable {
    case segment(SinkState, SegmentDraft)
    case commit(SinkState, ObjectDraft)
    /// Forget what was written for a sink that ends so.
    case abandon(SinkState, SinkAbandonment)
    case update(ObjectKey, StoredHead)
    case remove(CacheKey, ids: [ObjectID]?, (@Sendable (Int) -> Void)?)
    case removeExactly([ObjectKey], (@Sendable (Int) -> Void)?)
    /// Groups were invalidated: the table knows which.
    case groups
    /// Calls back once all that was asked for before is committed or has failed.
    case barrier(@Sendable () -> Void)

    /// What it counts against the bound of the mailbox.
    var bytes: Int {
        switch self {
        case .segment(_, let draft): draft.length
        case .commit(_, let draft): draft.last?.length ?? 0
        case .abandon, .update, .remove, .removeExactly, .groups, .barrier: 0
        }
    }
}
