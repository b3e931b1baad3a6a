import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Stores responses as fetches do, many at a time, and never more than the writer can take.
final class Filler {
    /// How storings ended.
    struct Outcomes: Sendable {
        var visible: UInt64 = 0
        var bytes: UInt64 = 0
        var abandoned: [SinkAbandonment: UInt64] = [:]
        var refused: UInt64 = 0
    }

    /// What sinks tell of, on the writer's thread.
    private final class Progress: Sendable {
        struct State {
            var inFlight: UInt64 = 0
            var sinks = 0
            var outcomes = Outcomes()
            var waiter: CheckedContinuation<Void, Never>?
        }

        let state = Mutex(State())
    }

    private final class Observer: ObjectSinkObserver {
        private let progress: Progress
        private let length: UInt64
        private let written = Mutex<UInt64>(0)

        init(_ progress: Progress, length: UInt64) {
            self.progress = progress
            self.length = length
        }

        func sink(written offset: UInt64) {
            let more = self.written.withLock { written in
                defer { written = max(written, offset) }
                return offset - min(offset, written)
            }
            self.give(back: more, nil)
        }

        func sinkEnded(_ outcome: SinkOutcome) {
            let rest = self.length - self.written.withLock { $0 }
            self.give(back: rest, outcome)
        }

        private func give(back bytes: UInt64, _ outcome: SinkOutcome?) {
            let waiter = self.progress.state.withLock { state in
                state.inFlight -= min(state.inFlight, bytes)
                if let outcome {
                    state.sinks -= 1
                    if case .abandoned(let reason) = outcome {
                        state.outcomes.abandoned[reason, default: 0] += 1
                    } else {
                        state.outcomes.visible += 1
                        state.outcomes.bytes += self.length
                    }
                }
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume()
        }
    }

    private struct Stream {
        var number: UInt64
        var length: UInt64
        var offset: UInt64
        var sink: any ObjectSink
    }

    private let store: DiskStore
    private let responses = Responses()
    private let streams: Int
    private let progress = Progress()
    private var active: [Stream] = []
    private var turn = 0
    private static let window: UInt64 = 48 << 20
    private static let sinkLimit = 4096

    init(_ store: DiskStore, streams: Int) {
        self.store = store
        self.streams = streams
    }

    var outcomes: Outcomes { self.progress.state.withLock { $0.outcomes } }

    /// Stores responses from `number` on, until `isDone` says so of the number and the bytes handed in.
    ///
    /// - Returns: the first number that was not stored.
    func fill(
        from number: UInt64, sizes: (UInt64) -> UInt64, until isDone: (UInt64, UInt64) -> Bool
    ) async -> UInt64 {
        var number = number
        var handedIn: UInt64 = 0
        while true {
            while self.active.count < self.streams, !isDone(number, handedIn) {
                self.begin(number, length: sizes(number))
                number += 1
            }
            if self.active.isEmpty { break }
            handedIn += self.writePiece()
            await self.waitForRoom(Self.window, Self.sinkLimit)
        }
        await self.waitForRoom(0, 0)
        return number
    }

    private func begin(_ number: UInt64, length: UInt64) {
        let head = self.responses.head(
            number, length: length, at: Timestamp(seconds: 1_800_000_000))
        let observer = Observer(self.progress, length: length)
        guard
            let sink = self.store.store(
                head, for: self.responses.key(number), length: length, replacing: [],
                observer: observer)
        else {
            return self.progress.state.withLock { $0.outcomes.refused += 1 }
        }
        self.progress.state.withLock { $0.sinks += 1 }
        self.active.append(Stream(number: number, length: length, offset: 0, sink: sink))
    }

    /// The next piece of the next body in turn.
    private func writePiece() -> UInt64 {
        self.turn = (self.turn + 1) % self.active.count
        let stream = self.active[self.turn]
        let piece = self.responses.piece(stream.number, at: stream.offset, length: stream.length)
        let count = UInt64(piece.readableBytes)
        self.progress.state.withLock { $0.inFlight += count }
        stream.sink.write(piece)
        self.active[self.turn].offset += count
        if stream.offset + count >= stream.length {
            stream.sink.commit(trailers: Fields())
            self.active.swapAt(self.turn, self.active.count - 1)
            self.active.removeLast()
        }
        return count
    }

    private func waitForRoom(_ bytes: UInt64, _ sinks: Int) async {
        while self.progress.state.withLock({ $0.inFlight > bytes || $0.sinks > sinks }) {
            await withCheckedContinuation { continuation in
                let isFree = self.progress.state.withLock { state in
                    let isFree = state.inFlight <= bytes && state.sinks <= sinks
                    if !isFree { state.waiter = continuation }
                    return isFree
                }
                if isFree { continuation.resume() }
            }
        }
    }
}
