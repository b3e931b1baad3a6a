import Foundation
import Glibc
import SeededNumbers
import Testing

@testable import LarderLMDB

/// Writes to a file past LMDB, as another program does that takes it for its own.
private struct Vandal {
    enum Manner: CaseIterable {
        case noise
        /// All bits set.
        case ones
        /// A page of a tree by its number and flags, and nonsense in every other respect.
        case lookalike
    }

    enum Target {
        /// The root of the tree of free pages.
        case free
        /// The root of the tree of names.
        case names
        /// All from this one on.
        case from(Int)
        case one(Int)

        func pages(of file: [UInt8]) throws -> [Int] {
            let count = file.count / 4096
            let metas = [0, 1].compactMap { number in
                MetaRecord(file.span.extracting((number * 4096)...), number: UInt64(number))
            }
            let meta = try #require(metas.max { $0.transaction < $1.transaction })
            switch self {
            case .free: return [Int(meta.free.root)]
            case .names: return [Int(meta.names.root)]
            case .from(let first): return Array(first..<count)
            case .one(let page): return page < count ? [page] : []
            }
        }
    }

    let path: String
    let manner: Manner

    /// Writes to pages, and makes sure that the time of it is another than that of the last commit,
    /// however coarse the file system's clock.
    func strike(_ target: Target, at second: Int) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: self.path))
        let data = try Data(contentsOf: URL(fileURLWithPath: self.path))
        for page in try target.pages(of: Array(data)) {
            var random = SplitMix64(seed: UInt64(page))
            try handle.seek(toOffset: UInt64(page) * 4096)
            try handle.write(contentsOf: Data(self.bytes(page, &random)))
        }
        var times = [timespec(tv_sec: second, tv_nsec: 0), timespec(tv_sec: second, tv_nsec: 0)]
        let code = unsafe futimens(handle.fileDescriptor, &times)
        try #require(code == 0)
        try handle.close()
    }

    private func bytes(_ page: Int, _ random: inout SplitMix64) -> [UInt8] {
        switch self.manner {
        case .noise: return (0..<4096).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        case .ones: return [UInt8](repeating: 0xFF, count: 4096)
        case .lookalike:
            var bytes = (0..<4096).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            for i in 0..<8 { bytes[i] = UInt8(truncatingIfNeeded: page >> (8 * i)) }
            bytes[10] = 2
            bytes[11] = 0
            return bytes
        }
    }
}

@Suite("A file that others write to while it is open")
struct ForeignWriteTests {
    /// When in the life of a transaction the pages are written to.
    enum Moment: CaseIterable {
        case betweenTransactions
        case inTheMidst
        case beforeTheCommit
    }

    /// Writes, has pages overwritten, and writes on; the error that this ends in.
    private func use(
        _ sample: SampleFile, _ data: Data, _ vandal: Vandal, _ target: Vandal.Target,
        _ moment: Moment
    ) throws -> LMDBError? {
        try data.write(to: URL(fileURLWithPath: sample.path))
        let environment = try sample.open()
        defer { environment.close() }
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        let keys = sample.entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
        var second = 1_000_000_000
        func strike() {
            second += 1
            #expect(throws: Never.self) { try vandal.strike(target, at: second) }
        }
        do throws(LMDBError) {
            for part in 0..<4 {
                if part == 2, moment == .betweenTransactions { strike() }
                try environment.write { (transaction) throws(LMDBError) in
                    for (index, key) in keys.enumerated() where index % 4 == part {
                        if part == 2, moment == .inTheMidst, index == keys.count / 2 + 2 {
                            strike()
                        }
                        if index % 3 == 0 {
                            _ = try transaction.delete(database, key.span)
                        } else {
                            let value = [UInt8](repeating: 1, count: index * 7 % 3000)
                            try transaction.put(database, key.span, value.span)
                        }
                    }
                    if part == 2, moment == .beforeTheCommit { strike() }
                }
            }
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "is not trusted for having been sound, nor for having been written here",
        arguments: Moment.allCases, Vandal.Manner.allCases)
    private func everyPage(_ moment: Moment, _ manner: Vandal.Manner) throws {
        let sample = try SampleFile(entries: 400)
        let data = try Data(contentsOf: URL(fileURLWithPath: sample.path))
        let vandal = Vandal(path: sample.path, manner: manner)
        let pages = stride(from: 2, to: data.count / 4096, by: 31)
        let targets =
            [.free, .names] + pages.map { .one($0) } + pages.map { .from($0) } as [Vandal.Target]
        var refused = 0
        for target in targets {
            guard let error = try self.use(sample, data, vandal, target, moment) else { continue }
            #expect(error.code == .corrupted, "\(target): \(error)")
            refused += 1
        }
        #expect(refused >= 2)
    }

    @Test("is looked at anew after a transaction of one's own that changed nothing meanwhile")
    func unchanged() throws {
        let sample = try SampleFile(entries: 100)
        let environment = try sample.open()
        defer { environment.close() }
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        try environment.write { (transaction) throws(LMDBError) in
            try transaction.put(database, [1].span, [1].span)
        }
        func strike() {
            #expect(throws: Never.self) {
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1)],
                    ofItemAtPath: sample.path)
            }
        }
        for isForeign in [false, true] {
            let last = try environment.information().lastTransaction
            let found = try environment.write { (transaction) throws(LMDBError) -> [Bool] in
                let isThere = try transaction.reading.contains(database, [1].span)
                let isDeleted = try transaction.delete(database, [2].span)
                if isForeign { strike() }
                return [isThere, isDeleted, transaction.hasChanged]
            }
            #expect(found == [true, false, false])
            #expect(try environment.information().lastTransaction == last)
            #expect(environment.vetting.isFileUnchanged == !isForeign)
        }
    }

    @Test("by a program that changes nothing goes on being used")
    func harmless() throws {
        let sample = try SampleFile(entries: 300)
        let environment = try sample.open()
        defer { environment.close() }
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        for (number, key) in sample.entries.keys.enumerated() {
            if number % 10 == 0 {
                // A page of the file, written over by itself.
                let page = Data(
                    try Data(contentsOf: URL(fileURLWithPath: sample.path)).suffix(4096))
                let handle = try FileHandle(forUpdating: URL(fileURLWithPath: sample.path))
                try handle.seek(toOffset: try handle.seekToEnd() - 4096)
                try handle.write(contentsOf: page)
                try handle.close()
            }
            let isThere = try environment.write { (transaction) throws(LMDBError) in
                try transaction.delete(database, key.span)
            }
            #expect(isThere)
        }
    }
}

@Suite("A write of one's own that changes no page")
struct ExtensionTests {
    @Test("does not look like somebody else's")
    func extended() throws {
        let sample = try SampleFile(entries: 100)
        let environment = try sample.open()
        defer { environment.close() }
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        try environment.write { (transaction) throws(LMDBError) in
            // Given free before it is ever written, so that the file ends before it.
            let value = [UInt8](repeating: 1, count: 1 << 20)
            try transaction.put(database, [1].span, value.span)
            try transaction.delete(database, [1].span)
        }
        let size = try environment.fileSize()
        #expect(environment.vetting.isFileUnchanged)
        try environment.extendFileToLastPage()
        #expect(try environment.fileSize() > size)
        #expect(environment.vetting.isFileUnchanged)
        let url = URL(fileURLWithPath: sample.path)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: url.path)
        #expect(!environment.vetting.isFileUnchanged)
    }
}
