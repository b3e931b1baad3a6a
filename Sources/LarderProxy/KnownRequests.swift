import Glibc
import LarderHTTP
import LarderSession
import NIOCore

/// A request that came before, byte for byte the same or of the same gist, and the answer that it got
/// from the store.
///
/// Confined to its loop.
final class KnownRequest {
    let bytes: ByteBuffer
    let hash: UInt64
    /// The bytes are the gist of it (``RequestGist``).
    let isGist: Bool
    let method: Method
    /// The host of the target, for what is asked with each request.
    let host: String
    let port: UInt16
    let standing: StandingAnswer
    /// What the log is told of it each time.
    let pattern: EntryPattern
    private(set) var answerHead: RepeatedHead
    /// Who was last let through with it, and by which access rules.
    ///
    /// Clients without a user: of those who have one, no request is known.
    var admitted: (client: ClientPlace, generation: UInt64)?
    /// What it held in memory when it was made, about: its bytes, the head that they are, and a line of
    /// the log, which says again what is long in them.
    let cost: Int

    /// - Parameter entry: what the log is told of the answer that it got.
    init(
        bytes: ByteBuffer, hash: UInt64, isGist: Bool, method: Method, uri: TargetURI,
        standing: StandingAnswer, entry: ExchangeEntry, answerHead: RepeatedHead
    ) {
        self.bytes = bytes
        self.hash = hash
        self.isGist = isGist
        self.method = method
        self.pattern = EntryPattern(entry)
        self.host = uri.host
        self.port = uri.port
        self.standing = standing
        self.answerHead = answerHead
        self.cost =
            1_536 + bytes.storageCapacity + 2 * bytes.readableBytes + answerHead.capacity
            + entry.responseFields.bytes.count + standing.heldBytes
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

/// The requests that one loop has seen more than once and that the store answers.
///
/// Programs ask for the same things in the same words: then parsing, routing and deciding come to
/// what they came to before. The bytes as a whole are the key; what depends on more than them (the
/// client, the rules, the store, the time) is asked each time. Bounded in entries and bytes: each
/// request has two places where it may stand, and takes that of another when both are taken.
///
/// Confined to its loop.
final class KnownRequests {
    /// A longer head is parsed each time.
    static let longestHead = 4_096
    private static let places = 8_192
    private static let mask = UInt64(KnownRequests.places - 1)
    static let byteLimit = 8 << 20

    // These are taken out to be changed and put back, too.
    /// Empty until there is something to keep.
    private var entries: [KnownRequest?] = []
    private(set) var bytes = 0
    /// Hashes of requests that were seen once: what never comes again is not kept.
    private var seen: [UInt64] = []
    private let seed: UInt64

    init(seed: UInt64 = .random(in: 0 ... .max)) {
        self.seed = seed
    }

    /// Eight bytes at a time: a hundred take a tenth of the time that `Hasher` takes.
    ///
    /// It finds a place only; requests are the same when their bytes are. By the seed it differs from one
    /// process to the next, so that strangers cannot aim at a place.
    private static func hash(_ bytes: RawSpan, seed: UInt64) -> UInt64 {
        var hash = seed ^ UInt64(truncatingIfNeeded: bytes.byteCount)
        var offset = 0
        while offset &+ 8 <= bytes.byteCount {
            let word = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
            hash = Self.mixed(hash ^ word)
            offset &+= 8
        }
        var rest: UInt64 = 0
        while offset < bytes.byteCount {
            rest =
                rest << 8
                | UInt64(unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
            offset &+= 1
        }
        return Self.mixed(hash ^ rest)
    }

    private static func mixed(_ word: UInt64) -> UInt64 {
        let product = word.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low
    }

    /// The request that these bytes are, if it is known, and their hash.
    func find(_ bytes: ByteBuffer) -> (request: KnownRequest?, hash: UInt64) {
        unsafe bytes.withUnsafeReadableBytes { bytes in
            let hash = unsafe Self.hash(bytes.bytes, seed: self.seed)
            return (unsafe self.find(bytes, hash: hash), hash)
        }
    }

    /// The request with this hash that these bytes are, if it is known.
    func find(_ bytes: UnsafeRawBufferPointer, hash: UInt64) -> KnownRequest? {
        let entries = self.entries
        guard !entries.isEmpty else { return nil }
        let places = Self.places(of: hash)
        for index in places.indices {
            if let entry = entries[places[index]], entry.hash == hash,
                unsafe entry.isSaid(by: bytes)
            {
                return entry
            }
        }
        return nil
    }

    private static func places(of hash: UInt64) -> [2 of Int] {
        [Int(hash & Self.mask), Int(hash >> 32 & Self.mask)]
    }

    /// Whether a request with this hash was seen before; it is from now on.
    func wasSeen(_ hash: UInt64) -> Bool {
        var seen = self.seen
        self.seen = []
        if seen.isEmpty { seen = Array(repeating: 0, count: Self.places) }
        let place = Int(hash & Self.mask)
        let last = seen[place]
        seen[place] = hash
        self.seen = seen
        return last == hash
    }

    /// Whether a request with the same first line was seen before; it is from now on.
    func wasRequestLineSeen(_ bytes: ByteBuffer) -> Bool {
        let bytes = bytes.readableBytesUInt8Span
        guard let length = RequestGist.requestLineLength(bytes) else { return false }
        let line = bytes.extracting(0..<length)
        let hash = unsafe line.withUnsafeBytes { unsafe Self.hash($0.bytes, seed: self.seed) }
        return self.wasSeen(hash)
    }

    func keep(_ request: KnownRequest) {
        if self.entries.isEmpty { self.entries = Array(repeating: nil, count: Self.places) }
        let places = Self.places(of: request.hash)
        var place = places[0]
        for other in places.indices {
            guard let entry = self.entries[places[other]] else {
                place = places[other]
                continue
            }
            // Its former self.
            if entry.hash == request.hash {
                place = places[other]
                break
            }
        }
        self.bytes += request.cost - (self.entries[place]?.cost ?? 0)
        self.put(request, at: place)
        if self.bytes > Self.byteLimit { self.removeAll() }
    }

    func forget(_ request: KnownRequest) {
        guard !self.entries.isEmpty else { return }
        let places = Self.places(of: request.hash)
        for index in places.indices where self.entries[places[index]] === request {
            self.put(nil, at: places[index])
            self.bytes -= request.cost
        }
    }

    private func put(_ request: KnownRequest?, at place: Int) {
        var entries = exchange(&self.entries, with: [])
        entries[place] = request
        self.entries = entries
    }

    func removeAll() {
        self.entries = []
        self.bytes = 0
    }
}
