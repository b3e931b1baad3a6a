import Foundation
import SeededNumbers
import Testing

@testable import LarderLMDB

/// A file with a tree of several levels, inline values and values on overflow pages.
struct SampleFile {
    let directory: TemporaryDirectory
    let path: String
    /// What is in it.
    var entries: [[UInt8]: [UInt8]] = [:]

    init(entries count: Int = 1500, seed: UInt64 = 1) throws {
        self.directory = try TemporaryDirectory()
        self.path = self.directory.path + "/sample.mdb"
        var random = SplitMix64(seed: seed)
        for number in 0..<count {
            let key = Self.key(number)
            let isBig = number % 50 == 7
            let length = isBig ? Int.random(in: 3000...20_000, using: &random) : number % 90
            self.entries[key] = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        }
        let environment = try self.open()
        let database = try environment.openDatabases(Self.names, creating: true)[1]
        let entries = self.entries
        // Several commits, so that there are free pages.
        for part in 0..<4 {
            try environment.write { (transaction) throws(LMDBError) in
                for number in stride(from: part, to: count, by: 4) {
                    let key = Self.key(number)
                    let value = entries[key] ?? []
                    try transaction.put(database, key.span, value.span)
                }
            }
        }
        try environment.extendFileToLastPage()
        environment.close()
    }

    static let names = ["empty", "full"]

    static func key(_ number: Int) -> [UInt8] {
        let mixed = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
        return (0..<4 + number % 5).map { UInt8(truncatingIfNeeded: mixed >> (56 - 8 * $0)) }
            + Array("\(number)".utf8)
    }

    func open(isReadOnly: Bool = false) throws(LMDBError) -> Environment {
        try Environment.open(
            path: self.path, options: EnvironmentOptions(mapSize: 64 << 20, isReadOnly: isReadOnly))
    }
}

extension Span<UInt8> {
    var array: [UInt8] { self.indices.map { self[$0] } }
}

@Suite("A snapshot read without LMDB")
struct SnapshotReadTests {
    @Test("has every key with its value, and no other")
    func get() throws {
        let sample = try SampleFile()
        let environment = try sample.open(isReadOnly: true)
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        let entries = sample.entries
        try environment.read { (transaction) throws(LMDBError) in
            #expect(try transaction.statistics(of: database).depth >= 2)
            #expect(try transaction.statistics(of: database).entries == UInt64(entries.count))
            for (key, value) in entries {
                #expect(try transaction.get(database, key.span) { $0.array } == value)
                let longer = key + [0]
                #expect(try transaction.contains(database, longer.span) == false)
            }
            #expect(try transaction.contains(database, Span()) == false)
        }
    }

