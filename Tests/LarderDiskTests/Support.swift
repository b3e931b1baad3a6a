import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

/// A directory that goes away with the test.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-disk-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        self.path = url.path
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.path)
    }

    var data: String { self.path + "/cache.mdb" }

    var fileSize: UInt64 {
        let attributes = try? FileManager.default.attributesOfItem(atPath: self.data)
        return attributes?[.size] as? UInt64 ?? 0
    }

    var aside: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: self.path)) ?? []
        return names.filter { $0.hasPrefix("cache.mdb.damaged-") }
    }
}

/// Hears all that a store reports, and owns its clock.
final class World: Sendable {
    let events = Mutex<[DiskEvent]>([])
    let now = Mutex(Timestamp(seconds: 1_700_000_000))
    /// Kept for as long as a store has them open: one that is deleted is made anew.
    private let directories = Mutex<[TemporaryDirectory]>([])

    func open(
        _ directory: TemporaryDirectory, capacity: ByteCount = .mebibytes(64),
        change: (inout DiskConfiguration) -> Void = { _ in }
    ) throws(StoreError) -> DiskStore {
        var configuration = DiskConfiguration(directory: directory.path, capacity: capacity)
        change(&configuration)
        self.directories.withLock { $0.append(directory) }
        return try DiskStore.open(
            configuration, clock: { self.now.withLock { $0 } },
            report: { event in self.events.withLock { $0.append(event) } })
    }

    var reported: [DiskEvent] { self.events.withLock { $0 } }
}

extension LateDisk {
    /// One of the usual size that could not be opened, for no reason that is told.
    convenience init(
        _ directory: TemporaryDirectory,
        after failure: StoreError = StoreError(.failed, path: "", cause: "", remedy: ""),
        clock: @escaping @Sendable () -> Timestamp = { Timestamp(seconds: 0) },
        report: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        self.init(
            DiskConfiguration(directory: directory.path, capacity: .mebibytes(64)),
            after: failure, clock: clock, report: report)
    }
}

