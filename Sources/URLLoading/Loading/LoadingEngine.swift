import Foundation
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderState
import LarderStore
import LarderTransfer
import Synchronization

/// The engine of one `URLSession` while it runs: a session over its cache, one past it, and the way to
/// origins that both have.
///
/// Each load holds it, so that it lives as long as the last one.
final class LoadingEngine: Sendable {
    static let clock = SystemClock()
    private static let timers = DispatchTimers(label: "url-loading.timers")
    /// Stands for secrets where requests are compared; with the process's own key, so that what varies
    /// by a secret answers no request of another process.
    private static let digests = KeyedDigest()
    /// Seals as its sessions do, where requests of programs are compared with what those stored.
    static let sealer = FieldSealer(digest: { LoadingEngine.digests.digest($0) })

    /// Measures, for the sessions.
    let upstream: any Upstream
    /// The way to origins itself.
    private let origins: any Upstream
    /// The cookies of the configuration; nil: none.
    private let cookies: (any HopCookies)?
    /// Whether cookies leave answers alone: a storage with methods of a program's own may keep one
    /// waiting.
    private let passesUncached: Bool
    /// Connects to servers; nil where the upstream does not.
    let dialer: (any SocketDialer)?
    /// Over the cache of the configuration.
    let caching: Session
    /// For loads that use no cache.
    let direct: Session
    let rules: LoadingRules
    /// Held, as its store is only there as long as it is; nil: no cache.
    let cache: URLCache?
    /// Answers of the cache's that stand.
    let standing = StandingLoads()
    let credentials: URLCredentialStorage?
    let connectivity: any Connectivity
    let clock: any WallClock
    private let memory = Mutex(ServerMemory())
    /// The last URL that was loaded, and what it says.
    private let lastTarget = Mutex<(text: String, target: TargetURI)?>(nil)

    /// Throws where the kernel or libcurl refuses what a transfer needs.
    init(
        _ settings: URLSessionConfiguration, _ surroundings: SessionEngine.Surroundings
    ) throws(TransferError) {
        let transfer = TransferConfiguration(settings)
        let upstream = try surroundings.upstream(transfer)
        self.dialer = upstream as? any SocketDialer
        self.upstream = CountingUpstream(upstream)
        self.origins = upstream
        self.rules = LoadingRules(settings)
        self.connectivity = surroundings.connectivity
        self.clock = surroundings.clock
        self.cache = settings.urlCache
        self.credentials = settings.urlCredentialStorage
        let cookies = settings.httpCookieStorage?.hopCookies(
            accept: settings.httpCookieAcceptPolicy, sets: settings.httpShouldSetCookies)
        self.cookies = cookies
        self.passesUncached = !(cookies is OverriddenCookies)
        let (counting, clock) = (self.upstream, self.clock)
        func session(_ store: any ObjectStore) -> Session {
            Session(
                configuration: .userAgent, store: store, upstream: counting, clock: clock,
                timers: Self.timers, cookies: cookies, digest: { Self.digests.digest($0) })
        }
        self.direct = session(AbsentStore())
        self.caching = settings.urlCache.map { session($0.engineStore) } ?? self.direct
    }

    /// Begins a request past the cache without a `Session`, if nothing of what one does is needed.
    ///
    /// - Returns: nil where something is.
    func pass(
        _ request: Request, under policy: RequestCachePolicy, for load: HTTPLoad
    ) -> (any Exchange)? {
        // Content may have to be sent again; and who wants stored responses alone gets a refusal.
        guard self.passesUncached, request.bodyLength == .none, request.uri.scheme != .ftp,
            policy != .returnCacheDontLoad, !request.fields.contains(FieldName(.cacheControl))
        else { return nil }
        let exchange = UncachedExchange(
            policy.forwarded(request), cookies: self.cookies, clock: self.clock, client: load,
            mayBeAnsweredAtOnce: load.mayBeAnsweredAtOnce)
        if load.readsMeasurement { load.fetchBegins() }
        exchange.begin(by: self.origins)
        return exchange
    }

    /// A URL as the engine takes it.
    ///
    /// A program that asks for the same again has it read once.
    func target(of url: URL) throws(URLError) -> TargetURI {
        let text = url.absoluteString
        if let known = self.lastTarget.withLock({ $0?.text == text ? $0?.target : nil }) {
            return known
        }
        let target = try TargetURI(loading: text)
        // It may name a user and a password, or bear a token: no copy of those stays.
        let mayBearSecret = text.utf8.contains {
            $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "?")
        }
        if mayBearSecret { return target }
        // Released when the lock is.
        let before = self.lastTarget.withLock { last in
            defer { last = (text, target) }
            return last
        }
        _ = consume before
        return target
    }

    /// What was said about servers.
    func remember<R>(_ body: (inout ServerMemory) -> sending R) -> R {
        self.memory.withLock { body(&$0) }
    }
}

/// What a program has said about servers of a session, as a value.
struct ServerMemory {
    /// A server as one of its certificates shows it.
    struct Server: Hashable {
        let host: String
        let port: UInt16
        let leaf: [UInt8]

        init(_ peer: TLSPeer) {
            self.host = peer.host
            self.port = peer.port
            self.leaf = peer.certificates.first ?? []
        }
    }

    private struct Place: Hashable {
        let host: String
        let port: UInt16
    }

    /// More are not remembered: they are asked about again.
    private static let limit = 1024

    private var verdicts: [Server: TLSVerdict] = [:]
    private var identities: [Place: TLSIdentity] = [:]

    func verdict(on peer: TLSPeer) -> TLSVerdict? { self.verdicts[Server(peer)] }

    mutating func remember(_ verdict: TLSVerdict, on peer: TLSPeer) {
        if self.verdicts.count >= Self.limit { self.verdicts.removeAll() }
        self.verdicts[Server(peer)] = verdict
    }

    func identity(for host: String, _ port: UInt16) -> TLSIdentity? {
        if self.identities.isEmpty { return nil }
        return self.identities[Place(host: host, port: port)]
    }

    mutating func remember(_ identity: TLSIdentity, for host: String, _ port: UInt16) {
        if self.identities.count >= Self.limit { self.identities.removeAll() }
        self.identities[Place(host: host, port: port)] = identity
    }

    /// Forgets a certificate, unless another one has taken its place.
    mutating func forget(_ identity: TLSIdentity, for host: String, _ port: UInt16) {
        let place = Place(host: host, port: port)
        guard self.identities[place] == identity else { return }
        self.identities[place] = nil
    }
}

/// Tells loads when the upstream begins to work for them: it measures each fetch that it began.
private final class CountingUpstream: Upstream {
    private let upstream: any Upstream

    init(_ upstream: any Upstream) {
        self.upstream = upstream
    }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        (request.observer as? HTTPLoad)?.fetchBegins()
        return self.upstream.fetch(request, body: body, receiver: receiver)
    }
}
