package import LarderHTTP

/// Whom a cache serves (RFC 9111 §1): some rules differ.
package enum CacheKind: String, Sendable, Codable, CaseIterable {
    /// Many principals: the proxy.
    case shared
    /// One principal, who alone sees what is stored: a session with an owner, the library.
    case `private`
}

/// What the rules of RFC 9111 leave to the cache, and what it is.
package struct PolicyConfiguration: Sendable, Equatable {
    package var kind: CacheKind
    /// Part of the time since `Last-Modified` for which a response without explicit freshness is
    /// taken to be fresh; the RFC's own example is a tenth (§4.2.2).
    package var heuristicFraction: Double
    /// The longest heuristic lifetime.
    package var heuristicMaximum: Duration
    /// Compare `Accept-Encoding` and `Accept-Language` by meaning, not by bytes (§4.1).
    package var semanticVary: Bool
    /// How many variants of one URI are kept.
    package var maximumVariants: Int
    /// How long after its freshness a response may stand in for an origin that fails, where neither
    /// side said so (§4.2.4).
    ///
    /// Zero: only where `stale-if-error` allows it.
    package var staleIfErrorGrace: Duration
    /// How long it may stand in for an origin that gives no answer at all: "disconnected" is when
    /// §4.2.4 lets a cache use what is stale of its own accord.
    package var unreachableGrace = Duration.zero
    /// Serve within `stale-while-revalidate` and validate behind the client's back (RFC 5861 §3).
    package var honoursStaleWhileRevalidate: Bool
    /// Fields that take the place of `Cache-Control` and `Expires`, the first one present wins
    /// (RFC 9213 §2.2).
    package var targetedFields: [FieldName]
    /// Store responses that set cookies, like any other (RFC 9111 §7.3 warns of it).
    package var storesSetCookie: Bool
    /// Store the answer to a POST for later GETs where it says so explicitly, with a
    /// `Content-Location` that is the target itself (RFC 9110 §9.3.3).
    package var storesPost: Bool
    /// How long a file fetched by ftp is fresh: the protocol says nothing itself.
    ///
    /// Zero: the heuristic applies where the server told the time of modification, and nothing is
    /// stored else.
    package var ftpLifetime: Duration
    /// Answer requests whose query differs only as `No-Vary-Search` allows
    /// (draft-ietf-httpbis-no-vary-search).
    package var honoursNoVarySearch = true
    /// Store what is successful and has neither freshness nor a validator, and could answer no request by
    /// HTTP's rules alone: a request's cache policy may use whatever is stored.
    package var storesUnusable = false
    /// Store the parts of a representation that come.
    package var storesParts = true
    /// Bodies come, and are stored, with their content codings undone, though `Content-Encoding` stays
    /// in the head: what is stored then has other bytes, and another length, than the origin's
    /// representation.
    package var storesDecoded = false
    /// Freshness lifetimes of errors that give none; the first that fits counts.
    ///
    /// Empty: errors are kept as the RFC has it.
    package var negative: [NegativeLifetime] = []
    /// What is said about certain hosts and paths; the first that fits a URI counts.
    package var rules: [CacheRule] = []
    /// The index in `rules` of the one that fits; set by `resolved(for:)` alone.
    var matchedRule: Int?

    package init(
        kind: CacheKind = .shared, heuristicFraction: Double = 0.1,
        heuristicMaximum: Duration = .seconds(86_400), semanticVary: Bool = true,
        maximumVariants: Int = 64, staleIfErrorGrace: Duration = .zero,
        honoursStaleWhileRevalidate: Bool = true, targetedFields: [FieldName] = [],
        storesSetCookie: Bool = true, storesPost: Bool = true, ftpLifetime: Duration = .zero
    ) {
        self.kind = kind
        self.heuristicFraction = heuristicFraction
        self.heuristicMaximum = heuristicMaximum
        self.semanticVary = semanticVary
        self.maximumVariants = maximumVariants
        self.staleIfErrorGrace = staleIfErrorGrace
        self.honoursStaleWhileRevalidate = honoursStaleWhileRevalidate
        self.targetedFields = targetedFields
        self.storesSetCookie = storesSetCookie
        self.storesPost = storesPost
        self.ftpLifetime = ftpLifetime
    }
}
