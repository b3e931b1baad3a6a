import LarderStore

/// What a store remembers of itself, in one small value of `meta`.
///
/// Numbers and the totals that would take a walk to find; written with each batch.
struct StoreMeta: Sendable, Equatable {
    /// The number of the layout of the whole file: another one is set aside, never misread.
    static let format: UInt64 = 2
    /// The one before, which is taken over as it lies; see ``Schema``.
    static let formerFormat: UInt64 = 1
    static let key = Array("state".utf8)
    private static let formerSize = 80
    private static let size = 112
    /// No file gets so far: one that says so is damaged, whatever its checksum says.
    private static let idLimit: UInt64 = 1 << 62

    /// The format of the file that it was read from.
    private(set) var format = Self.format

    /// Seeds the hash of cache keys.
    var seed: UInt64
    /// Below it no id is free; no id is used again under which anything was written.
    var nextID: UInt64 = 1
    var nextSequence: UInt64 = 1
    var bodyBytes: UInt64 = 0
    var evictions: UInt64 = 0
    var hits: UInt64 = 0
    var damaged: UInt64 = 0
    var failures: UInt64 = 0
    /// What the entries of the small queue count, and of the main one.
    var smallBytes: UInt64 = 0
    var mainBytes: UInt64 = 0
    /// The clock of the ghosts: what was ever evicted from the small queue.
    var ghostClock: UInt64 = 0

    init(seed: UInt64) {
        self.seed = seed
    }

    /// nil where the value is damaged or of another format; counters may have any value.
    init?(_ bytes: Span<UInt8>) {
        guard let format: UInt64 = bytes.littleEndian(8),
            (format == Self.format && bytes.count == Self.size)
                || (format == Self.formerFormat && bytes.count == Self.formerSize),
            let sum: UInt32 = bytes.littleEndian(0), Checksum.record(bytes.extracting(8...)) == sum,
            let seed: UInt64 = bytes.littleEndian(16), let nextID: UInt64 = bytes.littleEndian(24),
            (1..<Self.idLimit).contains(nextID)
        else { return nil }
        self.format = format
        self.seed = seed
        self.nextID = nextID
        self.nextSequence = bytes.littleEndian(32) ?? 1
        self.bodyBytes = bytes.littleEndian(40) ?? 0
        self.evictions = bytes.littleEndian(48) ?? 0
        self.hits = bytes.littleEndian(56) ?? 0
        self.damaged = bytes.littleEndian(64) ?? 0
        self.failures = bytes.littleEndian(72) ?? 0
        self.smallBytes = bytes.littleEndian(80) ?? 0
        self.mainBytes = bytes.littleEndian(88) ?? 0
        self.ghostClock = bytes.littleEndian(96) ?? 0
    }

    /// Takes over a file of the former format: all of its entries lie in what is now the small queue.
    mutating func migrate(entries: UInt64) {
        self.format = Self.format
        let (overhead, overflow) = entries.multipliedReportingOverflow(
            by: ObjectRecord.overhead)
        self.smallBytes = self.bodyBytes &+ (overflow ? 0 : overhead)
        self.mainBytes = 0
    }

    /// What a queue counts, to be read and changed.
    subscript(queue: EvictionRules.Queue) -> UInt64 {
        get {
            switch queue {
            case .small: self.smallBytes
            case .main: self.mainBytes
            }
        }
        set {
            switch queue {
            case .small: self.smallBytes = newValue
            case .main: self.mainBytes = newValue
            }
        }
    }

    /// Whether it says what is worth a commit of its own beside `other`.
    ///
    /// What befell the store is not, and each failure counts; nor is that ids were given out, as to each
    /// body that begins. Those go along with what else is written, and what is stored under an id is
    /// such: one of which nothing was written may be given out again by the next process.
    func saysMore(than other: StoreMeta) -> Bool {
        var counted = self
        counted.nextID = other.nextID
        counted.damaged = other.damaged
        counted.failures = other.failures
        return counted != other
    }

    func encoded() -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(Self.size)
        out.append(littleEndian: UInt64(0))
        for number in [
            Self.format, self.seed, self.nextID, self.nextSequence, self.bodyBytes,
            self.evictions, self.hits, self.damaged, self.failures, self.smallBytes,
            self.mainBytes, self.ghostClock, 0,
        ] {
            out.append(littleEndian: number)
        }
        out.replace(littleEndian: Checksum.record(out.span.extracting(8...)), at: 0)
        return out
    }
}
