/// What a store remembers of itself, in one small value of `meta`.
///
/// Numbers and the totals that would take a walk to find; written with each batch.
struct StoreMeta: Sendable, Equatable {
    /// Of the layout of the whole file: another one is set aside, never misread.
    static let format: UInt64 = 1
    static let key = Array("state".utf8)
    private static let size = 80

    /// Seeds the hash of cache keys.
    var seed: UInt64
    /// Below it no id is free; ids are never used again.
    var nextID: UInt64 = 1
    var nextSequence: UInt64 = 1
    var bodyBytes: UInt64 = 0
    var evictions: UInt64 = 0
    var hits: UInt64 = 0
    var damaged: UInt64 = 0
    var failures: UInt64 = 0

    init(seed: UInt64) {
        self.seed = seed
    }

    /// nil where the value is damaged or of another format.
    init?(_ bytes: Span<UInt8>) {
        guard bytes.count == Self.size, bytes.littleEndian(8) == Self.format,
            let sum: UInt32 = bytes.littleEndian(0), Checksum.record(bytes.extracting(8...)) == sum,
            let seed: UInt64 = bytes.littleEndian(16)
        else { return nil }
        self.seed = seed
        self.nextID = bytes.littleEndian(24) ?? 1
        self.nextSequence = bytes.littleEndian(32) ?? 1
        self.bodyBytes = bytes.littleEndian(40) ?? 0
        self.evictions = bytes.littleEndian(48) ?? 0
        self.hits = bytes.littleEndian(56) ?? 0
        self.damaged = bytes.littleEndian(64) ?? 0
        self.failures = bytes.littleEndian(72) ?? 0
    }

    func encoded() -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(Self.size)
        out.append(littleEndian: UInt64(0))
        for number in [
            Self.format, self.seed, self.nextID, self.nextSequence, self.bodyBytes,
            self.evictions, self.hits, self.damaged, self.failures,
        ] {
            out.append(littleEndian: number)
        }
        out.replace(littleEndian: Checksum.record(out.span.extracting(8...)), at: 0)
        return out
    }
}
