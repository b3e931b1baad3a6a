package import LarderHTTP

/// How an upstream on libcurl behaves.
///
/// Every value has a default with which it works.
package struct TransferConfiguration: Sendable {
    /// Loops, each a thread with its own connections.
    ///
    /// An origin always belongs to one of them.
    package var threads = 1
    /// Its transfers run on threads that all such upstreams of the process have together, in the
    /// place of threads of its own.
    ///
    /// Connections and names stay its own. It costs nothing until it fetches, no thread then, and
    /// keeps requests that wait for a connection to their origin in the order of their priority.
    package var sharesThreads = false

    // MARK: Connections

    /// Connections to one origin at a time; further fetches wait for one.
    ///
    /// 0 means no bound. Through parents it holds as well, for each origin that is reached by a
    /// tunnel (https, SOCKS5); what an HTTP parent is asked for in absolute form counts together,
    /// as the parent's, on each loop. Tunnels of clients are outside it.
    package var connectionsPerHost = 96
    /// Connections in all, divided among the loops.
    ///
    /// 0 means no bound.
    package var maximumConnections = 2048
    /// Names that are looked up at a time, divided among the loops, but 16 for each; further fetches
    /// that need one wait, for no longer than a look-up may take.
    ///
    /// 0 means no bound. Each is a thread of libcurl's, which outlives a fetch that was given up.
    package var nameLookups = 128
    /// Idle connections kept for reuse, divided among the loops.
    package var idleConnections = 512
    /// How long an idle connection may have been idle and still be reused.
    package var idleConnectionLifetime: Duration = .seconds(55)
    /// Whether https origins are offered HTTP/2 (ALPN).
    package var http2 = true
    /// Whether a fetch waits for a connection being made, to share it, if that may become HTTP/2.
    ///
    /// Saves handshakes; costs the first few fetches a wait where it turns out not to be.
    package var waitsToMultiplex = true
    /// The field lines of a request go to libcurl in one piece where they may: for tests of what is done
    /// with a libcurl that refuses that.
    var joinsFieldLines = CurlLibrary.takesJoinedLines

    // MARK: Time

    /// How long a fetch waits for a connection when as many as allowed are in use.
    package var queueTimeout: Duration = .seconds(60)
    package var resolveTimeout: Duration = .seconds(10)
    /// For the connection to stand: TCP and, for https, TLS.
    package var connectTimeout: Duration = .seconds(10)
    /// For the connection to stand where a parent makes it, the parent's own name resolution and
    /// login included.
    package var tunnelTimeout: Duration = .seconds(30)
    /// From the end of the request to the end of the response's head; each 1xx begins it anew.
    package var responseTimeout: Duration = .seconds(120)
    /// How long an origin may leave us waiting in the middle of a message.
    ///
    /// It neither takes bytes of the request's content nor gives bytes of the response's. Time
    /// spent waiting for a client does not count.
    package var stallTimeout: Duration = .seconds(60)
    /// How long `Expect: 100-continue` waits before the content is sent anyway
    /// (RFC 9110 §10.1.1 wants no indefinite wait).
    package var continueTimeout: Duration = .seconds(1)
    package var nameLifetime: Duration = .seconds(60)
    /// How long a request waits for further data (`timeoutIntervalForRequest`).
    ///
    /// Where set, it takes the place of both the response's and the stall's time.
    package var idleTimeout: Duration?
    /// How long a transfer may take as a whole, waiting included (`timeoutIntervalForResource`).
    ///
    /// From `fetch` to the end of the body, which is cut; nil: no bound.
    package var resourceTimeout: Duration?

    // MARK: Bounds

    /// The largest response head, status line and field lines together; the same for trailers.
    package var maximumHead: ByteCount = .kibibytes(64)
    package var maximumFieldCount = 256

    // MARK: Parents

    /// Which parent proxies lead where.
    package var parents = ParentRules()

    // MARK: TLS

    /// The versions of TLS that are spoken, with origins and with https parents.
    package var tlsVersions = TLSVersions()
    /// Whether certificates and host names of origins are verified.
    package var verifiesCertificates = true
    /// A file of trusted certificates (PEM) in place of the system's.
    package var certificateFile: String?
    /// A directory of trusted certificates, hashed as OpenSSL wants them.
    package var certificateDirectory: String?

    package init() {}

    /// What each loop has of a number that all have together; 0 is "no bound", and stays so.
    func share(of total: Int) -> Int {
        total <= 0 ? 0 : Swift.max(1, total / Swift.max(1, self.threads))
    }
}

/// A version of TLS (RFC 8996 wants the first two used no more).
package enum TLSVersion: Int, Hashable, Sendable, CaseIterable, Comparable {
    case v10, v11, v12, v13

    var text: String { "1.\(self.rawValue)" }

    package static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }
}

/// The versions of TLS that may be agreed on.
///
/// OpenSSL's own policy stays in force beneath: where the system forbids a version, naming it here
/// does not bring it back. Where one below 1.2 is named, its security level is 0, as those sign with SHA-1.
package struct TLSVersions: Hashable, Sendable {
    package var minimum: TLSVersion
    /// nil: the newest that both ends know.
    ///
    /// Never below `minimum`: then no connection can stand.
    package var maximum: TLSVersion?

    package init(minimum: TLSVersion = .v12, maximum: TLSVersion? = nil) {
        self.minimum = minimum
        self.maximum = maximum
    }

    /// As failures name them.
    var text: String {
        guard let maximum else { return "TLS \(self.minimum.text) and newer" }
        return maximum == self.minimum
            ? "TLS \(maximum.text) alone" : "TLS \(self.minimum.text) to \(maximum.text)"
    }
}
