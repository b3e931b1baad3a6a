import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

/// Keys, heads and bodies for the tests.
enum Sample {
    static func key(_ name: String) -> CacheKey {
        CacheKey(
            method: .get,
            uri: TargetURI(scheme: .http, host: "example.org", pathAndQuery: "/\(name)"))
    }

    /// A head received at second `at`; `language` makes it a variant.
    static func head(at seconds: Int64 = 0, language: String? = nil, fill: Int = 0) -> StoredHead {
        var fields: Fields = ["Content-Type": "text/plain"]
        if language != nil { fields.append("Vary", "Accept-Language") }
        if fill > 0 { fields.append("X-Fill", String(repeating: "x", count: fill)) }
        var varying = Fields()
        if let language { varying.append("Accept-Language", language) }
        return StoredHead(
            status: .ok, fields: fields, varyingFields: varying,
            requestTime: Timestamp(seconds: seconds), responseTime: Timestamp(seconds: seconds))
    }

    static func body(_ length: Int, _ byte: UInt8 = 0x61) -> ByteBuffer {
        ByteBuffer(repeating: byte, count: length)
    }
}

/// Writes down what a sink tells.
final class RecordingObserver: ObjectSinkObserver {
    struct Heard: Sendable, Equatable {
        var written: [UInt64] = []
        var outcomes: [SinkOutcome] = []
        var toldAfterEnd = false
    }

    private let state = Mutex(Heard())
    let awaitsLowest: Bool

    init(awaitsLowest: Bool = false) {
        self.awaitsLowest = awaitsLowest
    }

    var heard: Heard { self.state.withLock { $0 } }
    var outcome: SinkOutcome? { self.heard.outcomes.first }
    var id: ObjectID? {
        if case .visible(let id) = self.outcome { id } else { nil }
    }

    func sink(written offset: UInt64) {
        self.state.withLock {
            if !$0.outcomes.isEmpty { $0.toldAfterEnd = true }
            $0.written.append(offset)
        }
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        self.state.withLock { $0.outcomes.append(outcome) }
    }
}

/// Holds what completions hand over.
final class Box<T: Sendable>: Sendable {
    private let state = Mutex<[T]>([])

    var all: [T] { self.state.withLock { $0 } }
    var last: T? { self.all.last }

    func put(_ value: T) {
        self.state.withLock { $0.append(value) }
    }
}

extension ObjectStore {
    /// Stores a whole response at once; the observer that heard of it.
    @discardableResult
    func put(
        _ name: String, _ head: StoredHead = Sample.head(), body: ByteBuffer = Sample.body(10),
        replacing: [ObjectID] = [], begun: RemovalMark? = nil
    ) -> RecordingObserver {
        let observer = RecordingObserver()
        let sink = self.store(
            head, for: Sample.key(name), length: UInt64(body.readableBytes), replacing: replacing,
            begun: begun ?? self.removalMark(), observer: observer)
        if body.readableBytes > 0 { sink?.write(body) }
        sink?.commit(trailers: Fields())
        return observer
    }

    /// What a lookup gives that answers before it returns.
    func found(_ name: String) -> [StoredObject] {
        let box = Box<[StoredObject]>()
        self.lookup(Sample.key(name)) { box.put($0) }
        #expect(box.all.count == 1, "a lookup answers once")
        return box.last ?? []
    }

    func foundIDs(_ name: String) -> [ObjectID] { self.found(name).map(\.id) }

    func resident(_ name: String) -> [StoredObject]? { self.lookupResident(Sample.key(name)) }

    func removed(_ name: String, ids: [ObjectID]? = nil) -> Box<Int> {
        let box = Box<Int>()
        self.remove(Sample.key(name), ids: ids) { box.put($0) }
        return box
    }
}

/// All that a source has without waiting, and how it ended.
func drain(_ source: (any BodySource)?) -> (bytes: [UInt8], isWhole: Bool) {
    var bytes: [UInt8] = []
    source?.attach(wake: {})
    while let step = source?.next() {
        switch step {
        case .piece(let piece): bytes += Array(piece.readableBytesView)
        case .end: return (bytes, true)
        case .failed, .pending: return (bytes, false)
        }
    }
    return (bytes, false)
}

extension StoredObject {
    /// Reads the whole body as a client would.
    func read() -> (bytes: [UInt8], isWhole: Bool) {
        drain(self.body.reader(range: 0..<self.bodyLength))
    }
}
