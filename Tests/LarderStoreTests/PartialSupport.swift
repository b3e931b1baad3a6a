import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

extension Sample {
    /// Bytes that differ from place to place: what a representation has at `range`.
    static func representation(_ range: Range<Int>) -> ByteBuffer {
        ByteBuffer(bytes: range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    }

    static func partialHead(
        _ range: Range<UInt64>, of completeLength: UInt64?, at seconds: Int64 = 0
    ) -> StoredHead {
        var head = self.head(at: seconds)
        head.extent = StoredExtent(completeLength: completeLength, ranges: [range])
        return head
    }
}

/// How a sink is left.
enum Leaving: Sendable, CaseIterable {
    case commit, keep, abandon, release
}

extension ObjectStore {
    /// Begins a partial response and writes `written` of its range's bytes.
    func putPart(
        _ name: String, _ range: Range<Int>, of completeLength: UInt64?,
        writing written: Int? = nil,
        _ leaving: Leaving = .commit, learning: UInt64? = nil, begun: RemovalMark? = nil
    ) -> RecordingObserver {
        let observer = RecordingObserver()
        let head = Sample.partialHead(
            UInt64(range.lowerBound)..<UInt64(range.upperBound), of: completeLength)
        let sink = self.store(
            head, for: Sample.key(name), length: UInt64(range.count), replacing: [],
            begun: begun ?? self.removalMark(), observer: observer)
        self.leave(sink, range.lowerBound, written ?? range.count, leaving, learning)
        return observer
    }

    /// Adds bytes to a partial response; nil where the store refuses at once.
    func add(
        _ range: Range<Int>, to id: ObjectID, of name: String, completeLength: UInt64? = nil,
        writing written: Int? = nil, _ leaving: Leaving = .commit, learning: UInt64? = nil,
        begun: RemovalMark? = nil
    ) -> RecordingObserver? {
        let observer = RecordingObserver()
        guard
            let sink = self.extend(
                id, of: Sample.key(name), at: UInt64(range.lowerBound), length: UInt64(range.count),
                completeLength: completeLength, begun: begun ?? self.removalMark(),
                observer: observer)
        else { return nil }
        self.leave(sink, range.lowerBound, written ?? range.count, leaving, learning)
        return observer
    }

    private func leave(
        _ sink: (any ObjectSink)?, _ start: Int, _ count: Int, _ leaving: Leaving,
        _ learning: UInt64?
    ) {
        var position = start
        while position < start + count {
            let end = min(start + count, position + 40_000)
            sink?.write(Sample.representation(position..<end))
            position = end
        }
        switch leaving {
        case .commit: sink?.commit(trailers: Fields())
        case .keep: sink?.keep(completeLength: learning)
        case .abandon: sink?.abandon()
        case .release: break
        }
    }
}
