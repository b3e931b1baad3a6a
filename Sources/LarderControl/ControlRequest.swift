/// What a command asks of a running proxy: one line of JSON.
///
/// Some of it holds secrets. The socket may be opened by its owner alone (0600), nothing that goes
/// over it is logged, and what is a secret is a `ControlSecret`, which no description shows.
package enum ControlRequest: Codable, Sendable, Equatable {
    /// Who is there: `.status`.
    case status
    /// One `.statistics` for each session, or for the named one.
    case statistics(session: String?)
    /// `.objects` with the responses that the memory tier holds; those that the disk tier has, too,
    /// only by name in `.copies`, unless they are wanted in full.
    case listMemory(session: String, copiesInFull: Bool? = nil)
    /// One `.resident` for each response to GET for a URL that the memory tier holds.
    /// Concerns one principal where that is named, else all that are in memory.
    case showMemory(session: String, url: String, principal: String? = nil)
    /// The body of one of them, in `.piece`s.
    case readMemory(session: String, url: String, id: UInt64, principal: String? = nil)
    /// One `.fetch` for each fetch under way that clients share.
    case listFetches
    /// One `.transfer` for each transfer that background sessions keep, those of a session together
    /// and the oldest first.
    case listTransfers(session: String?)
    /// Ends transfers and forgets them: `.removed`, with how many there were.
    case cancelTransfers(session: String?, TransferSelection)
    /// One `.missing` for each URL that was asked for offline and was not stored, and then forgets
    /// them if it is to.
    case listMissing(session: String, clears: Bool)
    /// Removes stored responses from both tiers, those of all principals where none is named:
    /// `.purged`, or `.failed` where they may come back at the next start.
    case purge(session: String?, PurgeSelection, principal: String? = nil)
    /// Writes a session's cache file anew without holes: `.progress` in bytes, then `.compacted`.
    case compact(session: String)
    /// Reads the configuration again: `.reloaded`.
    case reload
    /// Takes out of the disk tier what a verification has found in it, where it is still so:
    /// `.mended`.
    case mend(session: String, [DamageRecord])
    /// Stores what an archive holds, which the proxy opens itself: any number of `.progress` (bytes
    /// read) and `.importProblem`, then `.imported`.
    case importArchive(session: String, path: String)
    /// Why a request would be answered as it would, and how the last ones were: `.explanation`.
    case explain(ExplainQuestion)
    /// Looks at or changes the cookies that a session keeps itself.
    ///
    /// - Parameter principal: whose; nil where the session is not split.
    case cookies(session: String, principal: String?, CookieCommand)
    /// Looks at or changes the credentials of a session, or tries one.
    case credentials(session: String, principal: String?, CredentialCommand)
}

/// Which stored responses to remove.
package enum PurgeSelection: Codable, Sendable, Equatable {
    /// Every variant of one URL.
    case url(String)
    /// Everything of one host, whatever the scheme and port.
    case host(String)
    /// Every URL that the glob fits as a whole.
    case pattern(String)
    case all
}

/// Which transfers are meant.
package enum TransferSelection: Codable, Sendable, Equatable {
    /// The one with this number.
    case id(UInt64)
    case all
}

/// One line of an answer.
///
/// `.end` or `.failed` is the last.
package enum ControlReply: Codable, Sendable, Equatable {
    case status(DaemonStatus)
    case statistics(SessionStatistics)
    case objects([MemoryObject])
    case copies(ResidentCopies)
    case resident(ResidentResponse)
    case piece(BodyPiece)
    case fetch(FetchRecord)
    case transfer(TransferRecord)
    case missing(MissingURL)
    /// How many requests for further URLs are not listed, because the list was full.
    case unlistedMissing(UInt64)
    case purged(PurgeOutcome)
    case compacted(CompactionOutcome)
    case reloaded(ReloadOutcome)
    case explanation(ExplanationRecord)
    /// What of it was taken out.
    case mended([DamageRecord])
    /// Something in an archive that could not be read, in a line for people.
    case importProblem(String)
    case imported(ImportOutcome)
    case cookies([CookieRecord])
    case cookieVerdicts([CookieVerdict])
    case credentials([CredentialRecord])
    case credentialTrial(CredentialTrial)
    case keyRotated(KeyRotation)
    /// How many cookies, credentials or transfers were.
    case removed(UInt64)
    /// Work goes on: so many items are done. Keeps a patient client from giving up.
    case progress(UInt64)
    case failed(ControlFailure)
    case end

    package var isLast: Bool {
        switch self {
        case .end, .failed: true
        case .status, .statistics, .objects, .copies, .resident, .piece, .fetch, .transfer,
            .missing, .unlistedMissing, .purged, .compacted, .reloaded, .explanation, .mended,
            .importProblem, .imported, .cookies, .cookieVerdicts, .credentials, .credentialTrial,
            .keyRotated, .removed, .progress:
            false
        }
    }
}

