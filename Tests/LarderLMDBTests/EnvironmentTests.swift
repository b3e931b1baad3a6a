import Foundation
import Synchronization
import Testing

@testable import LarderLMDB

/// A directory that goes away with the test.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-lmdb-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        self.path = url.path
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.path)
    }
}

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite("An LMDB environment")
struct EnvironmentTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        self.directory = try TemporaryDirectory()
        self.path = self.directory.path + "/test.mdb"
    }

    private func open(
        mapSize: UInt64 = 1 << 20, isReadOnly: Bool = false
    ) throws(LMDBError) -> Environment {
        try Environment.open(
            path: self.path,
            options: EnvironmentOptions(mapSize: mapSize, isReadOnly: isReadOnly))
    }

    @Test("gives back what was committed, also after it was opened again")
    func roundTrip() throws {
        let key = bytes("key")
        do {
            let environment = try self.open()
            let database = try environment.openDatabases(["a"], creating: true)[0]
            try environment.write { (transaction) throws(LMDBError) in
                try transaction.put(database, key.span, bytes("value").span)
            }
            environment.close()
        }
        let environment = try self.open()
        let database = try environment.openDatabases(["a"], creating: false)[0]
        let value = try environment.read { (transaction) throws(LMDBError) in
            try transaction.get(database, key.span) { span in
                span.indices.map { span[$0] }
            }
        }
        #expect(value == bytes("value"))
        environment.close()
    }

    @Test("forgets what a throwing body wrote")
    func abort() throws {
        let environment = try self.open()
        let database = try environment.openDatabases(["a"], creating: true)[0]
        let key = bytes("key")
        #expect(throws: LMDBError(.other, operation: "test")) {
            try environment.write { (transaction) throws(LMDBError) in
                try transaction.put(database, key.span, key.span)
                throw LMDBError(.other, operation: "test")
            }
        }
        let isThere = try environment.read { (transaction) throws(LMDBError) in
            try transaction.contains(database, key.span)
        }
        #expect(!isThere)
    }

    @Test("is opened once in a process, by whatever path, and can be shared")
    func secondOpening() throws {
        let environment = try self.open()
        // The directory's: one of the file's own is not followed.
        let directory = self.directory.path + "/link"
        try FileManager.default.createSymbolicLink(
            atPath: directory, withDestinationPath: self.directory.path)
        let link = directory + self.path.dropFirst(self.directory.path.count)
        let error = #expect(throws: LMDBError.self) {
            try Environment.open(path: link, options: EnvironmentOptions())
        }
        #expect(error?.code == .alreadyOpen)
        #expect(Environment.shared(path: link) === environment)
        environment.close()
        #expect(Environment.shared(path: link) == nil)
        try self.open().close()
    }

    @Test("refuses what begins after its closing, and lets end what began before")
    func closing() throws {
        let environment = try self.open()
        let database = try environment.openDatabases(["a"], creating: true)[0]
        let entries = try environment.read { (transaction) throws(LMDBError) in
            environment.close()
            return try transaction.statistics(of: database).entries
        }
        #expect(entries == 0)
        let error = #expect(throws: LMDBError.self) {
            try environment.read { (_) throws(LMDBError) in }
        }
        #expect(error?.code == .closed)
        environment.close()
        // Really closed: its place in the registry is free.
        try self.open().close()
    }

    @Test("tells its closing when the last that began before has ended, also to who asks late")
    func closingTold() throws {
        let environment = try self.open()
        let told = Mutex<[Int]>([])
        try environment.read { (_) throws(LMDBError) in
            environment.close { told.withLock { $0.append(1) } }
            environment.close { told.withLock { $0.append(2) } }
            environment.close()
            #expect(told.withLock { $0 } == [])
        }
        #expect(told.withLock { $0 } == [1, 2])
        environment.close { told.withLock { $0.append(3) } }
        #expect(told.withLock { $0 } == [1, 2, 3])
    }

    @Test("leaves no descriptor of its files to other programs", arguments: [false, true])
    func descriptors(isReadOnly: Bool) throws {
        try self.open().close()
        let environment = try self.open(isReadOnly: isReadOnly)
        defer { environment.close() }
        var found = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            let path = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/" + name)
            guard let path, path.hasPrefix(self.path), let number = Int32(name) else { continue }
            found += 1
            #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0, "\(path)")
        }
        #expect(found >= 2)
    }

    @Test("says that the map is full, and goes on")
    func fullMap() throws {
        let environment = try self.open(mapSize: 64 << 10)
        let database = try environment.openDatabases(["a"], creating: true)[0]
        let error = #expect(throws: LMDBError.self) {
            try environment.write { (transaction) throws(LMDBError) in
                for i in 0..<100 {
                    try transaction.put(database, [UInt8(i)].span, reserving: 4000) { span in
                        for j in span.indices { span[j] = 1 }
                    }
                }
            }
        }
        #expect(error?.code == .mapFull)
        try environment.write { (transaction) throws(LMDBError) in
            try transaction.put(database, [1].span, [1].span)
        }
    }

    @Test("walks entries in the order of their keys, and deletes on the way")
    func cursor() throws {
        let environment = try self.open()
        let database = try environment.openDatabases(["a"], creating: true)[0]
        try environment.write { (transaction) throws(LMDBError) in
            for i in [5, 1, 4, 2, 3] as [UInt8] {
                try transaction.put(database, [i].span, [i].span)
            }
        }
        let visited = try environment.write { (transaction) throws(LMDBError) in
            try transaction.reading.withCursor(database) { (cursor) throws(LMDBError) in
                var visited: [UInt8] = []
                var key = try cursor.seek(atOrAfter: [2].span) { key, _ in key[0] }
                while let found = key {
                    visited.append(found)
                    if found % 2 == 0 { try cursor.delete() }
                    key = try cursor.next { key, _ in key[0] }
                }
                return visited
            }
        }
        #expect(visited == [2, 3, 4, 5])
        let statistics = try environment.read { (transaction) throws(LMDBError) in
            try transaction.statistics(of: database)
        }
        #expect(statistics.entries == 3)
    }

    @Test("cannot be written to where it is open for reading only")
    func readOnly() throws {
        let writer = try self.open()
        _ = try writer.openDatabases(["a"], creating: true)
        writer.close()
        let environment = try self.open(isReadOnly: true)
        let error = #expect(throws: LMDBError.self) {
            try environment.write { (_) throws(LMDBError) in }
        }
        #expect(error?.code == .permissionDenied)
        #expect(try environment.openDatabases(["a"], creating: false).count == 1)
        let missing = #expect(throws: LMDBError.self) {
            try environment.openDatabases(["b"], creating: false)
        }
        #expect(missing?.code == .notFound)
    }

    @Test("serves many threads at once")
    func threads() async throws {
        let environment = try self.open()
        let database = try environment.openDatabases(["a"], creating: true)[0]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for i in 0..<50 {
                        let key = [UInt8(task), UInt8(i)]
                        try environment.write { (transaction) throws(LMDBError) in
                            try transaction.put(database, key.span, key.span)
                        }
                        let isThere = try environment.read { (transaction) throws(LMDBError) in
                            try transaction.contains(database, key.span)
                        }
                        #expect(isThere)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try environment.clearStaleReaders() == 0)
        #expect(try environment.information().mapSize == 1 << 20)
    }

    /// Pages of the file's map that are resident in this process, from proc(5).
    private func residentKibibytes() throws -> Int {
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
        let smaps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        var isOurs = false
        var sum = 0
        for line in smaps.split(separator: "\n") {
            if line.contains(" r--s ") || line.contains("-p ") || line.contains("-s ") {
                isOurs = line.hasSuffix(self.path)
            } else if isOurs, line.hasPrefix("Rss:") {
                sum += Int(line.split(separator: " ").dropFirst().first ?? "") ?? 0
            }
        }
        return sum
    }

    @Test("gives the pages of its map back, and still reads them")
    func giveBack() throws {
        let environment = try self.open(mapSize: 64 << 20)
        let database = try environment.openDatabases(["a"], creating: true)[0]
        let value = [UInt8](repeating: 7, count: 65_520)
        try environment.write { (transaction) throws(LMDBError) in
            for n in 0..<200 { try transaction.put(database, bytes("\(n)").span, value.span) }
        }
        func readAll() throws -> Int {
            try environment.read { (transaction) throws(LMDBError) in
                var sum = 0
                for n in 0..<200 {
                    sum +=
                        try transaction.get(database, bytes("\(n)").span) { value in
                            stride(from: 0, to: value.count, by: 4096).count { value[$0] == 7 }
                        } ?? 0
                }
                return sum
            }
        }
        #expect(try readAll() == 200 * 16)
        #expect(try self.residentKibibytes() > 10_000)
        environment.giveBackPages()
        #expect(try self.residentKibibytes() < 1000)
        #expect(try readAll() == 200 * 16)
        environment.close()
        environment.giveBackPages()
    }

    @Test(
        "finds its map in a line of /proc/self/maps (proc(5))",
        arguments: [
            ("7f00-8f00 r--s 00000000 fe:00 42                  /a b/c.mdb", 42, 0x7f00..<0x8f00),
            ("7f00-8f00 r--s 00000000 fe:00 43 /c.mdb", 42, nil),
            ("7f00-8f00 r--s 00001000 fe:00 42 /c.mdb", 42, nil),
            ("7f00-8f00 rw-p 00000000 fe:00 42 /c.mdb", 42, nil),
            ("8f00-7f00 r--s 00000000 fe:00 42 /c.mdb", 42, nil), ("", 42, nil),
            ("x y z s 0", 0, nil),
        ] as [(String, UInt64, Range<UInt>?)])
    func mapLine(_ line: String, _ inode: UInt64, _ expected: Range<UInt>?) {
        let found = MapFinder.range(of: line, inode: inode)
        #expect(found?.range == expected)
        #expect(found?.device == expected.map { _ in "fe:00" })
    }

    @Test(
        "tells a map of its file from one with the same inode on another device",
        arguments: [(0xFE00, "fe:00"), (0x1_0301, "103:01"), (0x10_0301, "03:101")]
            as [(UInt64, String)])
    func device(_ number: UInt64, _ expected: String) {
        #expect(MapFinder.device(number) == expected)
    }
}
