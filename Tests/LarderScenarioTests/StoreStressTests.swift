import Foundation
import Glibc
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import SeededNumbers
import Testing

@testable import LarderProcess
@testable import LarderStress

/// What the stress program does to a store, run as a person would.
enum Stress {
    static let program =
        URL(fileURLWithPath: Program.larder).deletingLastPathComponent().path
        + "/LarderStress"

    static let compiler = ["/usr/bin/cc", "/usr/bin/clang", "/usr/bin/gcc"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// Builds the library that keeps a log of a disk, and lets it fail.
    static func library(in home: Home) async throws -> String {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../scripts/soak.d/disk.c").standardized.path
        let path = home.path + "/libdisk.so"
        let built = try await Program(
            Self.compiler ?? "/usr/bin/cc",
            ["-shared", "-fPIC", "-O2", "-o", path, source, "-ldl", "-lpthread"],
            environment: ["PATH": "/usr/bin:/bin", "TMPDIR": home.path]
        ).ended()
        guard built.status == 0 else { throw TimedOut(description: built.errText) }
        return path
    }

    /// Runs the program to its end, which must be a good one; what it said.
    @discardableResult
    static func run(
        in home: Home, _ arguments: [String], status: Int32 = 0,
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let program = try home.start(arguments, path: Self.program)
        // It has more to do than others, and may share the machine with them.
        for _ in 0..<8 where program.output.value.status == nil {
            try? await program.output.wait(for: "its end") { $0.status != nil }
        }
        let output = try await program.ended()
        #expect(
            output.status == status, "\(output.errText) \(output.outText)",
            sourceLocation: location)
        return output.outText
    }
}

@Suite("Durability", .timeLimit(.minutes(5)), .serialized)
struct StoreStressTests {
    @Test(
        "A writer killed at any instant leaves all that it acknowledged, and no wrong byte",
        arguments: [
            ["--life", "60"], ["--life", "60", "--small"], ["--life", "20"],
            ["--life", "150", "--small"],
        ])
    func killed(_ options: [String]) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let rounds = options.contains("150") ? "40" : "60"
            let said = try await Stress.run(in: home, ["kill", "--rounds", rounds] + options)
            #expect(said.hasPrefix("kills \(rounds), "))
        }
    }

    @Test(
        "A power failure at any instant leaves the last commit or the one before it, whole",
        .enabled(if: Stress.compiler != nil, "no C compiler"),
        arguments: [[], ["--fails-sync"], ["--fails-sync"]])
    func powerFailure(_ options: [String]) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let library = try await Stress.library(in: home)
            let said = try await Stress.run(
                in: home,
                ["power", "--library", library, "--cuts", "40", "--operations", "40"]
                    + options)
            #expect(said.hasPrefix("cuts 40, "))
        }
    }

    @Test(
        "A reader that stands still in a transaction, in another process, costs no more than storing",
        arguments: [SIGKILL, SIGTERM, SIGCONT])
    func standstill(_ signal: Int32) async throws {
        let home = try Home()
        let directory = home.path + "/cache"
        let capacity = ByteCount.mebibytes(4)
        let store = try StoreJudge.open(directory, capacity) { _ in }
        for version in 0..<100 as Range<UInt64> {
            await store.put(Int(version), Entry(version: version), 0..<40_000)
        }
        let reader = try Child(Stress.program, ["hold", directory])
        #expect(reader.line() == "held")
        reader.signal(SIGSTOP)
        // What is freed from now on cannot be used again.
        var stored = 0
        for version in 100..<400 as Range<UInt64> {
            let key = Int(version)
            if case .visible = await store.put(key, Entry(version: version), 0..<40_000) {
                stored += 1
            }
        }
        #expect(stored < 300)
        let data = try FileManager.default.attributesOfItem(atPath: directory + "/cache.mdb")
        #expect(try #require(data[.size] as? UInt64) <= capacity.bytes)
        // Gone, or on its way again: nothing is held back any more.
        if signal == SIGCONT {
            reader.signal(SIGCONT)
            reader.endInput()
            #expect(reader.wait() == 0)
        } else {
            reader.signal(signal)
            reader.signal(SIGCONT)
            #expect(reader.wait() == 128 + signal)
        }
        var outcome: SinkOutcome?
        var version: UInt64 = 400
        stored = 0
        let limit = ContinuousClock.now + .seconds(20)
        while stored < 100, ContinuousClock.now < limit {
            outcome = await store.put(Int(version), Entry(version: version), 0..<40_000)
            if case .visible = outcome { stored += 1 }
            version += 1
        }
        guard case .visible = outcome else {
            Issue.record("nothing is stored any more: \(String(describing: outcome))")
            return
        }
        await store.closed()
    }

    @Test("A cache that grows and changes can be opened for looking at any moment")
    func peeking() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let directory = home.path + "/cache"
            let writer = try Child(
                Stress.program,
                [
                    "load", directory, "--capacity", "\(256 << 20)", "--seed", "1",
                    "--first-version", "1", "--keys", "6000", "--quiet",
                ])
            #expect(writer.line() == "open")
            try await Stress.run(in: home, ["peek", directory, "--times", "600"])
            writer.signal(SIGKILL)
        }
    }

    @Test("The judge finds a flipped bit, a body of another URL and a version never written")
    func judge() async throws {
        let home = try Home()
        let directory = home.path + "/cache"
        let capacity = ByteCount.mebibytes(16)
        let store = try StoreJudge.open(directory, capacity) { _ in }
        for (key, version) in [(1, 7), (2, 9)] as [(Int, UInt64)] {
            await store.put(key, Entry(version: version), 0..<Content.length(key, version))
        }
        await store.closed()
        let judge = StoreJudge(directory: directory, capacity: capacity)
        let sound = try await judge.look()
        #expect(sound.objections.isEmpty)
        #expect(sound.entries == [1: Entry(version: 7), 2: Entry(version: 9)])

        // The head of one version, and the bytes of another of the same length at least.
        let again = try StoreJudge.open(directory, capacity) { _ in }
        let length = Content.length(3, 5)
        await again.put(3, Entry(version: 5), 0..<length, bytesOf: 4)
        await again.closed()
        #expect(try await judge.look().objections.count == 1)
        try await Stress.run(
            in: home, ["look", directory, "--capacity", "\(capacity.bytes)"], status: 1)
    }

    @Test("What was acknowledged, begun, or evicted may be found, and nothing else")
    func expectations() {
        var expectations = Expectations()
        let (old, new) = (Entry(version: 1), Entry(version: 2, ranges: [3..<9]))
        for line in [JournalLine.begin(1, old), .done(1), .begin(1, new)] {
            #expect(JournalLine(line.text.dropLast()) == line)
            expectations.hear(line)
        }
        for found in [old, new] {
            #expect(expectations.objection(to: found, of: 1, mayBeGone: false) == nil)
        }
        #expect(expectations.objection(to: nil, of: 1, mayBeGone: false) != nil)
        #expect(expectations.objection(to: nil, of: 1, mayBeGone: true) == nil)
        expectations.hear(.done(1))
        #expect(expectations.objection(to: old, of: 1, mayBeGone: true) != nil)
        expectations.hear(.begin(1, nil))
        #expect(expectations.objection(to: nil, of: 1, mayBeGone: false) == nil)
        expectations.hear(.left(1))
        #expect(expectations.objection(to: nil, of: 1, mayBeGone: false) != nil)
        #expect(expectations.objection(to: old, of: 2, mayBeGone: true) != nil)
    }
}

