import LarderHTTP
import LarderStore
import NIOCore
import Synchronization

/// What waits for a store that is still being opened, over all bodies.
///
/// A disk may take long to open one, and there may be many of them meanwhile.
final class WaitingBytes: Sendable {
    private static let limit = 64 << 20

    private let count = Atomic(0)

    /// Whether another body may wait.
    var hasRoom: Bool { self.count.load(ordering: .relaxed) < Self.limit }

    func add(_ bytes: Int) { self.count.wrappingAdd(bytes, ordering: .relaxed) }
    func subtract(_ bytes: Int) { self.count.wrappingSubtract(bytes, ordering: .relaxed) }
}

/// Takes a body while the store that it goes to is still being opened.
///
/// What comes before is held here; as nothing is told to be written meanwhile, whoever writes stops
/// after a window of its own.
final class LateSink: ObjectSink, ObjectSinkObserver {
    private enum Command {
        case write(ByteBuffer)
        case hurry
        case commit(Fields)
        case keep(UInt64?)
        case abandon
    }

    private struct State {
        var inner: (any ObjectSink)?
        var isOpened = false
        var held: [Command] = []
        /// What it counts among those that wait.
        var bytes: Int
        /// The commands that were held are being passed on.
        var isPassing = true
        /// nil once it has heard the end.
        var observer: (any ObjectSinkObserver)?
    }

    /// What one takes beside its body, about.
    private static let ownBytes = 4096

    private let state: Mutex<State>
    private let waiting: WaitingBytes

    init(_ observer: any ObjectSinkObserver, among waiting: WaitingBytes) {
        self.state = Mutex(State(bytes: Self.ownBytes, observer: observer))
        self.waiting = waiting
        waiting.add(Self.ownBytes)
    }

    deinit {
        self.endWaiting()
    }

    /// Harmless when repeated.
    private func endWaiting() {
        let bytes = self.state.withLock { state in
            defer { state.bytes = 0 }
            return state.bytes
        }
        self.waiting.subtract(bytes)
    }

    /// The store is open, or (nil) does not take the body.
    func opened(_ sink: (any ObjectSink)?) {
        self.state.withLock { state in
            state.isOpened = true
            state.inner = sink
        }
        guard let sink else { return self.sinkEnded(.abandoned(.storeFailed)) }
        while true {
            let held = self.state.withLock { state in
                if state.held.isEmpty { state.isPassing = false }
                defer { state.held = [] }
                return state.held
            }
            if held.isEmpty { return self.endWaiting() }
            for command in held { Self.pass(command, to: sink) }
        }
    }

    private func take(_ command: Command) {
        let sink: (any ObjectSink)? = self.state.withLock { state in
            guard state.isOpened, !state.isPassing else {
                if state.observer != nil {
                    state.held.append(command)
                    if case .write(let piece) = command {
                        state.bytes += piece.readableBytes
                        self.waiting.add(piece.readableBytes)
                    }
                }
                return nil
            }
            return state.inner
        }
        if let sink { Self.pass(command, to: sink) }
    }

    private static func pass(_ command: Command, to sink: any ObjectSink) {
        switch command {
        case .write(let piece): sink.write(piece)
        case .hurry: sink.hurry()
        case .commit(let trailers): sink.commit(trailers: trailers)
        case .keep(let completeLength): sink.keep(completeLength: completeLength)
        case .abandon: sink.abandon()
        }
    }

    // MARK: The writer

    func write(_ piece: ByteBuffer) { self.take(.write(piece)) }
    func hurry() { self.take(.hurry) }
    func commit(trailers: Fields) { self.take(.commit(trailers)) }
    func keep(completeLength: UInt64?) { self.take(.keep(completeLength)) }
    func abandon() { self.take(.abandon) }

    func reader(from offset: UInt64) -> (any BodySource)? {
        self.state.withLock { $0.inner }?.reader(from: offset)
    }

    // MARK: The store

    func sink(written offset: UInt64) {
        self.state.withLock { $0.observer }?.sink(written: offset)
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let observer = self.state.withLock { state in
            state.held = []
            return state.observer.take()
        }
        self.endWaiting()
        observer?.sinkEnded(outcome)
    }
}
