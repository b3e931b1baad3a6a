package import LarderHTTP
package import LarderPolicy
package import NIOCore

/// Names one stored response for as long as it exists; never used again after that.
package struct ObjectID: Hashable, Sendable, Comparable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package static func < (a: ObjectID, b: ObjectID) -> Bool { a.rawValue < b.rawValue }
}

/// A place in the order of a store's removals: what was removed before it, and what after.
///
/// Take it before a request is sent, hand it in when the response is stored: a response that was
/// asked for before its key was purged must not become visible after the purge.
package struct RemovalMark: Hashable, Sendable, Comparable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package static func < (a: RemovalMark, b: RemovalMark) -> Bool { a.rawValue < b.rawValue }
}

/// Where a stored response was found.
package enum StoreTier: String, Sendable, Codable, CaseIterable { case memory, disk }

/// A stored response that lies in memory, as a person is shown it.
package struct ResidentObject: Sendable {
    package var object: StoredObject
    /// Its name in the lower tier; nil where that does not have it, or not yet.
    package var lowerID: ObjectID?
    /// Whether the lower tier is about to have it, under a name that is not known yet.
    package var isLanding: Bool

    package init(object: StoredObject, lowerID: ObjectID?, isLanding: Bool = false) {
        self.object = object
        self.lowerID = lowerID
        self.isLanding = isLanding
    }
}

/// Where a stored response is found, and which of those there it is.
package struct StoredName: Hashable, Sendable {
    package var key: CacheKey
    package var id: ObjectID
    package var lastUsed: Timestamp
    /// The room that it takes, at most.
    package var bytes: UInt64

    package init(key: CacheKey, id: ObjectID, lastUsed: Timestamp, bytes: UInt64) {
        self.key = key
        self.id = id
        self.lastUsed = lastUsed
        self.bytes = bytes
    }
}

/// A place in a walk through what lies in memory.
///
/// It holds nothing: what comes and goes meanwhile may or may not be met.
package struct ResidentPlace: Sendable, Equatable {
    package var part = 0
    package var slot = 0

    package static let start = ResidentPlace()
}

/// What one step of such a walk met: a bounded number of responses, perhaps none.
package struct ResidentPage: Sendable {
    package var objects: [ResidentObject]
    /// Where to go on; nil at the end.
    package var next: ResidentPlace?

    package init(objects: [ResidentObject] = [], next: ResidentPlace? = nil) {
        self.objects = objects
        self.next = next
    }
}

/// The body of a stored response.
package protocol StoredBody: Sendable {
    /// The whole body where it lies in memory, ready to be written; nil where it must be read.
    var resident: ByteBuffer? { get }
    /// A source of the bytes in `range`, which must lie inside the body, and inside one of the ranges
    /// of the extent where the response is partial.
    ///
    /// It reads in bounded pieces, verifies each checksum before it hands out a byte, never blocks
    /// its caller, and holds no transaction between two pieces.
    func reader(range: Range<UInt64>) -> any BodySource
    /// Nobody is going to read it any more, but for sources that there are: a store that removes the
    /// response need not keep the bytes for as long as it is held.
    func letGo()
}

extension StoredBody {
    package func letGo() {}
}