@Suite("A disk that loses its power, as the judge has it")
struct FailingDiskTests {
    /// A log of writes of eight equal bytes, `S` for a synchronisation and `F` for one that fails.
    private func log(_ steps: [(Int, UInt8)?], failing: Set<Int> = []) -> DiskLog {
        var data = Data()
        func put(_ value: UInt64, _ width: Int) {
            for index in 0..<width { data.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
        }
        for (index, step) in steps.enumerated() {
            put(step != nil ? 1 : failing.contains(index) ? 4 : 2, 4)
            put(0, 4)
            put(0, 8)
            put(UInt64(step?.0 ?? 0), 8)
            put(step == nil ? 0 : 8, 8)
            if let step { data.append(contentsOf: [UInt8](repeating: step.1, count: 8)) }
        }
        return DiskLog(data)
    }

    private func images(_ log: DiskLog, at index: Int) -> Set<[UInt8]> {
        var images = Set<[UInt8]>()
        for seed in 0..<200 as Range<UInt64> {
            var disk = FailingDisk(log, seed: seed)
            disk.advance(to: index)
            var random = SplitMix64(seed: seed)
            let image = disk.afterPowerFailure(&random)
            images.insert(stride(from: 0, to: image.count, by: 8).map { image[$0] })
        }
        return images
    }

    @Test("keeps what was synchronised, and any part of what came after it")
    func parts() {
        let log = self.log([(0, 1), nil, (8, 2), (16, 3), nil])
        #expect(self.images(log, at: 1) == [[], [1]])
        #expect(self.images(log, at: 2) == [[1]])
        #expect(self.images(log, at: 4) == [[1], [1, 2], [1, 0, 3], [1, 2, 3]])
        #expect(self.images(log, at: 5) == [[1, 2, 3]])
    }

    @Test("may have lost for good what a failed synchronisation was for")
    func failed() {
        let log = self.log([(0, 1), nil, (8, 2), nil, (16, 3), nil], failing: [3])
        #expect(self.images(log, at: 6) == [[1, 0, 3], [1, 2, 3]])
    }

    @Test("tears a write between sectors, and nowhere else")
    func torn() {
        var data = Data()
        for value in [1, 0, 0, 256, 4096] as [UInt64] {
            let width = value == 1 || data.count == 4 ? 4 : 8
            for index in 0..<width { data.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
        }
        data.append(contentsOf: [UInt8](repeating: 7, count: 4096))
        var seen = Set<Int>()
        for seed in 0..<300 as Range<UInt64> {
            var disk = FailingDisk(DiskLog(data), seed: seed)
            disk.advance(to: 1)
            var random = SplitMix64(seed: seed)
            let image = disk.afterPowerFailure(&random)
            for place in stride(from: 0, to: image.count, by: 512) {
                let bytes = image[place..<min(place + 512, image.count)].dropFirst(
                    place == 0 ? 256 : 0)
                #expect(Set(bytes).count == 1)
            }
            seen.insert(image.count { $0 == 7 })
        }
        #expect(seen.count > 5)
    }
}

extension DiskStore {
    /// Stores a body with the head of `key`, and the bytes that `other` would have.
    @discardableResult
    func put(
        _ key: Int, _ entry: Entry, _ range: Range<UInt64>, bytesOf other: Int? = nil
    ) async -> SinkOutcome? {
        let watch = SinkWatch()
        let sink = self.store(
            Content.head(key, entry), for: Content.key(key), length: range.upperBound,
            replacing: [], observer: watch)
        guard let sink else { return nil }
        sink.write(Content.bytes(other ?? key, entry.version, range))
        sink.commit(trailers: Fields())
        return await watch.end()
    }
}
