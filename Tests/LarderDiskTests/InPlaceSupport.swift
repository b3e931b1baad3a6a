import LarderHTTP
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

/// What a test says is in memory.
enum Residency: String, Sendable, CaseIterable {
    case everything, nothing, records, bodies, evenSegments, inTurns

    func configure(_ configuration: inout DiskConfiguration) {
        let turns = Turns()
        configuration.isResident = { place in
            switch (self, place) {
            case (.everything, _), (.records, .records), (.bodies, .segment): true
            case (.evenSegments, .records): true
            case (.evenSegments, .segment(let index)): index % 2 == 0
            case (.inTurns, _): turns.next() % 3 == 0
            case (.nothing, _), (.records, .segment), (.bodies, .records): false
            }
        }
    }
}

/// Counts how often it is asked.
private final class Turns: Sendable {
    private let count = Atomic<Int>(0)

    func next() -> Int { self.count.add(1, ordering: .relaxed).newValue }
}

/// What a source gave, and how it had its reader wait.
struct Read: Sendable {
    var bytes: [UInt8] = []
    var pieces: [Int] = []
    var failure: BodyFailure?
    var pendings = 0
    var wakes = 0
}

/// Reads a source to its end or until so many pieces have come, and cancels it then.
func read(_ source: any BodySource, upTo limit: Int = .max) async -> Read {
    let bell = AsyncStream<Void>.makeStream()
    let count = WakeCount()
    source.attach {
        count.add()
        bell.continuation.yield()
    }
    var waits = bell.stream.makeAsyncIterator()
    var result = Read()
    reading: while result.pieces.count < limit {
        switch source.next() {
        case .piece(let piece):
            result.pieces.append(piece.readableBytes)
            result.bytes.append(contentsOf: piece.readableBytesView)
        case .pending:
            result.pendings += 1
            _ = await waits.next()
        case .end: break reading
        case .failed(let failure):
            result.failure = failure
            break reading
        }
    }
    source.cancel()
    result.wakes = count.value
    return result
}

private final class WakeCount: Sendable {
    private let count = Atomic<Int>(0)

    func add() { self.count.add(1, ordering: .relaxed) }
    var value: Int { self.count.load(ordering: .relaxed) }
}
