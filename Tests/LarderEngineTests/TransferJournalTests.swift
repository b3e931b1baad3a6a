import Foundation
import LarderHTTP
import LarderState
import Synchronization
import Testing

@testable import LarderEngine

@Suite("Transfers are written down until they are over", .timeLimit(.minutes(2)))
struct TransferJournalTests {
    private let path = FileManager.default.temporaryDirectory.appending(
        path: "larder-journal-\(UUID().uuidString)"
    ).path

    private func open() throws -> StateFile {
        try FileManager.default.createDirectory(
            atPath: self.path, withIntermediateDirectories: true)
        return try StateFile.open(
            StateConfiguration(
                directory: self.path + "/state", key: .file(self.path + "/key")),
            now: Timestamp(seconds: 1_800_000_000), isMadeWhenNeeded: true
        ) { _ in }
    }

    private func clear() { try? FileManager.default.removeItem(atPath: self.path) }

    private func transfer(_ id: UInt64) -> KeptTransfer {
        KeptTransfer(
            id: id, uri: "http://origin.example/\(id)", fields: ["Cookie": "a=\(id)"],
            begun: Timestamp(seconds: 1_800_000_000),
            requester: Requester(address: "192.0.2.1", user: "alice"))
    }

    private func ids(_ file: StateFile, of principal: String = "") async throws -> [UInt64] {
        try await file.transfers(of: principal).map(\.id).sorted()
    }

    @Test("what has begun is there, with all that it takes, and what is over is not")
    func kept() async throws {
        defer { self.clear() }
        let file = try self.open()
        let journal = TransferJournal(file) { Issue.record("\($0)") }
        for id in 1...3 { journal.begun(self.transfer(UInt64(id)), of: "") }
        journal.begun(self.transfer(4), of: "user:alice")
        await journal.flush()
        #expect(try await self.ids(file) == [1, 2, 3])
        #expect(try await file.transfers(of: "user:alice") == [self.transfer(4)])
        #expect(try await file.principals() == ["", "user:alice"])
        journal.over(2, of: "")
        journal.over(4, of: "user:alice")
        await journal.flush()
        #expect(try await self.ids(file) == [1, 3])
        #expect(try await file.principals() == [""])
        await file.close()
        let again = try self.open()
        #expect(try await self.ids(again) == [1, 3])
        let next = TransferJournal(again) { Issue.record("\($0)") }
        for id in [1, 3] as [UInt64] { next.found(id, of: "") }
        next.over(1, of: "")
        await next.flush()
        #expect(try await self.ids(again) == [3])
        await again.close()
    }

    @Test("of many that begin and end at once those are left that have not ended")
    func storm() async throws {
        defer { self.clear() }
        let file = try self.open()
        let journal = TransferJournal(file) { Issue.record("\($0)") }
        await withTaskGroup { group in
            for id in 1...200 as ClosedRange<UInt64> {
                group.addTask {
                    journal.begun(self.transfer(id), of: "")
                    if id % 3 == 0 { await journal.flush() }
                    if id % 10 != 0 { journal.over(id, of: "") }
                }
            }
        }
        await journal.flush()
        #expect(try await self.ids(file) == stride(from: 10, through: 200, by: 10).map { $0 })
        await file.close()
    }

    @Test("a state that fails is said once, and gets all of it when it works again")
    func failing() async throws {
        defer { self.clear() }
        let file = try self.open()
        let said = Mutex(0)
        let journal = TransferJournal(file) { _ in said.withLock { $0 += 1 } }
        journal.begun(self.transfer(1), of: "")
        await journal.flush()
        // The file that is open is no longer the one that its name leads to.
        let data = self.path + "/state/state.mdb"
        try FileManager.default.moveItem(atPath: data, toPath: data + ".away")
        for id in 2...4 as ClosedRange<UInt64> {
            journal.begun(self.transfer(id), of: "")
            await journal.flush()
        }
        journal.over(1, of: "")
        await journal.flush()
        #expect(said.withLock { $0 } == 1)
        try FileManager.default.moveItem(atPath: data + ".away", toPath: data)
        journal.begun(self.transfer(5), of: "")
        await journal.flush()
        #expect(try await self.ids(file) == [2, 3, 4, 5])
        #expect(said.withLock { $0 } == 1)
        await file.close()
    }
}
