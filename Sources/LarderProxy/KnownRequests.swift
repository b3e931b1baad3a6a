import LarderHTTP
import NIOCore

/// The requests that one loop has seen more than once.
///
/// Programs ask for the same things in the same words: then parsing and routing come to what they
/// came to before, and deciding does, too, where the store answers. The bytes as a whole are the key;
/// what depends on more than them (the client, the rules, the store, the time) is asked each time.
/// Bounded in entries and bytes: each request has two places where it may stand, and takes that of
/// another when both are taken.
///
/// Confined to its loop.
final class KnownRequests<Known: KnownRequest> {
    private static var places: Int { 8_192 }
    private static var mask: UInt64 { UInt64(self.places - 1) }
    static var byteLimit: Int { 8 << 20 }

    // These are taken out to be changed and put back, too.
    /// Empty until there is something to keep.
    private var entries: [Known?] = []
    private(set) var bytes = 0
    /// Hashes of requests that were seen once: what never comes again is not kept.
    private var seen: [UInt64] = []
    private let seed = UInt64.random(in: 0 ... .max)

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
    func find(_ bytes: ByteBuffer) -> (request: Known?, hash: UInt64) {
        unsafe bytes.withUnsafeReadableBytes { bytes in
            let hash = unsafe Self.hash(bytes.bytes, seed: self.seed)
            return (unsafe self.find(bytes, hash: hash), hash)
        }
    }

    /// The request with this hash that these bytes are, if it is known.
    func find(_ bytes: ByteBuffer, hash: UInt64) -> Known? {
        unsafe bytes.withUnsafeReadableBytes { unsafe self.find($0, hash: hash) }
    }

    private func find(_ bytes: UnsafeRawBufferPointer, hash: UInt64) -> Known? {
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

    func keep(_ request: Known) {
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

    func forget(_ request: Known) {
        guard !self.entries.isEmpty else { return }
        let places = Self.places(of: request.hash)
        for index in places.indices where self.entries[places[index]] === request {
            self.put(nil, at: places[index])
            self.bytes -= request.cost
        }
    }

    private func put(_ request: Known?, at place: Int) {
        var entries = exchange(&self.entries, with: [])
        entries[place] = request
        self.entries = entries
    }

    func removeAll() {
        self.entries = []
        self.bytes = 0
    }
}
