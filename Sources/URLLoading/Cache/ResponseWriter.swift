import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Writes a body that a program has in memory into a store, no faster than the store takes it.
///
/// Any thread; held by the store's sink until that has ended.
final class ResponseWriter: ObjectSinkObserver {
    private struct State {
        var sink: (any ObjectSink)?
        var sent = 0
        var written: UInt64 = 0
        var isSending = false
        var isWoken = false
        var isCommitted = false
        var completion: (@Sendable () -> Void)?
    }

    /// How much may be on its way.
    private static let window = 4 << 20
    private static let pieceSize = 256 << 10

    private let data: Data
    private let name: (key: CacheKey, replacing: [ObjectID])
    private let store: any ObjectStore
    private let state: Mutex<State>

    private init(
        _ data: Data, _ name: (key: CacheKey, replacing: [ObjectID]), _ store: any ObjectStore,
        _ completion: @escaping @Sendable () -> Void
    ) {
        self.data = data
        self.name = name
        self.store = store
        self.state = Mutex(State(completion: completion))
    }

    /// Stores a response in the place of others, which are removed also where there is no room for
    /// it: they are out of date.
    ///
    /// - Parameter completion: called once, as soon as lookups find it, or when they never will.
    static func write(
        _ data: Data, _ head: StoredHead, for key: CacheKey, replacing: [ObjectID],
        begun: RemovalMark, into store: any ObjectStore,
        _ completion: @escaping @Sendable () -> Void
    ) {
        let writer = ResponseWriter(data, (key, replacing), store, completion)
        let sink = store.store(
            head, for: key, length: UInt64(data.count), replacing: replacing, begun: begun,
            observer: writer)
        guard let sink else { return writer.sinkEnded(.abandoned(.noSpace)) }
        writer.state.withLock { state in
            // It may have ended already.
            if state.completion != nil { state.sink = sink }
        }
        writer.send()
    }

    private func send() {
        let mayBegin = self.state.withLock { state in
            state.isWoken = true
            if state.isSending { return false }
            state.isSending = true
            return true
        }
        guard mayBegin else { return }
        while let step = self.nextStep() {
            switch step {
            case .write(let sink, let range):
                sink.write(ByteBuffer(bytes: self.data[range]))
            case .hurry(let sink): sink.hurry()
            case .commit(let sink): sink.commit(trailers: Fields())
            }
        }
    }

    private enum Step {
        case write(any ObjectSink, Range<Data.Index>)
        case hurry(any ObjectSink)
        case commit(any ObjectSink)
    }

    /// What to do next; nil, and others may send, where that must wait.
    private func nextStep() -> Step? {
        self.state.withLock { state in
            while state.isWoken {
                guard let sink = state.sink, !state.isCommitted else { break }
                if state.sent == self.data.count {
                    state.isCommitted = true
                    return .commit(sink)
                }
                guard state.sent - Int(clamping: state.written) < Self.window else {
                    state.isWoken = false
                    return .hurry(sink)
                }
                let count = min(Self.pieceSize, self.data.count - state.sent)
                let start = self.data.startIndex + state.sent
                state.sent += count
                return .write(sink, start..<start + count)
            }
            state.isSending = false
            return nil
        }
    }

    // MARK: The store

    func sink(written offset: UInt64) {
        self.state.withLock { $0.written = max($0.written, offset) }
        self.send()
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let (sink, completion) = self.state.withLock { state in
            (state.sink.take(), state.completion.take())
        }
        withExtendedLifetime(sink) {}
        guard let completion else { return }
        guard case .abandoned = outcome, !self.name.replacing.isEmpty else { return completion() }
        self.store.remove(self.name.key, ids: self.name.replacing) { _ in completion() }
    }
}
