import Foundation
import Testing

@testable import LarderLMDB

private func cutFile(_ path: String, _ length: Int) throws {
    let file = try #require(FileHandle(forWritingAtPath: path))
    try file.truncate(atOffset: UInt64(length))
    try file.close()
}

@Suite("A file that changes under a running process")
struct MapGuardTests {
    /// Reads all until an error comes; what it read must be right, or zeros of the last read.
    private static func readAll(
        _ environment: Environment, _ database: Database, _ sample: SampleFile
    ) throws(LMDBError) {
        for (key, value) in sample.entries {
            let found = try environment.read { (transaction) throws(LMDBError) in
                try transaction.get(database, key.span) { $0.array }
            }
            // What the transaction gives back without a throw was read from the file.
            if found != value { throw LMDBError(.other, operation: "wrong value for \(key)") }
        }
    }

    @Test("and is cut short, ends its use and not the process", arguments: [1, 2, 3, 10, 30])
    func cut(pages: Int) throws {
        let sample = try SampleFile(entries: 400)
        let environment = try sample.open()
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        try Self.readAll(environment, database, sample)
        try cutFile(sample.path, pages * 4096)
        let error = #expect(throws: LMDBError.self) {
            try Self.readAll(environment, database, sample)
        }
        #expect(error?.code == .corrupted)
        // Residency gives pages back, zeros among them: what is known stays known.
        environment.giveBackPages()
        let again = #expect(throws: LMDBError.self) {
            try environment.read { (_) throws(LMDBError) in }
        }
        #expect(again == error)
        #expect(throws: LMDBError.self) {
            try environment.write { (transaction) throws(LMDBError) in
                try transaction.put(database, [1].span, [1].span)
            }
        }
        environment.close()
    }

    @Test("and is cut short between two writes, ends its use and not the process")
    func cutWhileWriting() throws {
        for pages in [1, 2, 5, 20] {
            let sample = try SampleFile(entries: 400)
            let environment = try sample.open()
            let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
            let keys = sample.entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
            try environment.write { (transaction) throws(LMDBError) in
                try transaction.put(database, [1].span, [1].span)
            }
            try cutFile(sample.path, pages * 4096)
            let error = #expect(throws: LMDBError.self) {
                for key in keys {
                    try environment.write { (transaction) throws(LMDBError) in
                        _ = try transaction.delete(database, key.span)
                    }
                }
            }
            #expect(error?.code == .corrupted)
            environment.close()
        }
    }

    @Test("gives zeros for what is gone in the middle of a read, and says so at its end")
    func middle() throws {
        let sample = try SampleFile(entries: 400)
        let environment = try sample.open()
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        let big = sample.entries.filter { $0.value.count > 9000 }
        var ends: [UInt8] = []
        var error: LMDBError?
        do throws(LMDBError) {
            try environment.read { (transaction) throws(LMDBError) in
                guard let (key, _) = big.first else { return }
                let place = try transaction.place(database, key.span, mayWait: true)
                guard case .at(let offset, _) = place else { return }
                _ = try transaction.get(database, key.span) { bytes in
                    try? cutFile(sample.path, (Int(offset) / 4096 + 1) * 4096)
                    ends = [bytes[0], bytes[bytes.count - 1]]
                }
            }
        } catch let thrown {
            error = thrown
        }
        #expect(ends == [big.first?.value[0], 0])
        #expect(error?.code == .corrupted)
        environment.close()
    }

    @Test("is survived by a process that has nothing else to do with it")
    func child() async throws {
        let sample = try SampleFile(entries: 400)
        await #expect(processExitsWith: .success) { [path = sample.path as String] in
            let environment = try Environment.open(
                path: path, options: EnvironmentOptions(mapSize: 64 << 20))
            let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
            try cutFile(path, 8192)
            do throws(LMDBError) {
                _ = try environment.read { (transaction) throws(LMDBError) in
                    try transaction.contains(database, [7].span)
                }
                exit(2)
            } catch {
                exit(error.code == .corrupted ? 0 : 3)
            }
        }
    }

    @Test("does not keep a SIGBUS that was sent, and is no fault, from ending the process")
    func sent() async throws {
        let sample = try SampleFile(entries: 10)
        await #expect(processExitsWith: .signal(SIGBUS)) { [path = sample.path as String] in
            let environment = try Environment.open(
                path: path, options: EnvironmentOptions(mapSize: 64 << 20))
            // To this very thread: one that kill(2) sends to the process may come to another, when
            // this one has long gone on.
            raise(SIGBUS)
            _ = environment.damage
            exit(0)
        }
    }

    @Test("of someone else's is theirs: SIGBUS outside the maps ends the process")
    func elsewhere() async throws {
        let sample = try SampleFile(entries: 10)
        await #expect(processExitsWith: .signal(SIGBUS)) { [path = sample.path as String] in
            let environment = try Environment.open(
                path: path, options: EnvironmentOptions(mapSize: 64 << 20))
            // A map of a file of no length, touched.
            let other = unsafe open(path + ".other", O_RDWR | O_CREAT, 0o600)
            let map = unsafe mmap(nil, 4096, PROT_READ, MAP_SHARED, other, 0)
            let byte = unsafe map?.load(as: UInt8.self)
            _ = environment.damage
            exit(byte == 0 ? 0 : 1)
        }
    }
}
