import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

/// A part of a body on its way to the disk: one segment's payload.
struct SegmentDraft: Sendable {
    var index: UInt32
    /// Where in its cell it begins.
    var start: Int
    var pieces: [ByteBuffer]
    var length: Int

    /// Where in the representation it ends.
    var end: UInt64 { Segment.offset(of: self.index) + UInt64(self.start) + UInt64(self.length) }
}

/// A stored response, or what is added to one, that is about to become visible.
struct ObjectDraft: Sendable {
    var trailers: Fields
    /// All bytes that came.
    var received: UInt64
    /// Whether they are all of the representation; else the extent says what they are.
    var isWhole: Bool
    /// The length of the representation, where it is known of a part.
    var completeLength: UInt64?
    /// The last segment, where it was not written before.
    var last: SegmentDraft?
}

/// What the writer is asked to do; each command can be applied again where its batch failed.
enum WriteCommand: Sendable {
    case segment(SinkState, SegmentDraft)
    case commit(SinkState, ObjectDraft)
    /// Forget what was written for a sink that ends so.
    case abandon(SinkState, SinkAbandonment)
    case update(ObjectKey, StoredHead, written: (@Sendable () -> Void)?)
    case remove(CacheKey, ids: [ObjectID]?, (@Sendable (Int) -> Void)?)
    /// Where it is a promise, it is kept across a restart, too, though the disk refuses it now.
    case removeExactly([ObjectKey], isPromise: Bool, (@Sendable (Int) -> Void)?)
    /// Removes all that is stored, by way of an empty file where one can be had.
    case removeAll(RemovalWalk)
    /// Groups were invalidated: the table knows which.
    case groups
    /// What was to be removed cannot be found any more: all that is stored in a file goes.
    ///
    /// Tells whether it does: not where another one has taken its place, which may be sound.
    case giveUp(CacheFile, @Sendable (Bool) -> Void)
    /// Takes out what a verification has found, where it is still so.
    case mend([DiskDamage], @Sendable ([DiskDamage]) -> Void)
    /// Calls back once all that was asked for before is committed or has failed.
    case barrier(@Sendable () -> Void)

    /// What a command takes beside bodies and heads, about, with all that lives as long as it does.
    private static let ownBytes = 2048

    /// What it counts against the bound of the mailbox.
    ///
    /// Responses without a body are many where a disk hangs, and nothing else bounds them.
    var bytes: Int {
        switch self {
        case .segment(_, let draft): Self.ownBytes + draft.length
        case .commit(let sink, let draft):
            Self.ownBytes + sink.headBytes + draft.trailers.bytes.count
                + (draft.last?.length ?? 0)
        case .update(_, let head, _): Self.ownBytes + head.bytes
        case .abandon, .remove, .removeExactly, .removeAll, .groups, .giveUp, .mend, .barrier:
            Self.ownBytes
        }
    }

    /// Whether it may be turned away as too much: whoever posts it knows what to do instead.
    var mayBeRefused: Bool {
        switch self {
        case .segment, .commit, .update: true
        case .abandon, .remove, .removeExactly, .removeAll, .groups, .giveUp, .mend, .barrier: false
        }
    }

    /// Whether it neither reads nor changes the records and queues of what is stored: it may be applied
    /// before new responses are entered there that were posted before it. (What is pending, garbage, the
    /// ghosts and the notes of searches lie elsewhere.)
    var mayOvertakeArrivals: Bool {
        switch self {
        case .segment(let sink, _), .commit(let sink, _):
            if case .new(_, let replacing) = sink.role { replacing.isEmpty } else { false }
        case .removeAll, .groups, .giveUp, .barrier: true
        case .abandon, .update, .remove, .removeExactly, .mend: false
        }
    }

    /// Whether it is a part of storing a response, which can be given up.
    var stores: Bool {
        switch self {
        case .segment, .commit: true
        case .abandon, .update, .remove, .removeExactly, .removeAll, .groups, .giveUp, .mend,
            .barrier:
            false
        }
    }

    /// Whether what is posted after it is to find what it has done, which it does once it is committed.
    var endsBatch: Bool {
        if case .removeAll = self { true } else { false }
    }

    /// What applying it writes, about: whole pages, those of the trees that it changes among them.
    var cost: Int {
        switch self {
        case .segment(_, let draft): Segment.pages(ofPayload: draft.length) * Segment.pageSize + 512
        case .commit(_, let draft):
            (Segment.pages(ofPayload: draft.last?.length ?? 0) + 1) * Segment.pageSize
        case .abandon, .update, .remove, .removeExactly, .removeAll, .groups, .giveUp, .mend,
            .barrier:
            512
        }
    }

    /// What it brings the next commit nearer by, where `limit` makes one due at once.
    ///
    /// A response that is whole can wait for others: until it is committed lookups get it from
    /// memory, or hurry the writer. Parts of a body that is still coming wait only as long as the
    /// window of their exchange has room for what follows. For all else somebody waits.
    func haste(of limit: Int) -> Int {
        switch self {
        case .commit: self.cost
        case .segment: min(limit, 16 * self.cost)
        case .update(_, let head, _) where head.isInvalidated: limit
        case .update, .abandon: self.cost
        case .remove, .removeExactly, .removeAll, .groups, .giveUp, .mend, .barrier: limit
        }
    }
}

extension StoredHead {
    /// The bytes of all in it that has no bound of its own.
    var bytes: Int {
        self.fields.bytes.count + self.varyingFields.bytes.count
            + (self.pathAndQuery?.utf8.count ?? 0) + (self.attachment?.bytes.count ?? 0)
    }
}
