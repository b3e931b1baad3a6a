import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderDisk

/// What a representation has at `range`: differs from place to place, also a cell further on.
func representation(_ range: Range<UInt64>) -> [UInt8] {
    range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ $0 / 65_512 &* 7) }
}

/// How a sink is left.
enum Leaving: Sendable, CaseIterable {
    case commit, keep, abandon, release
}

extension ObjectStore {
    /// Begins a partial response, writes `written` of its range's bytes, and waits for the end.
    func putPart(
        _ key: CacheKey, _ range: Range<UInt64>, of completeLength: UInt64?,
        writing written: UInt64? = nil, _ leaving: Leaving = .commit, pieces: UInt64 = 16_384
    ) async -> SinkOutcome? {
        let observer = Observer()
        var head = storedHead()
        head.extent = StoredExtent(completeLength: completeLength, ranges: [range])
        var sink = self.store(
            head, for: key, length: range.upperBound - range.lowerBound, replacing: [],
            begun: self.removalMark(), observer: observer)
        guard sink != nil else { return nil }
        let end = range.lowerBound + (written ?? range.upperBound - range.lowerBound)
        self.leave(sink, range.lowerBound..<end, leaving, pieces)
        sink = nil
        return await observer.end()
    }

    /// Adds bytes to a partial response; nil where the store refuses at once.
    func add(
        _ range: Range<UInt64>, to id: ObjectID, of key: CacheKey, completeLength: UInt64? = nil,
        saying length: UInt64? = nil, _ leaving: Leaving = .commit, pieces: UInt64 = 16_384
    ) async -> SinkOutcome? {
        let observer = Observer()
        var sink = self.extend(
            id, of: key, at: range.lowerBound, length: length, completeLength: completeLength,
            begun: self.removalMark(), observer: observer)
        guard sink != nil else { return nil }
        self.leave(sink, range, leaving, pieces)
        sink = nil
        return await observer.end()
    }

    private func leave(
        _ sink: (any ObjectSink)?, _ range: Range<UInt64>, _ leaving: Leaving,
        _ pieces: UInt64
    ) {
        var position = range.lowerBound
        while position < range.upperBound {
            let end = min(range.upperBound, position + pieces)
            sink?.write(ByteBuffer(bytes: representation(position..<end)))
            position = end
        }
        switch leaving {
        case .commit: sink?.commit(trailers: Fields())
        case .keep: sink?.keep(completeLength: nil)
        case .abandon: sink?.abandon()
        case .release: break
        }
    }

    func looked(_ key: CacheKey) async -> [StoredObject] {
        if let resident = self.lookupResident(key) { return resident }
        return await withCheckedContinuation { continuation in
            self.lookup(key) { continuation.resume(returning: $0) }
        }
    }
}

/// Expects that these bytes of a response can be read, and are right.
func expectStored(
    _ object: StoredObject, _ range: Range<UInt64>, _ location: SourceLocation = #_sourceLocation
) async {
    let read = await collect(object.body.reader(range: range))
    #expect(read.failure == nil, sourceLocation: location)
    #expect(read.bytes == representation(range), sourceLocation: location)
}

/// Expects that a range is refused without a byte.
func expectMissing(
    _ object: StoredObject, _ range: Range<UInt64>, _ location: SourceLocation = #_sourceLocation
) async {
    let read = await collect(object.body.reader(range: range))
    #expect(read.failure != nil && read.bytes.isEmpty, sourceLocation: location)
}

extension SinkOutcome {
    var id: ObjectID? { if case .visible(let id) = self { id } else { nil } }
}