    @Test("is walked in the order of the keys, from any key")
    func walk() throws {
        let sample = try SampleFile()
        let environment = try sample.open()
        let databases = try environment.openDatabases(SampleFile.names, creating: false)
        let keys = sample.entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
        try environment.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(databases[1]) { (cursor) throws(LMDBError) in
                #expect(try cursor.last { key, _ in key.array } == keys.last)
                var walked: [[UInt8]] = []
                var key = try cursor.first { key, _ in key.array }
                while let found = key {
                    walked.append(found)
                    key = try cursor.next { key, _ in key.array }
                }
                #expect(walked == keys)
                for (index, key) in keys.enumerated() {
                    let before = Array(key.dropLast()) + [(key.last ?? 1) &- 1, 255, 255]
                    #expect(try cursor.seek(atOrAfter: key.span) { key, _ in key.array } == key)
                    let next = index + 1 < keys.count ? keys[index + 1] : nil
                    #expect(try cursor.next { key, _ in key.array } == next)
                    if (key.last ?? 0) > 0 {
                        let found = try cursor.seek(atOrAfter: before.span) { key, _ in key.array }
                        #expect(found == keys.first { !$0.lexicographicallyPrecedes(before) })
                    }
                }
                #expect(try cursor.seek(atOrAfter: [255, 255, 255].span) { _, _ in 0 } == nil)
            }
            try transaction.withCursor(databases[0]) { (cursor) throws(LMDBError) in
                #expect(try cursor.first { _, _ in 0 } == nil)
                #expect(try cursor.next { _, _ in 0 } == nil)
                #expect(try cursor.last { _, _ in 0 } == nil)
                #expect(try cursor.seek(atOrAfter: [1].span) { _, _ in 0 } == nil)
            }
        }
    }

    @Test("without waiting gives what its own commit wrote, whatever earlier ones had there")
    func residentAfterCommits() throws {
        let sample = try SampleFile(entries: 3000)
        let environment = try sample.open()
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        let keys = sample.entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
        for round in 0..<12 {
            // Pages move, and those that are free are used again for others.
            try environment.write { (transaction) throws(LMDBError) in
                for (index, key) in keys.enumerated() where index % 3 == round % 3 {
                    let value = Array("\(round) \(index)".utf8)
                    try transaction.put(database, key.span, value.span)
                }
            }
            try environment.read { (transaction) throws(LMDBError) in
                var walked: [[UInt8]] = []
                var expected = keys.makeIterator()
                let isWhole = try transaction.forEachResident(database, from: Span()) {
                    key, value in
                    walked.append(key.array)
                    return expected.next() == key.array
                }
                // The kernel may take a page from memory at any time.
                if isWhole != nil { #expect(walked == keys) }
                for (index, key) in keys.enumerated() where index % 3 == round % 3 {
                    let found = try transaction.place(database, key.span, mayWait: false)
                    if case .at(let offset, let length) = found {
                        var value = [UInt8](repeating: 0, count: length)
                        let read = try readBytes(transaction, at: offset, &value, waits: true)
                        #expect(read == length)
                        #expect(value == Array("\(round) \(index)".utf8))
                    }
                    if case .absent = found { Issue.record("\(key) is absent") }
                }
            }
        }
    }

    @Test("gives what is in memory without waiting, also by its place in the file")
    func resident() throws {
        let sample = try SampleFile()
        let environment = try sample.open()
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        let entries = sample.entries
        try environment.read { (transaction) throws(LMDBError) in
            for (key, value) in entries {
                let place = try transaction.place(database, key.span, mayWait: false)
                guard case .at(let offset, value.count) = place else {
                    Issue.record("\(place) of \(value.count) bytes")
                    return
                }
                for waits in [true, false] {
                    var bytes = [UInt8](repeating: 0, count: value.count)
                    let read = try readBytes(transaction, at: offset, &bytes, waits: waits)
                    #expect(read == value.count)
                    #expect(bytes == value)
                }
            }
            #expect(try transaction.place(database, [0].span, mayWait: false) == .absent)
            #expect(try transaction.place(database, [0].span, mayWait: true) == .absent)
            var walked = 0
            let ended = try transaction.forEachResident(database, from: Span()) { key, value in
                walked += 1
                return entries[key.array] == value.array
            }
            #expect(ended == true)
            #expect(walked == entries.count)
            let stopped = try transaction.forEachResident(database, from: [128].span) { _, _ in
                false
            }
            #expect(stopped == false)
        }
    }

    @Test("has nothing of a database that was made after it was taken")
    func youngerDatabase() throws {
        let sample = try SampleFile(entries: 10)
        let environment = try sample.open()
        defer { environment.close() }
        try environment.read { (transaction) throws(LMDBError) in
            let database = try environment.openDatabases(["later"], creating: true)[0]
            try environment.write { (transaction) throws(LMDBError) in
                try transaction.put(database, [1].span, [2].span)
            }
            #expect(try transaction.contains(database, [1].span) == false)
            #expect(try transaction.statistics(of: database).entries == 0)
        }
        #expect(environment.damage == nil)
        let database = try environment.openDatabases(["later"], creating: false)[0]
        try environment.read { (transaction) throws(LMDBError) in
            #expect(try transaction.contains(database, [1].span))
        }
    }

    @Test("is read to the end of the file and not beyond")
    func endOfFile() throws {
        let sample = try SampleFile(entries: 10)
        let environment = try sample.open()
        let size = try environment.fileSize()
        try environment.read { (transaction) throws(LMDBError) in
            for waits in [true, false] {
                var bytes = [UInt8](repeating: 0, count: 100)
                let part = try readBytes(transaction, at: size - 10, &bytes, waits: waits)
                #expect(part == 10)
                #expect(try readBytes(transaction, at: size, &bytes, waits: waits) == 0)
                #expect(try readBytes(transaction, at: .max, &bytes, waits: waits) == 0)
            }
        }
    }
}

private func readBytes(
    _ transaction: borrowing ReadTransaction, at offset: UInt64, _ bytes: inout [UInt8], waits: Bool
) throws(LMDBError) -> Int? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { unsafe buffer.deallocate() }
    let count = try unsafe transaction.read(at: offset, into: buffer, waits: waits)
    for index in 0..<min(bytes.count, count ?? 0) { bytes[index] = unsafe buffer[index] }
    return count
}

@Suite("The pages that are used where they lie")
struct FrequentPagesTests {
    /// Asks for a page as a walk does, and takes it where it may.
    private func isOften(_ page: UInt64, _ pages: FrequentPages) -> Bool {
        switch pages.ask(for: page) {
        case .often: true
        case .rarely: false
        case .candidate: pages.take(page)
        }
    }

    @Test("are those that are asked for again, and never more than so many")
    func bound() {
        let pages = FrequentPages()
        var often: Set<UInt64> = []
        for _ in 0..<4 {
            for page in 2..<2002 where self.isOften(UInt64(page), pages) {
                often.insert(UInt64(page))
            }
        }
        #expect(often == Set(2..<258))
        #expect(pages.takeNew() == 256)
        #expect(pages.takeNew() == 0)
    }

    @Test("keep their places, whatever is asked for between")
    func kept() {
        let pages = FrequentPages()
        #expect(!self.isOften(7, pages))
        #expect(self.isOften(7, pages))
        for page in 10_000..<40_000 {
            _ = self.isOften(UInt64(page), pages)
            #expect(self.isOften(7, pages))
        }
    }

    @Test("are others when others are asked for")
    func lives() {
        let pages = FrequentPages()
        for page in UInt64(2)..<258 { for _ in 0..<2 { _ = self.isOften(page, pages) } }
        #expect(!self.isOften(300, pages) && !self.isOften(300, pages))
        for page in 100_000..<170_000 { _ = pages.ask(for: UInt64(page)) }
        _ = self.isOften(300, pages)
        #expect(self.isOften(300, pages))
    }

    @Test("are others after a commit where there is no room for more, and only there")
    func commits() {
        let pages = FrequentPages()
        for page in UInt64(2)..<257 { for _ in 0..<2 { _ = self.isOften(page, pages) } }
        pages.committed()
        #expect(self.isOften(2, pages))
        for _ in 0..<2 { _ = self.isOften(257, pages) }
        #expect(!self.isOften(300, pages) && !self.isOften(300, pages))
        pages.committed()
        #expect(!self.isOften(2, pages))
        _ = self.isOften(300, pages)
        #expect(self.isOften(300, pages))
    }
}
