import Foundation
import LarderLMDB
import Testing

@Suite("The look at a file before LMDB maps it")
struct FileHeaderTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        self.directory = try TemporaryDirectory()
        self.path = self.directory.path + "/test.mdb"
    }

    /// A sound file with something in it.
    private func makeFile() throws -> Data {
        let environment = try Environment.open(
            path: self.path, options: EnvironmentOptions(mapSize: 1 << 20))
        let database = try environment.openDatabases(["a"], creating: true)[0]
        try environment.write { (transaction) throws(LMDBError) in
            for i in 0..<100 as Range<UInt8> {
                try transaction.put(database, [i].span, [UInt8](repeating: i, count: 900).span)
            }
        }
        try environment.extendFileToLastPage()
        environment.close()
        return try Data(contentsOf: URL(fileURLWithPath: self.path))
    }

    private func finding(_ data: Data) throws -> FileHeader.Finding {
        try data.write(to: URL(fileURLWithPath: self.path))
        return try FileHeader.check(path: self.path)
    }

    @Test("finds a file of LMDB's sound")
    func sound() throws {
        let data = try self.makeFile()
        guard case .sound(let mapSize, let lastPage, let pageSize) = try self.finding(data) else {
            Issue.record("not found sound")
            return
        }
        #expect(mapSize == 1 << 20)
        #expect(pageSize == 4096)
        #expect(UInt64(data.count) >= (lastPage + 1) * pageSize)
    }

    @Test("takes a missing and an empty file for a new one")
    func absent() throws {
        #expect(try FileHeader.check(path: self.path) == .absent)
        #expect(try self.finding(Data()) == .absent)
    }

    @Test("refuses noise of any size", arguments: [1, 15, 16, 151, 152, 4096, 8191, 8192, 100_000])
    func noise(size: Int) throws {
        var generator = SystemRandomNumberGenerator()
        let data = Data((0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) })
        guard case .unsound = try self.finding(data) else {
            Issue.record("noise of \(size) bytes was found sound")
            return
        }
    }

    @Test("refuses a directory")
    func notAFile() throws {
        guard case .unsound = try FileHeader.check(path: self.directory.path) else {
            Issue.record("a directory was found sound")
            return
        }
    }

    @Test("finds that a file was cut short", arguments: [1, 4096, 20_000])
    func cut(missing: Int) throws {
        let data = try self.makeFile()
        guard case .short = try self.finding(data.dropLast(missing)) else {
            Issue.record("a file without its last \(missing) bytes was found sound")
            return
        }
    }

    @Test(
        "refuses a meta page with any byte of its fixed part changed",
        arguments: [
            0, 10, 16, 17, 18, 19, 20, 40, 41,
        ])
    func meta(offset: Int) throws {
        for page in [0, 4096] {
            var data = try self.makeFile()
            data[page + offset] ^= 0x55
            guard case .unsound = try self.finding(data) else {
                Issue.record("byte \(offset) of the page at \(page) was not looked at")
                return
            }
            try FileManager.default.removeItem(atPath: self.path)
        }
    }

    @Test("refuses a file whose root pages are noise")
    func root() throws {
        var data = try self.makeFile()
        for i in 8192..<data.count { data[i] = UInt8(truncatingIfNeeded: i &* 31 &+ 7) }
        guard case .unsound = try self.finding(data) else {
            Issue.record("noise was taken for a root page")
            return
        }
    }
}
