import LarderHTTP
import LarderPolicy
import NIOCore

/// The responses that are stored, each known by its number alone.
struct Responses: Sendable {
    /// Twice as long as a piece, so that a piece can begin at any place in its first half.
    private let material: ByteBuffer
    static let pieceSize: UInt64 = 65_536

    init() {
        var buffer = ByteBufferAllocator().buffer(capacity: Int(Self.pieceSize) * 2)
        for i in 0..<Self.pieceSize / 4 { buffer.writeInteger(SizePattern.mix(i)) }
        self.material = buffer
    }

    func key(_ number: UInt64) -> CacheKey {
        // As `CacheKey(method:uri:)` makes them of what the proxy is asked for.
        CacheKey(bytes: Array(" GET \(Self.uri(number))".utf8))
    }

    static func uri(_ number: UInt64) -> String {
        "http://bench\(number % 997).test/store/objects/\(number)?v=1"
    }

    /// About five hundred bytes of fields, fresh for a year.
    func head(_ number: UInt64, length: UInt64, at time: Timestamp) -> StoredHead {
        var fields = Fields()
        fields.append("Date", HTTPDate.format(time))
        fields.append("Content-Type", "application/octet-stream")
        fields.append("Content-Length", "\(length)")
        fields.append("Connection", "keep-alive")
        fields.append("Cache-Control", "public, max-age=31536000, immutable")
        fields.append("ETag", "\"\(String(SizePattern.mix(number), radix: 16))\"")
        fields.append("Last-Modified", "Tue, 04 Feb 2025 10:21:07 GMT")
        fields.append("Accept-Ranges", "bytes")
        fields.append("Server", "bench/1.0")
        fields.append("X-Served-By", "cache-fra-eddf8230043-FRA, cache-ams21051-AMS")
        fields.append("X-Cache-Hits", "12, 1")
        fields.append("X-Timer", "S1738664467.121338,VS0,VE1")
        fields.append("Strict-Transport-Security", "max-age=31536000; includeSubDomains; preload")
        fields.append("X-Content-Type-Options", "nosniff")
        return StoredHead(
            status: StatusCode(200), reason: "OK", fields: fields, requestTime: time,
            responseTime: time)
    }

    /// The bytes of a body from `offset`, a multiple of the size of a piece, on.
    func piece(_ number: UInt64, at offset: UInt64, length: UInt64) -> ByteBuffer {
        let count = min(Self.pieceSize, length - min(length, offset))
        let place = (number &* 131 &+ offset / Self.pieceSize &* 7) % Self.pieceSize
        return self.material.getSlice(at: Int(place), length: Int(count)) ?? ByteBuffer()
    }

    /// Whether `bytes` are what the body has from `offset` on.
    func matches(_ bytes: ByteBuffer, _ number: UInt64, at offset: UInt64, length: UInt64) -> Bool {
        var rest = bytes
        var position = offset
        while rest.readableBytes > 0 {
            let start = position / Self.pieceSize * Self.pieceSize
            let piece = self.piece(number, at: start, length: length)
            let skip = Int(position - start)
            let count = min(rest.readableBytes, piece.readableBytes - skip)
            guard count > 0, let got = rest.readSlice(length: count),
                got == piece.getSlice(at: piece.readerIndex + skip, length: count)
            else { return false }
            position += UInt64(count)
        }
        return true
    }
}
