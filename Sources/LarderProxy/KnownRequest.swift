import Glibc
import LarderHTTP
import LarderSession
import NIOCore

/// A request that came before, byte for byte the same or of the same gist.
///
/// Confined to its loop.
class KnownRequest {
    /// A longer head is parsed each time.
    static let longestHead = 4_096

    let bytes: ByteBuffer
    let hash: UInt64
    let method: Method
    /// The host of the target, for what is asked with each request.
    let host: String
    let port: UInt16
    /// Who was last let through with it, and by which access rules.
    ///
    /// Clients without a user: of those who have one, no request is known.
    var admitted: (client: ClientPlace, generation: UInt64)?
    /// What it held in memory when it was made, about.
    let cost: Int

    /// - Parameter cost: of what the kind of request holds beside the bytes.
    fileprivate init(
        bytes: ByteBuffer, hash: UInt64, method: Method, uri: TargetURI, cost: Int
    ) {
        self.bytes = bytes
        self.hash = hash
        self.method = method
        self.host = uri.host
        self.port = uri.port
        self.cost = 1_536 + bytes.storageCapacity + cost
    }

    /// Whether these are its bytes.
    func isSaid(by bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe self.bytes.withUnsafeReadableBytes { own in
            guard own.count == bytes.count, let place = own.baseAddress,
                let other = bytes.baseAddress
            else { return false }
            return unsafe memcmp(place, other, own.count) == 0
        }
    }
}

/// A known request that the store answers, and the answer that it got.
final class AnsweredRequest: KnownRequest {
    /// The bytes are the gist of it (``RequestGist``).
    let isGist: Bool
    let standing: StandingAnswer
    /// What the log is told of it each time.
    let pattern: EntryPattern
    private(set) var answerHead: RepeatedHead

    /// Its cost is that of its bytes, of the head that they are, and of a line of the log, which says
    /// again what is long in them.
    ///
    /// - Parameter entry: what the log is told of the answer that it got.
    init(
        bytes: ByteBuffer, hash: UInt64, isGist: Bool, method: Method, uri: TargetURI,
        standing: StandingAnswer, entry: ExchangeEntry, answerHead: RepeatedHead
    ) {
        self.isGist = isGist
        self.standing = standing
        self.pattern = EntryPattern(entry)
        self.answerHead = answerHead
        super.init(
            bytes: bytes, hash: hash, method: method, uri: uri,
            cost: 2 * bytes.readableBytes + answerHead.capacity
                + entry.responseFields.bytes.count + standing.heldBytes)
    }

    /// The head of its answer, as it says these.
    func head(age: Int64, ttl: Int64) -> ByteBuffer {
        // Within one second, which is most of the time, it does already.
        if !self.answerHead.says(age: age, ttl: ttl) {
            // A copy: lent to the function, the property would be checked at each use of it.
            var head = self.answerHead
            head.say(age: age, ttl: ttl)
            self.answerHead = head
        }
        return self.answerHead.bytes
    }
}

/// A known request that the store did not answer, and how it was understood.
final class UnderstoodRequest: KnownRequest {
    let head: RequestHead
    /// What travels on, by the head alone.
    let request: Request

    init(bytes: ByteBuffer, hash: UInt64, head: RequestHead, request: Request) {
        self.head = head
        self.request = request
        super.init(
            bytes: bytes, hash: hash, method: request.method, uri: request.uri,
            cost: head.fields.heldBytes + request.fields.heldBytes
                + request.method.rawValue.utf8.count + request.uri.pathAndQuery.utf8.count)
    }
}
