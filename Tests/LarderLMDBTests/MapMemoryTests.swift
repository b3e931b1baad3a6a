import Foundation
import LarderLMDB
import Testing

/// How much of the map of the file at `path` is resident in this process, in bytes (proc_pid_smaps(5)).
private func residentBytes(mapOf path: String) throws -> Int {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/smaps"))
    let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    var isOurs = false
    var sum = 0
    for line in text.split(separator: "\n") {
        let words = line.split(separator: " ")
        if words[0].contains("-") { isOurs = line.hasSuffix(path) }
        if isOurs, words[0] == "Rss:", let kibibytes = Int(words[1]) { sum += kibibytes * 1024 }
    }
    return sum
}

@Suite("What was read of the map does not stay resident")
struct MapMemoryTests {
    private static let valueSize = 65_520
    private static let count = 400
    private let directory: TemporaryDirectory
    private let environment: Environment
    private let database: Database

    init() throws {
        self.directory = try TemporaryDirectory()
        self.environment = try Environment.open(
            path: self.directory.path + "/test.mdb", options: EnvironmentOptions(mapSize: 64 << 20))
        self.database = try self.environment.openDatabases(["a"], creating: true)[0]
        let database = self.database
        try self.environment.write { (transaction) throws(LMDBError) in
            for number in 0..<Self.count {
                let value = [UInt8](repeating: UInt8(number % 251), count: Self.valueSize)
                try transaction.put(database, Self.key(number).span, value.span)
            }
        }
    }

    private static func key(_ number: Int) -> [UInt8] {
        [UInt8(number / 256), UInt8(number % 256)]
    }

    /// Two bytes of each value, and the most that was resident at a time.
    private func readAll() throws -> (bytes: [UInt8], peak: Int) {
        let database = self.database
        var bytes: [UInt8] = []
        var peak = 0
        for part in 0..<10 {
            bytes += try self.environment.read { (transaction) throws(LMDBError) in
                var bytes: [UInt8] = []
                for number in part * Self.count / 10..<(part + 1) * Self.count / 10 {
                    let ends = try transaction.get(database, Self.key(number).span) {
                        [$0[0], $0[Self.valueSize - 1]]
                    }
                    bytes += ends ?? []
                }
                return bytes
            }
            peak = max(peak, try residentBytes(mapOf: self.directory.path + "/test.mdb"))
        }
        return (bytes, peak)
    }

    @Test("reading all of it keeps a part resident, and reads the same a second time")
    func reading() throws {
        let expected = (0..<Self.count).flatMap { [UInt8($0 % 251), UInt8($0 % 251)] }
        for _ in 0..<2 {
            let (bytes, peak) = try self.readAll()
            #expect(bytes == expected)
            #expect(peak > 0)
            #expect(peak < Self.count * Self.valueSize / 2)
        }
    }

    @Test("a write transaction keeps what it has changed while the map is given back")
    func changed() throws {
        let database = self.database
        let areNew = try self.environment.write { (transaction) throws(LMDBError) in
            let new = [UInt8](repeating: 255, count: Self.valueSize)
            for number in 0..<Self.count / 2 {
                try transaction.put(database, Self.key(number).span, new.span)
            }
            var areNew = true
            for number in 0..<Self.count {
                let isNew = try transaction.reading.get(database, Self.key(number).span) {
                    $0[0] == 255 && $0[Self.valueSize - 1] == 255
                }
                areNew = areNew && isNew == (number < Self.count / 2)
            }
            return areNew
        }
        #expect(areNew)
    }
}
