import LarderHTTP
import NIOCore

/// What the connections of one event loop share.
///
/// Used on that loop alone.
final class LoopState {
    let counters: LoopCounters
    let shared: ProxyShared
    let recorder: any ExchangeRecorder
    /// Open connections, by identity: for draining, and to make room.
    var connections: [ObjectIdentifier: ClientConnection] = [:]
    let lender: PageLender
    /// No connection is to last longer than its request.
    private(set) var isDraining = false

    /// Requests that came before, and their answers.
    let known = KnownRequests<AnsweredRequest>()
    /// Requests that came before, and how they were understood: by the hashes that `known` makes.
    let understood = KnownRequests<UnderstoodRequest>()
    /// Gists of requests that came before, and the answers that all of them get.
    let alike = KnownRequests<AnsweredRequest>()
    /// The gist of the last request, to be written over.
    var gist = ByteBuffer()
    /// For answers that are sent in one piece.
    let joined = JoinedAnswer(
        capacity: KnownRequest.longestHead + ClientConnection.joinedBody)
    /// For answers whose content comes in pieces.
    let gathering = PieceGathering()
    /// Where the last answer was written, if it was sent at once: the next one is written over it.
    private var answerRoom = ByteBuffer()
    /// Made with the first connection, which knows the loop.
    private var mail: LoopMail?

    /// For tunnels that carry more than a little, and for large bodies.
    let pipes: SplicePipes
    private var nextExchange: UInt64
    private let stride: UInt64
    private var dateSecond: Int64 = .min
    private var dateText: [UInt8] = []

    /// - Parameters:
    ///   - index: the loop's place among `count`; exchange numbers interleave by it.
    init(shared: ProxyShared, counters: LoopCounters, index: Int, count: Int) {
        self.shared = shared
        self.counters = counters
        self.pipes = SplicePipes(
            most: SplicePipes.share(of: shared.configuration.tunnelPipes, loops: count))
        self.lender = PageLender(self.pipes)
        self.recorder = shared.log.recorder()
        self.nextExchange = UInt64(clamping: index) &+ 1
        self.stride = UInt64(clamping: max(1, count))
    }

    func mail(to eventLoop: any EventLoop) -> LoopMail {
        if let mail = self.mail { return mail }
        let mail = LoopMail(eventLoop)
        self.mail = mail
        return mail
    }

    /// Room for an answer, to be given back if nothing holds it any more.
    func takeAnswerRoom(_ size: Int) -> ByteBuffer {
        var room = self.answerRoom
        self.answerRoom = ByteBuffer()
        room.clear()
        room.reserveCapacity(size)
        return room
    }

    /// Gives it back; what is larger than nearly all answers is let go.
    func keepAnswerRoom(_ room: ByteBuffer) {
        if room.storageCapacity <= Self.keptRoom { self.answerRoom = room }
    }

    private static let keptRoom = 16_384

    func newExchange() -> UInt64 {
        defer { self.nextExchange &+= self.stride }
        return self.nextExchange
    }

    /// `Date`'s value for `now`; written anew once a second.
    func date(at now: Timestamp) -> [UInt8] {
        if now.seconds != self.dateSecond {
            self.dateSecond = now.seconds
            self.dateText = HTTPDate.bytes(now)
        }
        return self.dateText
    }

    /// Ends connections: those without a request at once, those that linger soon, and others after the
    /// one they work on.
    func drain() {
        self.isDraining = true
        for connection in self.connections.values { connection.drain() }
    }

    func cutAll() {
        for connection in self.connections.values { connection.cutForShutdown() }
    }

    /// Closes up to so many connections that wait for a further request, to make room.
    ///
    /// New ones stay: their first request is on its way.
    ///
    /// - Returns: how many there were.
    func closeIdle(limit: Int) -> Int {
        var left = limit
        for connection in self.connections.values where left > 0 && connection.isUsedAndIdle {
            connection.drain()
            left -= 1
        }
        return limit - left
    }
}

/// What all connections share: fixed once the server is made.
final class ProxyShared: Sendable {
    let configuration: ProxyConfiguration
    let access: any AccessPolicy
    let log: any ExchangeLog
    let clock: @Sendable () -> Timestamp
    let router: RequestRouter
    let headWriter: ResponseHeadWriter
    let waits: ConnectionWaits
    let connections: ConnectionCount
    /// For tunnels and upgrades that no parent leads to.
    let resolver: NameResolver

    init(
        configuration: ProxyConfiguration, access: any AccessPolicy, log: any ExchangeLog,
        connections: ConnectionCount, resolver: NameResolver = NameResolver(),
        clock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.access = access
        self.log = log
        self.connections = connections
        self.resolver = resolver
        self.clock = clock
        self.router = RequestRouter(configuration)
        self.waits = ConnectionWaits(configuration)
        self.headWriter = ResponseHeadWriter(pseudonym: configuration.pseudonym)
    }
}
