import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Testing

@testable import LarderDisk

/// What a store of one partial response should hold: each byte that is there.
private struct Model {
    var id: ObjectID?
    /// Makes the bytes of one representation differ from those of the one before it.
    var version: UInt64 = 0
    var length: UInt64 = 0
    var knowsLength = false
    var isThere: [Bool] = []

    func bytes(_ range: Range<UInt64>) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ self.version &* 101) }
    }

    mutating func add(_ range: Range<UInt64>) {
        for i in range { self.isThere[Int(i)] = true }
    }

    var ranges: [Range<UInt64>] {
        var ranges: [Range<UInt64>] = []
        for (i, isThere) in self.isThere.enumerated() where isThere {
            let place = UInt64(i)
            if let last = ranges.last, last.upperBound == place {
                ranges[ranges.count - 1] = last.lowerBound..<place + 1
            } else {
                ranges.append(place..<place + 1)
            }
        }
        return ranges
    }

    var isComplete: Bool { self.knowsLength && self.isThere.allSatisfy { $0 } }
}

@Suite("Partial content against a model of it", .timeLimit(.minutes(10)))
struct PartialModelTests {
    enum Kind: Sendable, CaseIterable { case memory, disk, both }

    /// A store of each kind, which may be opened again where it lasts.
    private final class Subject {
        let kind: Kind
        let directory: TemporaryDirectory
        let world = World()
        var disk: DiskStore?
        var store: any ObjectStore

        init(_ kind: Kind) throws {
            self.kind = kind
            self.directory = try TemporaryDirectory()
            self.store = MemoryStore(.none)
            try self.open()
        }

