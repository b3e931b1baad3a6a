package import LarderCookies

/// The changes of a jar that its storage does not have yet: a value; changes go in, batches come
/// out.
///
///     nothing to do ⇄ waiting → in flight → (done | waiting again, where the storage failed)
///
/// One batch is in flight at a time. Of each cookie only the last change waits, and one that the
/// storage never had leaves no removal behind: so what waits is never more than the jar and the
/// storage hold, however long the storage takes.
package struct CookieBacklog: Sendable {
    private struct Waiting: Sendable {
        let turn: UInt64
        /// Nil for a removal.
        let cookie: Cookie?
    }

    /// What the storage has, as far as it said.
    private var kept: Set<Cookie.Identity> = []
    private var waiting: [Cookie.Identity: Waiting] = [:]
    private var inFlight: [Cookie.Identity: Waiting]?
    private var turn: UInt64 = 0
    private var turnInFlight: UInt64 = 0
    /// The last turn for which the storage was asked and has answered.
    package private(set) var answered: UInt64 = 0

    package init() {}

    /// Changes that the storage does not have.
    package var count: Int { self.waiting.count + (self.inFlight?.count ?? 0) }
    /// Nothing waits and nothing is in flight.
    package var isEmpty: Bool { self.waiting.isEmpty && self.inFlight == nil }
    /// Whether the storage was asked, and has not answered.
    package var isInFlight: Bool { self.inFlight != nil }
    /// The turn of what was noted last.
    package var last: UInt64 { self.turn }

    /// Notes what the storage held at the beginning.
    package mutating func restored(_ cookies: [Cookie]) {
        self.kept.formUnion(cookies.map(\.identity))
    }

    /// Notes what the storage holds now, where others write to it, too.
    ///
    /// - Returns: what it held and holds no more, without a change of its own under way: others have
    ///   removed it.
    package mutating func reread(_ cookies: [Cookie]) -> [Cookie.Identity] {
        let held = Set(cookies.map(\.identity))
        let gone = self.kept.filter { !held.contains($0) && !self.isPending($0) }
        self.kept = held
        return Array(gone)
    }

    /// Whether a change of this cookie is still to reach the storage, or may be doing so.
    package func isPending(_ identity: Cookie.Identity) -> Bool {
        self.waiting[identity] != nil || self.inFlight?[identity] != nil
    }

    /// Notes changes, which then wait.
    package mutating func note(_ changes: [CookieChange]) {
        for change in changes {
            self.turn += 1
            switch change {
            case .stored(let cookie) where cookie.isPersistent:
                self.waiting[cookie.identity] = Waiting(turn: self.turn, cookie: cookie)
            case .stored(let cookie):
                // It ends with the session, but may stand where one stood that does not.
                self.remove(cookie.identity)
            case .removed(let identity):
                self.remove(identity)
            }
        }
    }

    private mutating func remove(_ identity: Cookie.Identity) {
        let mayBeKept = self.kept.contains(identity) || self.inFlight?[identity]?.cookie != nil
        self.waiting[identity] = mayBeKept ? Waiting(turn: self.turn, cookie: nil) : nil
    }

    /// What the storage is to be asked now; nil where there is nothing, or something is in flight.
    package mutating func next() -> [CookieChange]? {
        guard self.inFlight == nil, !self.waiting.isEmpty else { return nil }
        let batch = self.waiting
        self.inFlight = batch
        self.turnInFlight = self.turn
        self.waiting = [:]
        return batch.sorted { $0.value.turn < $1.value.turn }.map { identity, change in
            change.cookie.map { .stored($0) } ?? .removed(identity)
        }
    }

    /// Notes how the storage did with what is in flight: all of it, or nothing.
    package mutating func finished(succeeded: Bool) {
        let batch = self.inFlight ?? [:]
        self.inFlight = nil
        self.answered = self.turnInFlight
        for (identity, change) in batch {
            if succeeded {
                if change.cookie == nil {
                    self.kept.remove(identity)
                } else {
                    self.kept.insert(identity)
                }
            } else if let later = self.waiting[identity] {
                // The storage never had what the later change removes.
                if later.cookie == nil, !self.kept.contains(identity) {
                    self.waiting[identity] = nil
                }
            } else {
                self.waiting[identity] = change
            }
        }
        // What was noted meanwhile may have come to nothing.
        if self.waiting.isEmpty { self.answered = self.turn }
    }
}
