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
    private var sent: UInt64 = 0
    /// Whether libcurl was told to wait: the source has nothing, or the origin's leave is awaited.
    private(set) var isPending = false
    /// Whether it waits for the origin's leave (`Expect: 100-continue`, RFC 9110 §10.1.1).
    private(set) var isWithheld: Bool
    /// Whether all of it has been handed to libcurl.
    private(set) var isOver = false
    private(set) var trailers = Fields()

    init(
        _ source: any BodySource, length: BodyLength, isWithheld: Bool,
        wake: @escaping @Sendable () -> Void
    ) {
        self.source = source
        self.isWithheld = isWithheld
        self.length = if case .known(let length) = length { length } else { nil }
        source.attach(wake: wake)
    }

    /// Copies the next bytes into libcurl's buffer.
    func fill(_ target: UnsafeMutableRawBufferPointer) -> Fill {
        self.isPending = self.isWithheld
        if self.isWithheld { return .pause }
        while self.piece.readableBytes == 0 {
            switch self.source.next() {
            case .piece(let piece):
                self.piece = piece
            case .pending:
                self.isPending = true
                return .pause
            case .end(let trailers):
                self.trailers = trailers
                return self.end()
            case .failed(let failure):
                return .abort(Self.failure(failure))
            }
        }
        return unsafe self.copy(to: target)
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
        let (sum, overflow) = self.sent.addingReportingOverflow(UInt64(count))
        if overflow || sum > self.length ?? .max {
            return .abort(Self.wrongLength("longer"))
        }
        unsafe self.piece.readWithUnsafeReadableBytes { bytes in
            unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
            return count
        }
        self.sent = sum
        // libcurl does not ask again once it has as much as was announced.
        if sum == self.length { self.isOver = true }
        return .bytes(count)
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
            .requestBodyFailed, party: .client, detail: "the content is \(word) than announced")
    }

    private static func failure(_ failure: BodyFailure) -> UpstreamFailure {
        switch failure {
        case .client(let detail):
            UpstreamFailure(.requestBodyFailed, party: .client, detail: detail)
        case .upstream(let failure):
            failure
        case .store(let detail):
            UpstreamFailure(.requestBodyFailed, party: .larder, detail: detail)
        case .cancelled:
            UpstreamFailure(
                .requestBodyFailed, party: .client, detail: "the content was cancelled")
        }
    }
}
