package import LarderPolicy
import Synchronization

/// What a session has done since it began: a snapshot.
package struct SessionCounters: Sendable, Equatable, Codable {
    package var requests: UInt64 = 0
    /// Answered from the store without asking the origin.
    package var hits: UInt64 = 0
    /// Hits that were stale and allowed to be.
    package var staleHits: UInt64 = 0
    /// Answered from the store after the origin said that it still holds (304).
    package var validated: UInt64 = 0
    /// Answered with what the fetch of another request brought; not where that confirmed what is stored.
    package var collapsed: UInt64 = 0
    /// Answered by the origin.
    package var forwarded: UInt64 = 0
    /// Without an answer from origin or store.
    package var failed: UInt64 = 0
    /// Left by their client before they were answered.
    package var cancelled: UInt64 = 0
    /// Responses stored, and those that began to be and were given up.
    package var stored: UInt64 = 0
    package var storesAbandoned: UInt64 = 0
    package var storesTooSlow: UInt64 = 0
    /// Clients that took nothing of what others waited for, and lost the rest.
    package var clientsCutOff: UInt64 = 0
    /// Fetches made in the background to refresh what was served stale.
    package var backgroundFetches: UInt64 = 0
    /// Fetches of bytes that were missing from what is stored.
    package var gapFetches: UInt64 = 0
    /// Bodies that broke off and were gone on with, and those of which a part was kept.
    package var bodiesResumed: UInt64 = 0
    package var partsKept: UInt64 = 0
    /// Body bytes received from origins, and announced to clients from the store.
    package var bytesFromOrigins: UInt64 = 0
    package var bytesFromStore: UInt64 = 0
    /// Exchanges and fetches under way.
    package var openExchanges: UInt64 = 0
    package var openFetches: UInt64 = 0
    /// How often each rule decided, on the use of what is stored and on storing.
    package var reasons: [PolicyReason: UInt64] = [:]
    /// What the session did by itself on the way to its answers.
    package var acts: [SessionAct: UInt64] = [:]

    package init() {}

    /// Body bytes from origins, once however many clients share them, and those from the store.
    package var bytesServed: UInt64 { self.bytesFromStore &+ self.bytesFromOrigins }

    package static func + (a: SessionCounters, b: SessionCounters) -> SessionCounters {
        var sum = a
        sum.requests &+= b.requests
        sum.hits &+= b.hits
        sum.staleHits &+= b.staleHits
        sum.validated &+= b.validated
        sum.collapsed &+= b.collapsed
        sum.forwarded &+= b.forwarded
        sum.failed &+= b.failed
        sum.cancelled &+= b.cancelled
        sum.stored &+= b.stored
        sum.storesAbandoned &+= b.storesAbandoned
        sum.storesTooSlow &+= b.storesTooSlow
        sum.clientsCutOff &+= b.clientsCutOff
        sum.backgroundFetches &+= b.backgroundFetches
        sum.gapFetches &+= b.gapFetches
        sum.bodiesResumed &+= b.bodiesResumed
        sum.partsKept &+= b.partsKept
        sum.bytesFromOrigins &+= b.bytesFromOrigins
        sum.bytesFromStore &+= b.bytesFromStore
        sum.openExchanges &+= b.openExchanges
        sum.openFetches &+= b.openFetches
        sum.reasons.merge(b.reasons) { $0 &+ $1 }
        sum.acts.merge(b.acts) { $0 &+ $1 }
        return sum
    }
}

/// One number that any thread may add to.
struct Counter: ~Copyable, Sendable {
    private let value = Atomic<UInt64>(0)

    var current: UInt64 { self.value.load(ordering: .relaxed) }

    func add(_ amount: UInt64 = 1) {
        self.value.wrappingAdd(amount, ordering: .relaxed)
    }

    func subtract(_ amount: UInt64 = 1) {
        self.value.wrappingSubtract(amount, ordering: .relaxed)
    }
}

/// The live counters of a session.
struct LiveCounters: ~Copyable, Sendable {
    let requests = Counter()
    let hits = Counter()
    let staleHits = Counter()
    let validated = Counter()
    let collapsed = Counter()
    let forwarded = Counter()
    let failed = Counter()
    let cancelled = Counter()
    let stored = Counter()
    let storesAbandoned = Counter()
    let storesTooSlow = Counter()
    let clientsCutOff = Counter()
    let backgroundFetches = Counter()
    let gapFetches = Counter()
    let bodiesResumed = Counter()
    let partsKept = Counter()
    let bytesFromOrigins = Counter()
    let bytesFromStore = Counter()
    let openExchanges = Counter()
    let openFetches = Counter()
    let reasons = ReasonCounters()
    let acts = ActCounters()

    func snapshot() -> SessionCounters {
        var now = SessionCounters()
        now.requests = self.requests.current
        now.hits = self.hits.current
        now.staleHits = self.staleHits.current
        now.validated = self.validated.current
        now.collapsed = self.collapsed.current
        now.forwarded = self.forwarded.current
        now.failed = self.failed.current
        now.cancelled = self.cancelled.current
        now.stored = self.stored.current
        now.storesAbandoned = self.storesAbandoned.current
        now.storesTooSlow = self.storesTooSlow.current
        now.clientsCutOff = self.clientsCutOff.current
        now.backgroundFetches = self.backgroundFetches.current
        now.gapFetches = self.gapFetches.current
        now.bodiesResumed = self.bodiesResumed.current
        now.partsKept = self.partsKept.current
        now.bytesFromOrigins = self.bytesFromOrigins.current
        now.bytesFromStore = self.bytesFromStore.current
        now.openExchanges = self.openExchanges.current
        now.openFetches = self.openFetches.current
        now.reasons = self.reasons.snapshot()
        now.acts = self.acts.snapshot()
        return now
    }
}
