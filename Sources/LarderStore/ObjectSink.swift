package import LarderHTTP
package import NIOCore

/// Takes the body of one response into a store, behind the back of whoever produces it.
///
/// ```
/// write* ─▶ commit ─▶ observer.sinkEnded(.visible(id))
///        └▶ abandon | dropped | store failed ─▶ observer.sinkEnded(.abandoned(reason))
/// ```
///
/// Calls come one after the other (any thread). Nothing is visible to lookups before `commit`.
package protocol ObjectSink: AnyObject, Sendable {
    /// Takes a piece; returns at once. Progress is told to the observer.
    func write(_ piece: ByteBuffer)
    /// Whoever writes can do no more until something of what was written is taken: a store that waits
    /// for more, so as to take much at once, waits no longer.
    func hurry()
    /// The body is whole: make the response visible.
    func commit(trailers: Fields)
    /// The body broke off: what came of it stays, as partial content; as `abandon` where nothing
    /// came of a new response.
    ///
    /// What came is complete where it makes `completeLength`. For a whole response that is the length
    /// that `store` was given, where none is given here.
    ///
    /// - Parameter completeLength: the length of the whole representation, where it is known.
    func keep(completeLength: UInt64?)
    /// Forget it all. Also what happens when the sink is released without `commit`.
    func abandon()
    /// A reader of the bytes from `offset` on that the sink has already reported as written, for
    /// readers that lag behind; nil where the sink cannot give them back. Ends (`.end`) where the
    /// written bytes end at the moment of asking.
    ///
    /// What it gave back once it gives back until it is released, however it ended.
    func reader(from offset: UInt64) -> (any BodySource)?
}

/// How a sink ended.
package enum SinkOutcome: Sendable, Equatable {
    /// Lookups find it from now on.
    case visible(ObjectID)
    case abandoned(SinkAbandonment)
}

/// Why a response that was being stored was not stored in the end.
package enum SinkAbandonment: String, Error, Sendable, Equatable, CaseIterable {
    case byWriter = "abandoned"
    case tooLarge = "too-large"
    case noSpace = "no-space"
    case storeFailed = "store-failed"
    case tooSlow = "store-too-slow"
    case closing = "store-closing"
    /// Its key was removed after the response had been asked for.
    case removed = "removed-meanwhile"
    /// The bytes to be added, or the length they came with, do not fit what is stored.
    case contradictory = "contradicts-stored"
    /// It would have too many ranges.
    case tooScattered = "too-many-ranges"
    /// It was asked for once only, and the rules of admission want a second time.
    case seenOnce = "seen-once"
    /// A large body was asked for once only, and the rules of admission want a second time.
    case largeSeenOnce = "large-seen-once"
}

/// Hears how a sink gets on.
///
/// Called from the store's threads or from inside the sink's own calls; must not block.
package protocol ObjectSinkObserver: AnyObject, Sendable {
    /// Whether the sink is to end no sooner than the lowest tier that takes part, and as that says:
    /// for one who counts on finding the response after a restart.
    ///
    /// Else it ends as soon as lookups find the response.
    var awaitsLowest: Bool { get }
    /// All bytes below `offset` are taken: their pieces need no longer be kept for the sink, and
    /// `reader(from:)` can give them back where it gives any.
    func sink(written offset: UInt64)
    /// The last call, exactly once.
    func sinkEnded(_ outcome: SinkOutcome)
}

extension ObjectSinkObserver {
    package var awaitsLowest: Bool { false }
}

extension ObjectSink {
    /// For a store that waits for nothing.
    package func hurry() {}

    package func keep(completeLength: UInt64?) { self.abandon() }
}
