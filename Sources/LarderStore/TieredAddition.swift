import LarderHTTP
package import LarderPolicy
import NIOCore
import Synchronization

/// Adds bytes to a partial response of the lower tier.
///
/// It makes nothing visible that was not, and the lower tier finds out itself when the response is
/// gone; what is left to do here is to mind the order of removals.
final class TieredAddition: ObjectSink {
    /// Hears the lower tier, and knows better why it was abandoned.
    final class Reporter: ObjectSinkObserver {
        private struct State {
            var observer: (any ObjectSinkObserver)?
            var reason: SinkAbandonment?
        }

        private let state: Mutex<State>

        init(_ observer: any ObjectSinkObserver) {
            self.state = Mutex(State(observer: observer))
        }

        func explain(_ reason: SinkAbandonment) {
            self.state.withLock { $0.reason = reason }
        }

        func sink(written offset: UInt64) {
            self.state.withLock { $0.observer }?.sink(written: offset)
        }

        func sinkEnded(_ outcome: SinkOutcome) {
            let (observer, reason) = self.state.withLock { state in
                (state.observer.take(), state.reason)
            }
            switch (outcome, reason) {
            case (.abandoned, let reason?): observer?.sinkEnded(.abandoned(reason))
            case (.visible, _), (.abandoned, nil): observer?.sinkEnded(outcome)
            }
        }
    }

    private let memory: MemoryStore
    private let key: HashedKey
    private let begun: RemovalMark
    private let lower: any ObjectSink
    private let reporter: Reporter

    init(
        _ memory: MemoryStore, _ key: HashedKey, begun: RemovalMark, lower: any ObjectSink,
        _ reporter: Reporter
    ) {
        self.memory = memory
        self.key = key
        self.begun = begun
        self.lower = lower
        self.reporter = reporter
    }

    func write(_ piece: ByteBuffer) { self.lower.write(piece) }

    func hurry() { self.lower.hurry() }

    func commit(trailers: Fields) {
        if self.isAdmitted { self.lower.commit(trailers: trailers) }
    }

    func keep(completeLength: UInt64?) {
        if self.isAdmitted { self.lower.keep(completeLength: completeLength) }
    }

    /// Whether the key was not removed since; abandons where it was.
    ///
    /// A removal that comes behind this goes to the lower tier behind the commit, and takes what it
    /// added along.
    private var isAdmitted: Bool {
        switch self.memory.admit(self.key, begun: self.begun, { _ in }) {
        case .admitted: return true
        case .refused(let reason):
            self.reporter.explain(reason)
            self.lower.abandon()
            return false
        }
    }

    func abandon() { self.lower.abandon() }

    func reader(from offset: UInt64) -> (any BodySource)? { self.lower.reader(from: offset) }
}

extension TieredStore {
    /// Partial content lies in the lower tier alone, where there is one: memory takes a response up
    /// when it is complete.
    package func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        guard let disk = self.disk else {
            return self.memory.extend(
                id, of: key, at: offset, length: length, completeLength: completeLength,
                begun: begun, observer: observer)
        }
        let hashed = HashedKey(key)
        let lowerID = self.memory.withShard(of: hashed) { shard -> ObjectID? in
            guard let lowerID = Self.lowerID(id, hashed, shard),
                shard.lower.hidden[lowerID] == nil
            else { return nil }
            return lowerID
        }
        guard let lowerID else { return nil }
        let reporter = TieredAddition.Reporter(observer)
        let lower = disk.extend(
            lowerID, of: key, at: offset, length: length, completeLength: completeLength,
            begun: begun, observer: reporter)
        guard let lower else { return nil }
        return TieredAddition(self.memory, hashed, begun: begun, lower: lower, reporter)
    }
}
