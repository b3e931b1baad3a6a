import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Testing

@testable import LarderDisk

@Suite("A cache file, listed in steps", .timeLimit(.minutes(10)))
struct ListingTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func all(
        _ inspector: DiskInspector, where matches: (ListingFacts) -> Bool = { _ in true }
    ) throws -> (objects: [InspectedObject], walked: Int, steps: Int) {
        var all: (objects: [InspectedObject], walked: Int, steps: Int) = ([], 0, 0)
        var place: ListingPlace? = .start
        while let here = place {
            let step = try inspector.list(from: here, where: matches)
            all.objects += step.objects
            all.walked += step.walked
            all.steps += 1
            place = step.next
        }
        return all
    }

    @Test("meets each response once, and only those that are asked for")
    func steps() async throws {
        let store = try self.world.open(self.directory)
        for number in 0..<600 { await store.put(cacheKey("\(number)"), pattern(number % 3)) }
        await store.closed()
        let inspector = try DiskInspector(directory: self.directory.path)
        let all = try self.all(inspector)
        #expect(all.walked == 600)
        #expect(all.steps > 2)
        #expect(Set(all.objects.map(\.key)) == Set((0..<600).map { cacheKey("\($0)") }))
        let some = try self.all(inspector) { $0.bodyLength == 2 && $0.status == 200 }
        #expect(some.walked == 600)
        #expect(some.objects.count == 200)
        #expect(some.objects.allSatisfy { $0.bodyLength == 2 })
        #expect(try self.all(inspector) { $0.key == cacheKey("7") }.objects.count == 1)
        #expect(try self.all(inspector) { _ in false }.objects.isEmpty)
    }

    @Test("knows early what the whole record says")
    func facts() throws {
        for (index, status) in [200, 404, 599].enumerated() as EnumeratedSequence<[UInt16]> {
            var head = storedHead()
            head.status = StatusCode(status)
            let length = UInt64(index) << 40
            let record = ObjectRecord(
                key: cacheKey("\(index)"), head: head, trailers: Fields(), bodyLength: length,
                segmentCount: try #require(Segment.count(of: length)), hits: 1,
                lastUsed: Timestamp(seconds: 1), sequence: 2,
                standing: EvictionRules.Standing(queue: .main, uses: 2))
            let bytes = record.encoded()
            let decoded = try ObjectRecord.decode(bytes.span)
            #expect(
                try ObjectRecord.listingFacts(bytes.span)
                    == ListingFacts(
                        key: decoded.key, status: decoded.head.status.rawValue,
                        bodyLength: decoded.bodyLength))
            for count in 0..<bytes.count {
                let part = Array(bytes.prefix(count))
                #expect(throws: RecordDamage.self) { try ObjectRecord.listingFacts(part.span) }
            }
        }
    }

    @Test("rests as long as it likes while the writer goes on, and the file does not grow for it")
    func resting() async throws {
        let store = try self.world.open(self.directory)
        for number in 0..<600 { await store.put(cacheKey("\(number)"), pattern(10)) }
        func churn(_ count: Int) async {
            for number in 0..<count {
                let key = cacheKey("churn")
                let old = await store.find(key).map(\.id)
                await store.put(key, pattern(200_000, seed: UInt64(number)), replacing: old)
            }
            await store.flushed()
        }
        await churn(40)
        let before = self.directory.fileSize
        let inspector = try DiskInspector(directory: self.directory.path)
        let first = try inspector.list(from: .start)
        await churn(150)
        // A reader that saw all of them would have kept thirty million bytes from being used again.
        #expect(self.directory.fileSize < before + 5_000_000)
        var met = Set(first.objects.map(\.key))
        var place = first.next
        while let here = place {
            let step = try inspector.list(from: here)
            #expect(met.isDisjoint(with: step.objects.map(\.key)))
            met.formUnion(step.objects.map(\.key))
            place = step.next
        }
        #expect(met.isSuperset(of: (0..<600).map { cacheKey("\($0)") }))
        await store.closed()
    }

    @Test("is refused for a file of another format, with what to do about it", arguments: [0, 99])
    func format(_ format: UInt64) async throws {
        try await self.world.open(self.directory).closed()
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(mapSize: 64 << 20))
        let schema = try Schema(environment, creating: false)
        try environment.write { (transaction) throws(LMDBError) in
            var state = StoreMeta(seed: 1).encoded()
            state.replace(littleEndian: format, at: 8)
            state.replace(littleEndian: Checksum.record(state.span.extracting(8...)), at: 0)
            let key = StoreMeta.key
            try transaction.put(schema.meta, key.span, state.span)
        }
        environment.close()
        let error = #expect(throws: StoreError.self) {
            try DiskInspector(directory: self.directory.path)
        }
        #expect(error?.code == .damaged)
        #expect(error?.cause.contains("format \(format),") == true)
        #expect(error?.remedy.contains("look with the release that wrote it") == (format == 99))
    }

    @Test("tells of the files that were set aside")
    func setAside() async throws {
        #expect(SetAsideFile.all(in: self.directory.path).isEmpty)
        #expect(SetAsideFile.all(in: "/nowhere/at/all").isEmpty)
        try await self.world.open(self.directory).closed()
        let files = DiskFiles(directory: self.directory.path)
        let size = self.directory.fileSize
        let name = try files.setAside(second: 7)
        #expect(
            SetAsideFile.all(in: self.directory.path) == [SetAsideFile(name: name, bytes: size)])
    }
}