/// Hears how a sink gets on, and lets tests wait for it.
final class Observer: ObjectSinkObserver {
    private struct State {
        var written: UInt64 = 0
        var outcome: SinkOutcome?
        var ends = 0
        var onEnd: [CheckedContinuation<SinkOutcome, Never>] = []
        var onWritten: [(UInt64, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())
    let awaitsLowest: Bool

    init(awaitsLowest: Bool = false) {
        self.awaitsLowest = awaitsLowest
    }

    func sink(written offset: UInt64) {
        let waiters = self.state.withLock { state in
            #expect(state.outcome == nil)
            #expect(offset >= state.written)
            state.written = offset
            let ready = state.onWritten.filter { $0.0 <= offset }
            state.onWritten.removeAll { $0.0 <= offset }
            return ready
        }
        for (_, waiter) in waiters { waiter.resume() }
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let (waiters, late) = self.state.withLock { state in
            state.outcome = outcome
            state.ends += 1
            defer {
                state.onEnd = []
                state.onWritten = []
            }
            return (state.onEnd, state.onWritten)
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
        for (_, waiter) in late { waiter.resume() }
    }

    var written: UInt64 { self.state.withLock { $0.written } }
    var ends: Int { self.state.withLock { $0.ends } }

    func end() async -> SinkOutcome {
        await withCheckedContinuation { continuation in
            let outcome = self.state.withLock { state in
                if state.outcome == nil { state.onEnd.append(continuation) }
                return state.outcome
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }

    func wrote(_ offset: UInt64) async {
        await withCheckedContinuation { continuation in
            let isThere = self.state.withLock { state in
                let isThere = state.written >= offset || state.outcome != nil
                if !isThere { state.onWritten.append((offset, continuation)) }
                return isThere
            }
            if isThere { continuation.resume() }
        }
    }
}

/// What a source gave in the end.
struct Collected {
    var bytes: [UInt8] = []
    var failure: BodyFailure?
    var trailers = Fields()
}

/// Reads a source to its end, waiting where it is pending.
func collect(_ source: any BodySource) async -> Collected {
    let bell = AsyncStream<Void>.makeStream()
    source.attach { bell.continuation.yield() }
    var wakes = bell.stream.makeAsyncIterator()
    var collected = Collected()
    while true {
        switch source.next() {
        case .piece(let piece):
            #expect(piece.readableBytes > 0)
            collected.bytes.append(contentsOf: piece.readableBytesView)
        case .pending: _ = await wakes.next()
        case .end(let trailers):
            collected.trailers = trailers
            return collected
        case .failed(let failure):
            collected.failure = failure
            return collected
        }
    }
}

/// Bytes that differ from place to place and from seed to seed.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    // A loop over an index: unoptimised, `map` takes ten times as long.
    var bytes = [UInt8](repeating: 0, count: count)
    var i = 0
    while i < count {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        bytes[i] = UInt8(truncatingIfNeeded: state >> 56)
        i += 1
    }
    return bytes
}

func cacheKey(_ path: String, host: String = "example.org") -> CacheKey {
    CacheKey(
        method: .get, uri: TargetURI(scheme: .http, host: host, pathAndQuery: "/" + path))
}

func storedHead(_ mark: String = "a", vary: String? = nil) -> StoredHead {
    let time = Timestamp(seconds: 1_700_000_000)
    var varying = Fields()
    if let vary { varying.append("Accept-Language", vary) }
    return StoredHead(
        status: .ok, reason: "OK",
        fields: ["Content-Type": "text/plain", "ETag": "\"\(mark)\"", "X-Odd-Case": mark],
        varyingFields: varying, requestTime: time, responseTime: time + .milliseconds(20))
}

extension ObjectStore {
    /// Stores a body in pieces of the given size, and waits for the end.
    @discardableResult
    func put(
        _ key: CacheKey, _ body: [UInt8], head: StoredHead = storedHead(), pieces: Int = 16_384,
        length: UInt64? = nil, replacing: [ObjectID] = [], trailers: Fields = Fields(),
        awaitsLowest: Bool = false
    ) async -> SinkOutcome? {
        let observer = Observer(awaitsLowest: awaitsLowest)
        guard
            let sink = self.store(
                head, for: key, length: length, replacing: replacing, observer: observer)
        else { return nil }
        var offset = 0
        while offset < body.count {
            let end = min(body.count, offset + pieces)
            sink.write(ByteBuffer(bytes: body[offset..<end]))
            offset = end
            // As a filling does: never far ahead of the store.
            if offset > 8 << 20 { await observer.wrote(UInt64(offset - (8 << 20))) }
        }
        sink.commit(trailers: trailers)
        let outcome = await observer.end()
        #expect(observer.ends == 1)
        return outcome
    }

    func find(_ key: CacheKey) async -> [StoredObject] {
        await withCheckedContinuation { continuation in
            self.lookup(key) { continuation.resume(returning: $0) }
        }
    }

    func body(_ object: StoredObject, _ range: Range<UInt64>? = nil) async -> Collected {
        await collect(object.body.reader(range: range ?? 0..<object.bodyLength))
    }

    func removed(_ key: CacheKey, ids: [ObjectID]? = nil) async -> Int {
        await withCheckedContinuation { continuation in
            self.remove(key, ids: ids) { continuation.resume(returning: $0) }
        }
    }

    func purged(_ matches: @escaping @Sendable (CacheKey) -> Bool) async -> Int {
        await self.purged(in: .matching(matches))
    }

    func purged(in selection: KeySelection) async -> Int {
        await withCheckedContinuation { continuation in
            self.removeAll(in: selection) { continuation.resume(returning: $0) }
        }
    }

    func flushed() async {
        await withCheckedContinuation { continuation in self.flush { continuation.resume() } }
    }

    func closed() async {
        await withCheckedContinuation { continuation in self.close { continuation.resume() } }
    }
}

/// Says to other tasks that it is time.
final class Flag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { self.value.load(ordering: .acquiring) }
    func set() { self.value.store(true, ordering: .releasing) }
}
