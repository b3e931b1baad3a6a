import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Hears how a sink gets on.
final class SinkWatch: ObjectSinkObserver {
    private struct State {
        var written: UInt64 = 0
        var outcome: SinkOutcome?
        var onEnd: CheckedContinuation<SinkOutcome, Never>?
        var onWritten: (UInt64, CheckedContinuation<Void, Never>)?
    }

    private let state = Mutex(State())

    func sink(written offset: UInt64) {
        let waiter = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.written = offset
            guard let (wanted, waiter) = state.onWritten, wanted <= offset else { return nil }
            state.onWritten = nil
            return waiter
        }
        waiter?.resume()
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let (waiter, late) = self.state.withLock { state in
            state.outcome = outcome
            defer { (state.onEnd, state.onWritten) = (nil, nil) }
            return (state.onEnd, state.onWritten?.1)
        }
        waiter?.resume(returning: outcome)
        late?.resume()
    }

    func end() async -> SinkOutcome {
        await withCheckedContinuation { continuation in
            let outcome = self.state.withLock { state in
                if state.outcome == nil { state.onEnd = continuation }
                return state.outcome
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }

    func wrote(_ offset: UInt64) async {
        await withCheckedContinuation { continuation in
            let isThere = self.state.withLock { state in
                let isThere = state.written >= offset || state.outcome != nil
                if !isThere { state.onWritten = (offset, continuation) }
                return isThere
            }
            if isThere { continuation.resume() }
        }
    }
}

extension DiskStore {
    func found(_ key: CacheKey) async -> [StoredObject] {
        await withCheckedContinuation { continuation in
            self.lookup(key) { continuation.resume(returning: $0) }
        }
    }

    func removed(_ key: CacheKey, ids: [ObjectID]?) async -> Int {
        await withCheckedContinuation { continuation in
            self.remove(key, ids: ids) { continuation.resume(returning: $0) }
        }
    }

    func flushed() async {
        await withCheckedContinuation { continuation in self.flush { continuation.resume() } }
    }

    func closed() async {
        await withCheckedContinuation { continuation in self.close { continuation.resume() } }
    }
}

/// What came of reading a body to its end.
enum Reading: Equatable {
    case right
    /// A byte is not what it should be: the one thing that must never be.
    case wrong(String)
    /// It broke off before its end, right so far.
    case brokenOff(String)
}

/// Reads `range` of a stored body, and compares every byte.
func compare(_ object: StoredObject, _ key: Int, _ entry: Entry, _ range: Range<UInt64>) async
    -> Reading
{
    let source = object.body.reader(range: range)
    let bell = AsyncStream<Void>.makeStream()
    source.attach { bell.continuation.yield() }
    var wakes = bell.stream.makeAsyncIterator()
    var position = range.lowerBound
    while true {
        switch source.next() {
        case .piece(let piece):
            let end = position + UInt64(piece.readableBytes)
            guard end <= range.upperBound else { return .wrong("too long") }
            guard Content.matches(piece, key, entry.version, from: position) else {
                return .wrong("wrong bytes in \(position)..<\(end)")
            }
            position = end
        case .pending:
            _ = await wakes.next()
        case .end:
            return position == range.upperBound ? .right : .wrong("ends at \(position)")
        case .failed(let failure):
            return .brokenOff("\(failure)")
        }
    }
}

/// Reads all that a stored response has, and compares its head; nil where all of it is right.
func objection(to object: StoredObject, _ key: Int, _ entry: Entry) async -> String? {
    var expected = Content.head(key, entry)
    expected.extent = object.head.extent
    if object.head != expected { return "/\(key): its head is \(object.head)" }
    let length = Content.length(key, entry.version)
    for range in entry.ranges ?? [0..<length] {
        guard range.upperBound <= length else { return "/\(key): \(range) of \(length)" }
        switch await compare(object, key, entry, range) {
        case .right: continue
        case .wrong(let what), .brokenOff(let what): return "/\(key) \(entry.text): \(what)"
        }
    }
    if entry.ranges == nil, object.bodyLength != length {
        return "/\(key) \(entry.text): its length is \(object.bodyLength), not \(length)"
    }
    return nil
}