/// A store of responses: a tier, or several seen as one.
///
/// No method blocks, and none throws: a store that cannot do what it is asked counts it, says it
/// once, and answers as if it held nothing. May be called from any thread.
package protocol ObjectStore: AnyObject, Sendable {
    /// All stored responses (variants) for `key`, where that is known without waiting.
    ///
    /// nil means "ask `lookup`"; an empty array means that there certainly are none.
    func lookupResident(_ key: CacheKey) -> [StoredObject]?
    /// All stored responses for `key`, where what a lower tier can read without waiting is read for
    /// it: as `lookup` where that calls back before it returns, and nil where it would not.
    func lookupInPlace(_ key: CacheKey) -> [StoredObject]?
    /// The body of what a place names, read anew; nil where `lookupInPlace` would not find the same as
    /// before, in whatever order, or where the body does not come with its head.
    func bodyAgain(at place: FoundPlace, of key: CacheKey) -> ByteBuffer?
    /// As ``bodyAgain(at:of:)``, and notes a use of it at `time` where it is given.
    func useAgain(at place: FoundPlace, of key: CacheKey, at time: Timestamp) -> ByteBuffer?
    /// Finds all stored responses (variants) for `key`; empty when there are none or on any error.
    ///
    /// `completion` is called once, on the caller's thread before `lookup` returns or on a thread of
    /// the store's, and must not block.
    func lookup(_ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void)
    /// Finds all stored responses for who remembers the answer: says, too, whether it tells all.
    func ask(for key: CacheKey, _ completion: @escaping @Sendable (StoreAnswer) -> Void)
    /// Whether a response may be stored for other queries than the one that it answered, under a key
    /// without its query; false where there certainly is none.
    ///
    /// True from before such a response can be found.
    var mayHoldWithoutSearch: Bool { get }
    /// Begins to store a response. nil: not here (too large, no room, store broken).
    ///
    /// Where `head.extent` is set, it names one range, and the bytes written are those of that
    /// range; offsets that the sink tells and is asked for count from its beginning. Trailers of a
    /// part are not kept.
    ///
    /// - Parameters:
    ///   - length: the body's length where it is known.
    ///   - replacing: the variants that the new response takes the place of, removed in the same
    ///     step in which it becomes visible.
    ///   - observer: told how far the sink is; held strongly until the sink has ended.
    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)?
    /// The length of the longest body that it stores, in bytes.
    var largestBody: UInt64 { get }
    /// The present place in the order of removals.
    func removalMark() -> RemovalMark
    /// Begins to store a response whose request was sent when the mark was `begun`; otherwise as
    /// `store` without it, which takes the mark itself.
    ///
    /// When all of its key, or a part of the store with it, is removed after `begun`, the sink
    /// ends with `.abandoned(.removed)` instead of becoming visible.
    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)?
    /// Begins to add bytes to a stored partial response, from `offset` on; nil: not here (it is
    /// gone, complete by now, or would become too large).
    ///
    /// What is added becomes visible when the sink commits or keeps: the extent grows by it, and is
    /// dropped (nil) once nothing is missing. Bytes that are there already may be written again; where
    /// they are not the same, the sink ends with `.abandoned(.contradictory)`. Offsets that it tells
    /// and is asked for count from `offset`.
    ///
    /// - Parameters:
    ///   - length: how many bytes will come, where that is known.
    ///   - completeLength: the length of the whole representation, where it is known.
    func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)?
    /// Replaces the head of a stored response (a 304 freshened it, or it was invalidated).
    ///
    /// Its extent stays what it is: that is the store's own knowledge.
    ///
    /// - Parameter written: called once, on any thread: when it is where it is to be kept, or never
    ///   will be. Lookups of a store that others lie above may give the old head until then.
    func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?)
    /// Replaces a head by what the answer to a request made of it that was sent when the mark was
    /// `begun`; otherwise as `update` without it.
    ///
    /// Where a response of the key was made invalid after `begun`, nothing is changed: the origin may
    /// have answered before that which made it so.
    func update(_ id: ObjectID, of key: CacheKey, head: StoredHead, begun: RemovalMark)
    /// Removes these responses, or all of `key` where `ids` is nil. `completion` gets the number
    /// removed once no later lookup can find them.
    func remove(
        _ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?)
    /// Removes all of `key` on account of a request that was sent when the mark was `begun`.
    ///
    /// - Returns: the mark with which what that request brings may be stored: that of this removal, or
    ///   `begun` still where something else has removed the key since.
    func remove(
        _ key: CacheKey, begun: RemovalMark, _ completion: @escaping @Sendable (Int) -> Void
    ) -> RemovalMark
    /// Removes every response whose key is in `selection`; `completion` gets the number removed.
    ///
    /// Walks the whole store in bounded steps, unless all is meant; other work goes on meanwhile. A store
    /// that is closed before it is done may keep what is left, and says so (``unkeptRemoval``).
    func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void)
    /// Why what was removed may come back with the next process; nil where nothing will.
    ///
    /// One answer for all removals, as what can no longer be told of one entry is told of the whole
    /// file. To be asked once a removal was told to be done, by whoever must say if it does not last.
    var unkeptRemoval: UnkeptRemoval? { get }
    /// Finds what was first stored at `time` or after, so that it can be removed; what comes or goes
    /// meanwhile may be among it or not.
    ///
    /// Walks the whole store in bounded steps; `completion` is called once, on any thread.
    func names(
        storedSince time: Timestamp,
        _ completion: @escaping @Sendable ([StoredName]) -> Void)
    /// Notes that a group of stored responses was invalidated (RFC 9875 §3): those received at
    /// `time` or before count as invalid.
    ///
    /// Kept with the responses: as long as they last. The number of names is bounded; what had to be
    /// forgotten counts for every group.
    ///
    /// - Parameter name: whatever tells groups apart, the origin's included.
    func noteInvalidation(ofGroup name: [UInt8], at time: Timestamp)
    /// The moment up to which responses of the group count as invalid; nil where it never was.
    ///
    /// Answered from memory.
    func groupInvalidation(of name: [UInt8]) -> Timestamp?
    /// Notes that a response was used to answer a client at `time`. Cheap: no write follows at once.
    func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp)
    /// A mark for one of the objects that `lookupResident` gave, if they are still all that is stored
    /// under the key.
    func residentMark(
        of id: ObjectID, among objects: [StoredObject], under key: CacheKey
    ) -> ResidentMark?
    /// Notes a use of what has the mark and gives it; nil, and nothing is noted, where a lookup of the
    /// key might find anything else than it did.
    func useResident(
        _ mark: ResidentMark, of key: CacheKey, at time: Timestamp
    ) -> StoredObject?
    /// Calls back once all that was told to be stored, changed or removed before is where it is to be
    /// kept, or has failed.
    ///
    /// A store that waits for more, so as to do much at once, waits no longer.
    func flush(_ completion: @escaping @Sendable () -> Void)
    func statistics() -> StoreStatistics
    /// The next of what lies in memory, for people to look at; nothing for a store that holds nothing
    /// there.
    ///
    /// Each step is short, however much there is: other work goes on between two.
    func residentObjects(from place: ResidentPlace) -> ResidentPage
    /// What lies in memory under `key`, the most recent response first.
    func residentObjects(of key: CacheKey) -> [ResidentObject]
    /// Finishes what was committed, drops what was not, and closes. Nothing may be called after it.
    func close(_ completion: @escaping @Sendable () -> Void)
}