/// What one session has done since the proxy started, and what it holds.
package struct SessionStatistics: Codable, Sendable, Equatable {
    /// One tier of the cache.
    package struct Tier: Codable, Sendable, Equatable {
        package var objects: UInt64
        package var bytes: UInt64
        package var capacity: UInt64
        package var evictions: UInt64
        package var hits: UInt64

        package init(
            objects: UInt64 = 0, bytes: UInt64 = 0, capacity: UInt64 = 0, evictions: UInt64 = 0,
            hits: UInt64 = 0
        ) {
            self.objects = objects
            self.bytes = bytes
            self.capacity = capacity
            self.evictions = evictions
            self.hits = hits
        }
    }

    package var session: String
    package var kind: String
    package var memory: Tier
    /// nil: the session has no disk tier.
    package var disk: Tier?
    package var fileBytes: UInt64 = 0
    package var requests: UInt64 = 0
    /// Answered from the cache without asking an origin.
    package var hits: UInt64 = 0
    /// Answered from the cache after the origin said that nothing had changed.
    package var validated: UInt64 = 0
    /// Answered by origins; by a proxy of a release that does not count `collapsed`, those with them.
    package var misses: UInt64 = 0
    /// Body bytes that came from origins, once however many clients share them, and those that answers
    /// from the cache announced, as a sum; and the latter alone.
    package var bytesServed: UInt64 = 0
    package var bytesFromCache: UInt64 = 0
    package var failures: UInt64 = 0
    package var storeFailures: UInt64 = 0
    package var damaged: UInt64 = 0
    /// Fetches behind the back of a client that was served a stale response.
    ///
    /// This and the next three are nil from a proxy of an older release.
    package var backgroundFetches: UInt64?
    /// Fetches of bytes that were missing from what is stored.
    package var gapFetches: UInt64?
    /// Bodies that broke off and were gone on with, and those of which a part was kept.
    package var bodiesResumed: UInt64?
    package var partsKept: UInt64?
    /// How often each rule decided, by the token of its reason; nil from a proxy of an older release.
    package var reasons: [String: UInt64]?
    /// What the session did by itself, by the token of the act; nil from a proxy of an older release.
    package var acts: [String: UInt64]?
    /// When the proxy started, in microseconds since 1970.
    ///
    /// This and the next five are nil from a proxy of an older release.
    package var startedMicroseconds: Int64?
    package var pid: Int32?
    /// Responses stored, and those that began to be and were given up; of these, those for which the
    /// disk was too slow.
    package var stored: UInt64?
    package var storesRefused: UInt64?
    package var storesTooSlow: UInt64?
    /// Requests that their clients left before they were answered.
    package var cancelled: UInt64?
    /// Answered with what another request's fetch brought; nil from a proxy of an older release.
    package var collapsed: UInt64?
    /// Clients that took nothing of what others waited for, and lost the rest; nil from a proxy of an
    /// older release.
    package var clientsCutOff: UInt64?
    /// nil: the disk tier had none since the proxy started.
    package var trouble: DiskTrouble?

    package init(session: String, kind: String, memory: Tier = Tier(), disk: Tier? = nil) {
        self.session = session
        self.kind = kind
        self.memory = memory
        self.disk = disk
    }
}
