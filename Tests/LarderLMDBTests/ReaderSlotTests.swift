import Foundation
import Synchronization
import Testing

@testable import LarderLMDB

@Suite("The slots of readers")
struct ReaderSlotTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        self.directory = try TemporaryDirectory()
        self.path = self.directory.path + "/test.mdb"
    }

    private static func open(_ path: String) throws(LMDBError) -> Environment {
        try Environment.open(
            path: path, options: EnvironmentOptions(mapSize: 1 << 20, maximumReaders: 8))
    }

    /// Takes all slots, then runs `body`.
    private static func takeSlots(of environment: Environment, _ body: () -> Void) {
        do throws(LMDBError) {
            try environment.read { (_) throws(LMDBError) in
                Self.takeSlots(of: environment, body)
            }
        } catch {
            #expect(error.code == .readersFull)
            body()
        }
    }

    @Test("that a dead process had are found when there is no other")
    func stale() async throws {
        let environment = try Self.open(self.path)
        defer { environment.close() }
        _ = try environment.openDatabases(["a"], creating: true)
        let path = self.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            Self.takeSlots(of: try Self.open(path)) { exit(7) }
        }
        #expect(try environment.information().readers == 8)
        try environment.read { (_) throws(LMDBError) in }
    }

    @Test("are kept for later reads as far as half of them, and no further")
    func idle() throws {
        let environment = try Self.open(self.path)
        defer { environment.close() }
        Self.takeSlots(of: environment) {}
        #expect(environment.usage.withLock { $0.idle.count } == 4)
        Self.takeSlots(of: environment) {}
        try environment.read { (_) throws(LMDBError) in }
    }
}
