import LarderHTTP
import LarderPolicy
import NIOCore

/// What the writer of a response holds: released without `commit`, it abandons.
final class TieredSink: ObjectSink {
    private let core: TieredSinkCore

    init(_ core: TieredSinkCore) {
        self.core = core
    }

    deinit {
        self.core.abandon()
    }

    func write(_ piece: ByteBuffer) { self.core.write(piece) }

    func hurry() { self.core.hurry() }

    func commit(trailers: Fields) { self.core.commit(trailers: trailers) }

    func keep(completeLength: UInt64?) { self.core.keep(completeLength: completeLength) }

    func abandon() { self.core.abandon() }

    func reader(from offset: UInt64) -> (any BodySource)? { self.core.reader(from: offset) }
}