extension ObjectStore {
    package var mayHoldWithoutSearch: Bool { true }

    /// For a store that has no bound of its own.
    package var largestBody: UInt64 { .max }

    /// For a store that reads nothing.
    package func lookupInPlace(_ key: CacheKey) -> [StoredObject]? { self.lookupResident(key) }

    package func update(_ id: ObjectID, of key: CacheKey, head: StoredHead) {
        self.update(id, of: key, head: head, written: nil)
    }

    /// Removes every response whose key `matches`; `completion` gets the number removed.
    package func removeAll(
        where matches: @escaping @Sendable (CacheKey) -> Bool,
        _ completion: @escaping @Sendable (Int) -> Void
    ) {
        self.removeAll(in: .matching(matches), completion)
    }

    package func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        nil
    }

    /// For a store that does at once what it is told.
    package func flush(_ completion: @escaping @Sendable () -> Void) { completion() }

    /// For a store that lies below another, which minds them for it.
    package func noteInvalidation(ofGroup name: [UInt8], at time: Timestamp) {}

    package func groupInvalidation(of name: [UInt8]) -> Timestamp? { nil }

    package func residentObjects(from place: ResidentPlace) -> ResidentPage { ResidentPage() }

    package func residentObjects(of key: CacheKey) -> [ResidentObject] { [] }

    /// For a store that no other process opens.
    package var unkeptRemoval: UnkeptRemoval? { nil }

    /// For a store that lies below another, which minds the order for it.
    package func removalMark() -> RemovalMark { RemovalMark(rawValue: 0) }

    package func update(_ id: ObjectID, of key: CacheKey, head: StoredHead, begun: RemovalMark) {
        self.update(id, of: key, head: head, written: nil)
    }

    package func remove(
        _ key: CacheKey, begun: RemovalMark, _ completion: @escaping @Sendable (Int) -> Void
    ) -> RemovalMark {
        self.remove(key, ids: nil, completion)
        return self.removalMark()
    }

    package func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.store(head, for: key, length: length, replacing: replacing, observer: observer)
    }
}
