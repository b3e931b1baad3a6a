import LarderHTTP
import NIOCore

/// The content of a request on its way out: pulled from its source, counted, handed to libcurl.
///
/// Not `Sendable`: belongs to the loop of its transfer.
final class RequestContent {
    /// What libcurl's read callback is told.
    enum Fill {
        case bytes(Int)
        /// The source has nothing; it will say when it has.
        case pause
        case end
        case abort(UpstreamFailure)
    }

    /// Announced beforehand, where it was.
    let length: UInt64?
    private let source: any BodySource
    private var piece = ByteBuffer()
    private(set) var sent: UInt64 = 0
    /// Whether libcurl was told to wait: the source has nothing, or the origin's leave is awaited.
    private(set) var isPending = false
    /// Whether it waits for the origin's leave (`Expect: 100-continue`, RFC 9110 §10.1.1).
    private(set) var isWithheld: Bool
    /// Whether all of it has been handed to libcurl.
    private(set) var isOver = false
    private(set) var trailers = Fields()
    /// Whether it may be sent a second time.
    let isKept: Bool
    /// What was handed out, to be handed out again; nil where that is no longer all of it.
    private var kept: ByteBuffer?
    private var sourceHasEnded = false

    /// What is kept at most, for a request that must be sent twice.
    static let keptLimit = 65_536

    static func canKeep(_ length: BodyLength) -> Bool {
        switch length {
        case .none: true
        case .known(let count): count <= UInt64(Self.keptLimit)
        case .unknown: false
        }
    }

    /// - Parameter isKept: it may have to be sent a second time, which works up to `keptLimit`.
    init(
        _ source: any BodySource, length: BodyLength, isWithheld: Bool, isKept: Bool = false,
        wake: @escaping @Sendable () -> Void
    ) {
        self.source = source
        self.isWithheld = isWithheld
        self.isKept = isKept
        self.kept = isKept ? ByteBuffer() : nil
        self.length = if case .known(let length) = length { length } else { nil }
        source.attach(wake: wake)
    }

    /// Copies the next bytes into libcurl's buffer.
    func fill(_ target: UnsafeMutableRawBufferPointer) -> Fill {
        self.isPending = self.isWithheld
        if self.isWithheld { return .pause }
        while self.piece.readableBytes == 0 {
            if self.sourceHasEnded { return self.end() }
            switch self.source.next() {
            case .piece(let piece):
                // libcurl 8.14 asks for no more than was announced, and would not come to the excess.
                let (sum, overflow) = self.sent.addingReportingOverflow(
                    UInt64(piece.readableBytes))
                if overflow || sum > self.length ?? .max {
                    return .abort(Self.wrongLength("longer"))
                }
                self.piece = piece
            case .pending:
                self.isPending = true
                return .pause
            case .end(let trailers):
                self.trailers = trailers
                self.sourceHasEnded = true
                return self.end()
            case .failed(let failure):
                return .abort(Self.failure(failure))
            }
        }
        return unsafe self.copy(to: target)
    }

    /// Begins anew; false where what was handed out is gone.
    func rewind() -> Bool {
        guard self.sent > 0 else { return true }
        guard var again = self.kept else { return false }
        again.writeBuffer(&self.piece)
        self.piece = again
        self.kept = ByteBuffer()
        self.sent = 0
        self.isOver = false
        return true
    }

    /// The origin gave leave, or has been waited for long enough.
    func release() {
        self.isWithheld = false
    }

    /// Says to the source that nobody reads on.
    func cancel() {
        self.source.cancel()
    }

    private func copy(to target: UnsafeMutableRawBufferPointer) -> Fill {
        let count = Swift.min(self.piece.readableBytes, target.count)
        if self.kept != nil { self.keep(count) }
        unsafe self.piece.readWithUnsafeReadableBytes { bytes in
            unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
            return count
        }
        // The sum is within what was announced, as the piece was.
        self.sent &+= UInt64(count)
        // libcurl does not ask again once it has as much as was announced.
        if self.sent == self.length { self.isOver = true }
        return .bytes(count)
    }

    private func keep(_ count: Int) {
        guard let next = self.piece.getSlice(at: self.piece.readerIndex, length: count),
            self.kept.map({ $0.readableBytes + count <= Self.keptLimit }) == true
        else {
            self.kept = nil
            return
        }
        self.kept?.writeImmutableBuffer(next)
    }

    private func end() -> Fill {
        guard self.length == nil || self.length == self.sent else {
            return .abort(Self.wrongLength("shorter"))
        }
        self.isOver = true
        return .end
    }

    private static func wrongLength(_ word: String) -> UpstreamFailure {
        UpstreamFailure(
            .requestBodyFailed, party: .client, cause: .requestContent,
            detail: "the content is \(word) than announced")
    }

    private static func failure(_ failure: BodyFailure) -> UpstreamFailure {
        switch failure {
        case .client(let detail):
            UpstreamFailure(
                .requestBodyFailed, party: .client, cause: .requestContent, detail: detail)
        case .upstream(let failure):
            failure
        case .store(let detail):
            UpstreamFailure(
                .requestBodyFailed, party: .larder, cause: .requestContent, detail: detail)
        case .cancelled:
            UpstreamFailure(
                .requestBodyFailed, party: .client, cause: .requestContent,
                detail: "the content was cancelled")
        }
    }
}
