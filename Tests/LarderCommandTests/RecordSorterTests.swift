import Foundation
import SeededNumbers
import Testing

@testable import larder

@Suite("Sorting in bounded memory")
struct RecordSorterTests {
    private static func records(_ count: Int, seed: UInt64) -> [[UInt8]] {
        var numbers = SplitMix64(seed: seed)
        return (0..<count).map { _ in
            // Few letters and short ones, so that many begin alike and some are the same.
            (0..<Int.random(in: 0..<14, using: &numbers)).map { _ in
                UInt8.random(in: 97...99, using: &numbers)
            }
        }
    }

    /// What a sorter makes of them, and how many files it took.
    private func sorted(
        _ records: [[UInt8]], wanted: Int? = nil, isReversed: Bool = false,
        limits: RecordSorter.Limits
    ) throws -> (records: [[UInt8]], files: Int) {
        var files = 0
        var sorter = RecordSorter(wanted: wanted, isReversed: isReversed, limits: limits) {
            () throws(CommandFailure) in
            files += 1
            return try TemporaryFile()
        }
        for record in records { try sorter.add(record) }
        var all: [[UInt8]] = []
        try sorter.finish {
            all.append($0)
            return true
        }
        return (all, files)
    }

    private static func plain(_ records: [[UInt8]], isReversed: Bool) -> [[UInt8]] {
        records.sorted {
            isReversed ? $1.lexicographicallyPrecedes($0) : $0.lexicographicallyPrecedes($1)
        }
    }

    @Test(
        "gives what a plain sort gives, with runs of three records and merges of two runs",
        arguments: [0, 1, 2, 3, 4, 6, 7, 12, 100, 200], [false, true])
    func external(_ count: Int, _ isReversed: Bool) throws {
        let records = Self.records(count, seed: UInt64(count))
        let limits = RecordSorter.Limits(runRecords: 3, fanIn: 2, bufferBytes: 64)
        let (all, files) = try self.sorted(records, isReversed: isReversed, limits: limits)
        #expect(all == Self.plain(records, isReversed: isReversed))
        #expect((files > 0) == (count > 3))
        #expect((files > 1) == (count > 6))
    }

    @Test("the bound on bytes makes runs, too", arguments: [64, 200, 5000])
    func bytes(_ runBytes: Int) throws {
        let records = Self.records(400, seed: 9)
        let limits = RecordSorter.Limits(runBytes: runBytes, bufferBytes: 64)
        let (all, files) = try self.sorted(records, limits: limits)
        #expect(all == Self.plain(records, isReversed: false))
        #expect(files > 0)
    }

    @Test(
        "the first so many are those of the whole, whether memory suffices or not",
        arguments: [0, 1, 2, 3, 10, 499, 500, 501], [3, 50, 100_000])
    func wanted(_ wanted: Int, _ runRecords: Int) throws {
        let records = Self.records(500, seed: 3)
        let limits = RecordSorter.Limits(runRecords: runRecords, fanIn: 4, bufferBytes: 32)
        for isReversed in [false, true] {
            let (all, _) = try self.sorted(
                records, wanted: wanted, isReversed: isReversed, limits: limits)
            #expect(all == Array(Self.plain(records, isReversed: isReversed).prefix(wanted)))
        }
    }

    @Test("few are kept where few are wanted, and no file is made")
    func dropping() throws {
        var sorter = RecordSorter(wanted: 10) { () throws(CommandFailure) in
            Issue.record("a file")
            return try TemporaryFile()
        }
        for number in (0..<100_000).reversed() {
            try sorter.add(Array(String(format: "%06d", number).utf8))
            #expect(sorter.count <= 1024)
        }
        var first: [String] = []
        try sorter.finish {
            first.append(String(decoding: $0, as: UTF8.self))
            return true
        }
        #expect(first == (0..<10).map { String(format: "%06d", $0) })
    }

    @Test("who has heard enough is told no more")
    func stopping() throws {
        for runRecords in [3, 1000] {
            var sorter = RecordSorter(limits: .init(runRecords: runRecords))
            for record in Self.records(100, seed: 1) { try sorter.add(record) }
            var heard = 0
            try sorter.finish { _ in
                heard += 1
                return heard < 5
            }
            #expect(heard == 5)
        }
    }

    @Test("a directory that is not there is named, with what to do about it")
    func directory() {
        #expect(
            throws: CommandFailure(
                .cannotCreate,
                "/nowhere/at/all: cannot make a temporary file: No such file or directory",
                remedy: "set TMPDIR to a directory with room, or give --limit")
        ) { try TemporaryFile(directory: "/nowhere/at/all") }
    }

    @Test("a temporary file has no name, and gives back what it was given")
    func file() throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-sort-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let file = try TemporaryFile(directory: directory)
        let bytes = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        try file.append(bytes)
        try file.flush()
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        #expect(file.size == 700_000)
        #expect(try file.read(700_001, from: 0) == bytes)
        #expect(try file.read(10, from: 699_995) == Array(bytes.suffix(5)))
        #expect(try file.read(10, from: 800_000).isEmpty)
    }
}