        func open() throws {
            let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(16)))
            if self.kind != .memory { self.disk = try self.world.open(self.directory) }
            switch self.kind {
            case .memory: self.store = memory
            case .disk: self.store = self.disk ?? memory
            case .both: self.store = TieredStore(memory: memory, disk: self.disk)
            }
        }

        func reopen() async throws {
            guard self.kind != .memory else { return }
            await self.close()
            try self.open()
        }

        func close() async {
            await withCheckedContinuation { continuation in
                self.store.close { continuation.resume() }
            }
        }
    }

    private let key = cacheKey("model")

    @Test(
        "holds just what it was given, whatever was done",
        arguments: Kind.allCases, [1, 2] as [UInt64])
    func random(kind: Kind, seed: UInt64) async throws {
        let subject = try Subject(kind)
        var random = SplitMix64(seed: seed)
        var model = Model()
        var completed = 0
        for _ in 0..<70 {
            if model.id == nil {
                try await self.begin(subject, &model, &random)
            }
            switch UInt64.random(in: 0..<20, using: &random) {
            case 0 where model.isComplete: try await self.purge(subject, &model)
            case 0, 1: try await subject.reopen()
            case 2: try await self.contradict(subject, model, &random)
            default: try await self.add(subject, &model, &random)
            }
            try await self.check(subject, model, &random)
            if model.isComplete {
                completed += 1
                try await self.purge(subject, &model)
            }
        }
        if kind != .memory { #expect(subject.disk?.statistics().damaged == 0) }
        #expect(subject.world.reported.isEmpty)
        #expect(completed > 0)
        await subject.close()
    }

    private func range(_ length: UInt64, _ random: inout SplitMix64) -> Range<UInt64> {
        let cell = UInt64(Segment.payloadSize)
        let borders = [0, cell - 1, cell, cell + 1, 2 * cell, length - 1].filter { $0 < length }
        let start =
            Bool.random(using: &random)
            ? borders.randomElement(using: &random) ?? 0 : .random(in: 0..<length, using: &random)
        let most = min(length - start, Bool.random(using: &random) ? 300 : 30_000)
        return start..<start + .random(in: 1...most, using: &random)
    }

    private func begin(
        _ subject: Subject, _ model: inout Model, _ random: inout SplitMix64
    ) async throws {
        model = Model(version: model.version + 1)
        model.length = .random(
            in: 1...(Bool.random(using: &random) ? 3000 : 140_000), using: &random)
        model.isThere = Array(repeating: false, count: Int(model.length))
        var range = self.range(model.length, &random)
        let isWhole = Bool.random(using: &random)
        var head = storedHead("\(model.version)")
        if isWhole {
            range = 0..<range.upperBound - range.lowerBound
        } else {
            model.knowsLength = Bool.random(using: &random)
            head.extent = StoredExtent(
                completeLength: model.knowsLength ? model.length : nil, ranges: [range])
        }
        let observer = Observer()
        let sink = try #require(
            subject.store.store(
                head, for: self.key, length: nil, replacing: [], observer: observer))
        self.write(model.bytes(range), sink, &random)
        if isWhole {
            model.knowsLength = Bool.random(using: &random)
            sink.keep(completeLength: model.knowsLength ? model.length : nil)
        } else {
            sink.commit(trailers: Fields())
        }
        model.add(range)
        let id = try #require(await observer.end().id)
        model.id = id
    }

    private func write(_ bytes: [UInt8], _ sink: any ObjectSink, _ random: inout SplitMix64) {
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + .random(in: 1...40_000, using: &random))
            sink.write(ByteBuffer(bytes: bytes[position..<end]))
            position = end
        }
    }

    private func add(
        _ subject: Subject, _ model: inout Model, _ random: inout SplitMix64
    ) async throws {
        let gaps = StoredExtent(completeLength: nil, ranges: model.ranges)
            .gaps(in: 0..<model.length)
        let fills = UInt64.random(in: 0..<3, using: &random) == 0
        let range =
            fills ? gaps.randomElement(using: &random) ?? 0..<1 : self.range(model.length, &random)
        let learns = Bool.random(using: &random)
        let saysLength = Bool.random(using: &random)
        let leaving = Leaving.allCases.randomElement(using: &random) ?? .commit
        let observer = Observer()
        let sink = subject.store.extend(
            try #require(model.id), of: self.key, at: range.lowerBound,
            length: saysLength ? range.upperBound - range.lowerBound : nil,
            completeLength: learns ? model.length : nil, begun: subject.store.removalMark(),
            observer: observer)
        guard let sink else {
            // Memory knows at once that there would be too many ranges.
            #expect(model.ranges.count == StoredExtent.rangeLimit)
            return
        }
        let most = range.upperBound - range.lowerBound
        let come =
            leaving == .keep
            ? range.lowerBound..<range.lowerBound + .random(in: 0...most, using: &random) : range
        self.write(model.bytes(come), sink, &random)
        switch leaving {
        case .commit: sink.commit(trailers: Fields())
        case .keep: sink.keep(completeLength: nil)
        case .abandon: sink.abandon()
        case .release: return
        }
        if leaving == .abandon { return }
        var grown = model
        grown.add(come)
        grown.knowsLength = model.knowsLength || learns
        let outcome = await observer.end()
        if grown.ranges.count > StoredExtent.rangeLimit {
            #expect(outcome == .abandoned(.tooScattered))
        } else {
            #expect(outcome == .visible(try #require(model.id)))
            model = grown
        }
    }

    /// Adds bytes that are not those of the representation, over some that are there.
    private func contradict(
        _ subject: Subject, _ model: Model, _ random: inout SplitMix64
    ) async throws {
        guard let stored = model.ranges.randomElement(using: &random) else { return }
        let observer = Observer()
        let sink = subject.store.extend(
            try #require(model.id), of: self.key, at: stored.lowerBound, length: nil,
            completeLength: nil, begun: subject.store.removalMark(), observer: observer)
        guard let sink else { return }
        let end = min(model.length, stored.upperBound + 5000)
        self.write(model.bytes(stored.lowerBound..<end).map { ~$0 }, sink, &random)
        sink.commit(trailers: Fields())
        #expect(await observer.end() == .abandoned(.contradictory))
    }

    private func purge(_ subject: Subject, _ model: inout Model) async throws {
        let store = subject.store
        let key = self.key
        let removed = await withCheckedContinuation { continuation in
            store.remove(key, ids: nil) { continuation.resume(returning: $0) }
        }
        #expect(removed >= 1)
        #expect(await subject.store.looked(self.key).isEmpty)
        model.id = nil
    }

    private func check(
        _ subject: Subject, _ model: Model, _ random: inout SplitMix64
    ) async throws {
        let objects = await subject.store.looked(self.key)
        #expect(objects.count == 1)
        let object = try #require(objects.first)
        #expect(object.head.fields == storedHead("\(model.version)").fields)
        let ranges = model.ranges
        #expect(object.extent.ranges == ranges)
        #expect((object.head.extent == nil) == model.isComplete)
        #expect(object.bodyLength == (model.knowsLength ? model.length : ranges.last?.upperBound))
        for _ in 0..<4 {
            let range = self.range(model.length, &random)
            let isThere = range.allSatisfy { model.isThere[Int($0)] }
            let read = await collect(object.body.reader(range: range))
            #expect((read.failure == nil) == isThere)
            #expect(read.bytes == (isThere ? model.bytes(range) : []))
        }
        let stored = try #require(ranges.randomElement(using: &random))
        let read = await collect(object.body.reader(range: stored))
        #expect(read.failure == nil)
        #expect(read.bytes == model.bytes(stored))
    }
}
