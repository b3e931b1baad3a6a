import Glibc
import LarderHTTP
import LarderPolicy
import NIOCore
import SeededNumbers

/// What every response of a stress test must be: all of it follows from its URL and its version.
enum Content {
    /// The noise that bodies are cut from, repeated for long ones.
    ///
    /// A prime that is no multiple of a segment, so that a piece in the wrong place is seen.
    private static let period = 1_048_573
    private static let noise: [UInt8] = {
        var random = SplitMix64(seed: 42)
        var bytes = [UInt8](repeating: 0, count: Self.period)
        unsafe bytes.withUnsafeMutableBytes { bytes in
            for place in stride(from: 0, to: Self.period - 7, by: 8) {
                unsafe bytes.storeBytes(of: random.next(), toByteOffset: place, as: UInt64.self)
            }
        }
        return bytes
    }()

    private static func mix(_ key: Int, _ version: UInt64) -> UInt64 {
        var random = SplitMix64(
            seed: UInt64(clamping: key) &* 0x1_0000_0001 ^ version &* 0xD6E8_FEB8_6659_FD93)
        return random.next()
    }

    /// How long the body is: nothing to three MiB, most of it small.
    static func length(_ key: Int, _ version: UInt64, largest: UInt64 = 3 << 20) -> UInt64 {
        var random = SplitMix64(seed: Self.mix(key, version))
        let bounds: ClosedRange<UInt64> =
            switch random.next() % 100 {
            case 0..<5: 0...0
            case 5..<60: 1...4096
            case 60..<88: 4097...100_000
            case 88..<98: 100_001...600_000
            default: 600_001...(3 << 20)
            }
        return min(largest, UInt64.random(in: bounds, using: &random))
    }

    /// Calls `body` with where the bytes of `range` lie in the noise, piece by piece.
    private static func forEachPiece(
        _ key: Int, _ version: UInt64, _ range: Range<UInt64>, _ body: (Range<Int>) -> Bool
    ) {
        let shift = Self.mix(key, version) % UInt64(Self.period)
        var position = range.lowerBound
        while position < range.upperBound {
            let start = Int((shift + position) % UInt64(Self.period))
            let count = min(Int(range.upperBound - position), Self.period - start)
            guard body(start..<start + count) else { return }
            position += UInt64(count)
        }
    }

    /// The bytes of a body.
    static func bytes(_ key: Int, _ version: UInt64, _ range: Range<UInt64>) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(
            capacity: Int(range.upperBound - range.lowerBound))
        Self.forEachPiece(key, version, range) { piece in
            buffer.writeBytes(Self.noise[piece])
            return true
        }
        return buffer
    }

    /// Whether these are the bytes of the body from `offset` on.
    static func matches(
        _ bytes: UnsafeRawBufferPointer, _ key: Int, _ version: UInt64, from offset: UInt64
    ) -> Bool {
        var isRight = true
        var done = 0
        Self.forEachPiece(key, version, offset..<offset + UInt64(bytes.count)) { piece in
            unsafe Self.noise.withUnsafeBytes { noise in
                guard let a = bytes.baseAddress, let b = noise.baseAddress else {
                    return
                }
                isRight = unsafe memcmp(a + done, b + piece.lowerBound, piece.count) == 0
            }
            done += piece.count
            return isRight
        }
        return isRight
    }

    static func matches(
        _ piece: ByteBuffer, _ key: Int, _ version: UInt64, from offset: UInt64
    ) -> Bool {
        unsafe piece.withUnsafeReadableBytes {
            unsafe Self.matches($0, key, version, from: offset)
        }
    }

    // MARK: Names and heads

    static func key(_ key: Int) -> CacheKey {
        CacheKey(
            method: .get,
            uri: TargetURI(scheme: .http, host: "stress.example", pathAndQuery: "/\(key)"))
    }

    /// The number in a key; nil where it is none of ours.
    static func number(of key: CacheKey) -> Int? {
        let text = String(decoding: key.bytes, as: UTF8.self)
        return text.hasPrefix(" GET http://stress.example/")
            ? Int(text.dropFirst(" GET http://stress.example/".count)) : nil
    }

    static func head(_ key: Int, _ entry: Entry) -> StoredHead {
        let time = Timestamp(seconds: 1_700_000_000 + Int64(clamping: entry.version % 1_000_000))
        // Some heads are long.
        let filling = String(repeating: "x", count: Int(entry.version % 7) * 100)
        var head = StoredHead(
            status: .ok, reason: "OK",
            fields: [
                "ETag": "\"\(key)-\(entry.version)\"", "X-Freshened": "\(entry.freshened)",
                "X-Filling": filling,
            ],
            requestTime: time, responseTime: time + .milliseconds(20),
            isInvalidated: entry.isInvalid)
        head.extent = entry.ranges.map {
            StoredExtent(completeLength: Content.length(key, entry.version), ranges: $0)
        }
        return head
    }
}

extension SplitMix64 {
    mutating func below(_ bound: UInt64) -> UInt64 { self.next() % bound }
}
