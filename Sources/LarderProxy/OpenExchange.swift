import LarderCredentials
import LarderHTTP
import LarderSession
import NIOCore

/// The request that a connection works on, with all that was promised about it.
///
/// Confined to its loop. A class, so that a connection between two requests holds nothing of it, and
/// what is asked of one part of it touches no other.
final class OpenExchange {
    /// Its number on the connection (`ClientConnectionState`).
    let number: UInt64
    /// For the log; unique in the process.
    let id: UInt64
    /// Without credentials for the proxy.
    let head: RequestHead?
    /// The credentials for the proxy, while they are judged.
    var credentials: Secret?
    let began: NIODeadline
    let beganAt: Timestamp
    var requestBodyBytes: UInt64 = 0
    var handle: (any Exchange)?
    var client: ConnectionClient?
    /// Whose request it is, where its client has authenticated itself.
    var user: String?
    /// The session that was chosen for it; nil before, and where the proxy answers by itself.
    var session: (any ExchangeSession)?
    var sessionName = ""

    var framing: ResponseFraming?
    var source: (any BodySource)?
    var status: StatusCode?
    var headBytes: UInt64 = 0
    var bodyBytes: UInt64 = 0
    var responseFields = Fields()
    var cacheStatus: CacheStatus?
    var acts: [SessionAct] = []
    var origin = NextHop()
    /// Why Larder answered by itself, or the answer broke off, where that was a failure.
    var errorType: ProxyErrorType?
    /// The one that did not, where that is known.
    var rule: String?
    /// False where the connection ends with this exchange whatever its framing.
    var mayPersist = true

    init(number: UInt64, id: UInt64, head: RequestHead?, began: NIODeadline, beganAt: Timestamp) {
        self.number = number
        self.id = id
        self.head = head
        self.began = began
        self.beganAt = beganAt
    }

    var method: Method { self.head?.method ?? .get }
    var version: HTTPVersion { self.head?.version ?? .http11 }

    /// What decides how its answer is framed.
    var asked: (method: Method, version: HTTPVersion, mayPersist: Bool) {
        (self.method, self.version, self.mayPersist)
    }

    /// Notes what its client gets.
    func isAnswered(with answer: Answer, headBytes: Int, isOwn: Bool) {
        self.status = answer.head.status
        self.responseFields = answer.head.fields
        self.headBytes = UInt64(clamping: headBytes)
        if !isOwn {
            self.cacheStatus = answer.cacheStatus
            self.acts = answer.acts
        }
        if !answer.origin.address.isEmpty { self.origin = answer.origin }
    }
}

/// Request content on its way from the socket to its reader.
struct Upload {
    enum Decoder {
        case length(remaining: UInt64)
        case chunked(ChunkedDecoder)
    }

    var decoder: Decoder
    /// Nil where nobody reads it.
    var feed: BodyFeed?
    var received: UInt64 = 0
    /// Bytes thrown away because nobody wanted them.
    var discarded: UInt64 = 0
    /// The feed is full; its reader will say when to go on.
    var isPaused = false
    /// The client waits for `100 Continue` before it sends.
    var clientWaits: Bool

    /// - Parameter head: the request that the content belongs to.
    init(of head: RequestHead, limits: ChunkLimits, feed: BodyFeed?, clientWaits: Bool) {
        if case .known(let bytes) = head.bodyLength {
            self.decoder = .length(remaining: bytes)
        } else {
            self.decoder = .chunked(
                ChunkedDecoder(limits: limits, named: HopByHop.namedFields(head.fields)))
        }
        self.feed = feed
        self.clientWaits = clientWaits
    }

    mutating func decode(_ buffer: inout ByteBuffer) throws(HeadError) -> ChunkedDecoder.Step {
        switch self.decoder {
        case .length(let remaining):
            if remaining == 0 { return .end(trailers: Fields()) }
            let count = Int(clamping: min(remaining, UInt64(clamping: buffer.readableBytes)))
            guard count > 0, let piece = buffer.readSlice(length: count) else { return .needMore }
            self.decoder = .length(remaining: remaining - UInt64(clamping: count))
            return .piece(piece)
        case .chunked(var decoder):
            defer { self.decoder = .chunked(decoder) }
            return try decoder.decode(&buffer)
        }
    }

    /// Whether it is worth taking the rest of the content, unread, to keep the connection.
    func isSmall(below limit: ByteCount) -> Bool {
        // A client told neither to send nor not to send may do either: what comes next on the
        // connection could be content or a request (RFC 9110 §10.1.1).
        guard !self.clientWaits, self.discarded <= limit.bytes else { return false }
        if case .length(let remaining) = self.decoder { return remaining <= limit.bytes }
        return true
    }
}
