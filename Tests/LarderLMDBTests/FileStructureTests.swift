import Foundation
import SeededNumbers
import Testing

@testable import LarderLMDB

@Suite("The check of a whole file")
struct FileStructureTests {
    private func check(_ data: Data, _ sample: SampleFile) throws -> FileReport {
        try data.write(to: URL(fileURLWithPath: sample.path))
        return try FileStructure.check(path: sample.path)
    }

    @Test("finds a sound file sound, with all that it holds")
    func sound() throws {
        let sample = try SampleFile(entries: 1000)
        var told: [UInt64] = []
        let report = try FileStructure.check(path: sample.path) { done, total in
            told.append(done)
            #expect(done <= total)
        }
        #expect(report.problems == [])
        #expect(report.isSound)
        #expect(report.leakedPages == 0)
        #expect(report.freePages > 0)
        #expect(report.usedPages + report.freePages == report.lastPage + 1)
        #expect(report.trees.map(\.name) == SampleFile.names.map { Array($0.utf8) })
        #expect(report.trees.last?.entries == UInt64(sample.entries.count))
        #expect(told.last == report.lastPage + 1)
        let environment = try sample.open(isReadOnly: true)
        let databases = try environment.openDatabases(SampleFile.names, creating: false)
        let pages = try environment.read { (transaction) throws(LMDBError) in
            try transaction.pagesInUse(databases)
        }
        #expect(pages == report.usedPages)
        let error = #expect(throws: LMDBError.self) { try FileStructure.check(path: sample.path) }
        #expect(error?.code == .alreadyOpen)
    }

    @Test("names each page that is damaged", arguments: [1, 2] as [UInt64])
    func everyPage(seed: UInt64) throws {
        let sample = try SampleFile(entries: 400, seed: seed)
        let data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        var random = SplitMix64(seed: seed)
        var found = 0
        for page in 2..<data.count / 4096 {
            var damaged = data
            let noise = (0..<512).flatMap { _ in
                [UInt8](
                    repeating: seed == 1 ? 0 : UInt8(truncatingIfNeeded: random.next()), count: 8)
            }
            damaged.replaceSubrange(page * 4096..<(page + 1) * 4096, with: noise)
            let report = try self.check(damaged, sample)
            if report.isSound { continue }
            found += 1
            #expect(report.problems.contains { $0.page == UInt64(page) }, "page \(page)")
        }
        #expect(found > 15)
    }

    @Test("takes the other meta page where one is damaged", arguments: [0, 1] as [UInt64])
    func meta(page: UInt64) throws {
        let sample = try SampleFile(entries: 400)
        var data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        let whole = try FileStructure.check(path: sample.path)
        for offset in 0..<4096 { data[Int(page) * 4096 + offset] = 0x5A }
        let rest = try self.check(data, sample)
        #expect(rest.isSound)
        // Each commit writes the meta page that the one before has left.
        #expect(
            rest.transaction == whole.transaction - (whole.transaction % 2 == page ? 1 : 0))
        for offset in 0..<8192 { data[offset] = 0x5A }
        let error = #expect(throws: LMDBError.self) { try self.check(data, sample) }
        #expect(error?.code == .corrupted)
    }

    @Test("misses the pages of a file that was cut short")
    func cut() throws {
        let sample = try SampleFile(entries: 400)
        let data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        for pages in stride(from: 3, to: data.count / 4096 - 2, by: 5) {
            let report = try self.check(data.prefix(pages * 4096), sample)
            #expect(!report.isSound, "\(pages) pages")
        }
    }

    @Test("is in bounded numbers, whatever is wrong")
    func limit() throws {
        let sample = try SampleFile(entries: 2000)
        var data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        for page in 2..<data.count / 4096 where data[page * 4096 + 10] == 2 {
            if data[page * 4096 + 12] != 0 { data[page * 4096 + 20] ^= 0xFF }
        }
        let report = try self.check(data, sample)
        #expect(report.problems.count <= FileStructure.problemLimit)
        #expect(report.problemCount > 0)
    }
}
