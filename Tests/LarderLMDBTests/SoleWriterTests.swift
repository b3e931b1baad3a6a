import Foundation
import Glibc
import Testing

@testable import LarderLMDB

@Suite("An environment that nobody else may commit to")
struct SoleWriterTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        self.directory = try TemporaryDirectory()
        self.path = self.directory.path + "/test.mdb"
    }

    private static func open(
        _ path: String, isSoleWriter: Bool
    ) throws(LMDBError) -> (Environment, Database) {
        let environment = try Environment.open(
            path: path,
            options: EnvironmentOptions(
                mapSize: 1 << 20, durability: .dataOnly, isSoleWriter: isSoleWriter))
        return (environment, try environment.openDatabases(["a"], creating: true)[0])
    }

    private static func write(
        _ number: UInt8, _ environment: Environment, _ database: Database
    ) throws(LMDBError) {
        try environment.write { (transaction) throws(LMDBError) in
            try transaction.put(database, [number].span, [number].span)
        }
    }

    private func writeElsewhere() async {
        let path = self.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let (environment, database) = try Self.open(path, isSoleWriter: false)
            try Self.write(200, environment, database)
            environment.close()
            exit(7)
        }
    }

    @Test("takes none of its own commits for another's, whatever became of them")
    func own() throws {
        let (environment, database) = try Self.open(self.path, isSoleWriter: true)
        for number in 0..<20 as Range<UInt8> {
            try Self.write(number, environment, database)
            // Nothing is written, and nothing may be.
            try environment.write { (_) throws(LMDBError) in }
            #expect(throws: LMDBError(.other, operation: "test")) {
                try environment.write { (transaction) throws(LMDBError) in
                    try transaction.put(database, [number].span, [1].span)
                    throw LMDBError(.other, operation: "test")
                }
            }
            let full = #expect(throws: LMDBError.self) {
                try environment.write { (transaction) throws(LMDBError) in
                    try transaction.put(database, [255].span, reserving: 2 << 20) { _ in }
                }
            }
            #expect(full?.code == .mapFull)
            _ = try environment.openDatabases(["a"], creating: true)
        }
        environment.close()
        let (again, same) = try Self.open(self.path, isSoleWriter: true)
        try Self.write(1, again, same)
        again.close()
    }

    @Test("refuses all once somebody else has committed", arguments: [true, false])
    func foreign(isSoleWriter: Bool) async throws {
        let (environment, database) = try Self.open(self.path, isSoleWriter: isSoleWriter)
        defer { environment.close() }
        try Self.write(1, environment, database)
        await self.writeElsewhere()
        guard isSoleWriter else { return try Self.write(2, environment, database) }
        for _ in 0..<2 {
            let error = #expect(throws: LMDBError.self) {
                try Self.write(2, environment, database)
            }
            #expect(error?.description == "damaged: another process has written to it")
        }
        let error = #expect(throws: LMDBError.self) {
            try environment.read { (_) throws(LMDBError) in }
        }
        #expect(error?.code == .corrupted)
    }

    @Test("sees the commit of one who counts by another table of readers")
    func otherTable() async throws {
        let (environment, database) = try Self.open(self.path, isSoleWriter: true)
        defer { environment.close() }
        try Self.write(1, environment, database)
        let table = self.path + "-lock"
        #expect(try environment.isReaderTable(at: table))
        try FileManager.default.removeItem(atPath: table)
        #expect(try !environment.isReaderTable(at: table))
        await self.writeElsewhere()
        #expect(try !environment.isReaderTable(at: table))
        #expect(throws: LMDBError.self) { try Self.write(2, environment, database) }
    }

    @Test("says of a commit whether it is on the disk for certain")
    func onDisk() throws {
        let (environment, database) = try Self.open(self.path, isSoleWriter: true)
        defer { environment.close() }
        try Self.write(1, environment, database)
        #expect(!environment.isOnDisk)
        try environment.synchronize()
        #expect(environment.isOnDisk)
        try environment.write { (_) throws(LMDBError) in }
        #expect(environment.isOnDisk)
        try Self.write(2, environment, database)
        #expect(!environment.isOnDisk)
    }
}
