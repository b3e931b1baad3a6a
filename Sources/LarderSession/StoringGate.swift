package import LarderPolicy
package import LarderStore
package import NIOCore

/// What a door has to say about the storing of an answer: how much of it at most, and whether at all.
///
/// Asked only about what the rules of caching let in. With one, a session stores nothing but
/// successful answers (200–299) of origins.
package protocol StoringGate: AnyObject, Sendable {
    /// Longer bodies are not stored; nil: nothing is. Read once, when the head has come.
    var largestBody: UInt64? { get }
    /// Whether it decides about each response; else all that is not too long is stored.
    ///
    /// What it cannot look at as a whole, a part of a response, is then not stored.
    var decides: Bool { get }
    /// A response that it decides about has begun to be stored; its client hears of the answer
    /// afterwards. Any thread; must not block.
    func storing(offers held: HeldStoring)
}

/// A response on its way into the store, which becomes visible only by a decision.
///
/// ```
/// (body comes in) ─▶ whole ─▶ commit | drop
///        └▶ failed, too long, the store gave up: nothing is left to decide
/// ```
///
/// A decision may come at any time; it takes effect when the body is whole. Released without one, it
/// counts as `drop`. Any thread.
package final class HeldStoring: Sendable {
    /// As it would be stored.
    package let head: StoredHead
    package let key: CacheKey
    /// What it takes the place of.
    package let replacing: [ObjectID]
    /// From before the request was sent: what stores another response in place of this one hands it
    /// on, so that what was removed since does not come back.
    package let removals: RemovalMark
    private let sink: GatedSink

    init(_ storing: Storing, replacing: [ObjectID], removals: RemovalMark, sink: GatedSink) {
        self.head = storing.head
        self.key = storing.key
        self.replacing = replacing
        self.removals = removals
        self.sink = sink
    }

    deinit {
        self.sink.decide(commits: false)
    }

    /// Whether it is still possible to store it.
    package var isPossible: Bool { self.sink.isPossible }

    /// Makes the response visible when its body is whole, or has it forgotten; only the first decision
    /// counts.
    package func decide(commits: Bool) {
        self.sink.decide(commits: commits)
    }

    /// Calls back once the body is whole, or (false) will not be; at once where that is known.
    package func whenWhole(_ completion: @escaping @Sendable (Bool) -> Void) {
        self.sink.whenWhole(completion)
    }

    /// Reads back what has been written, once the body is whole and before the decision.
    ///
    /// - Parameter completion: gets the body in pieces; nil where it is not to be had. On any thread.
    package func read(_ completion: @escaping @Sendable ([ByteBuffer]?) -> Void) {
        self.sink.whenWritten { [sink] isWhole in
            guard isWhole, let source = sink.reader(from: 0) else { return completion(nil) }
            BodyCollector(source, completion).begin()
        }
    }
}
