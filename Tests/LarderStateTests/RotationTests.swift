import Glibc
import LarderCookies
import LarderCredentials
import LarderLMDB
import Testing

@testable import LarderState

@Suite("A change of the key of a session's state", .timeLimit(.minutes(10)))
struct RotationTests {
    private let place = TemporaryDirectory()
    private let ended = StateError(.unavailable, path: "", cause: "the test ends here", remedy: "")

    private func fill(_ state: StateFile) async throws {
        for principal in ["", "user:alice", "uid:7"] {
            try await state.cookies(of: principal).apply(
                (0..<5).map { .stored(cookie("c\($0)", principal)) })
            try await state.credentials(of: principal).apply([.named(token("t", principal))])
        }
    }

    private func expectAll(_ state: StateFile) async throws {
        #expect(try await state.principals() == ["", "uid:7", "user:alice"])
        for principal in ["", "user:alice", "uid:7"] {
            let cookies = try await state.cookies(of: principal).load()
            #expect(cookies.count == 5)
            #expect(cookies.allSatisfy { $0.value == Array(principal.utf8) })
            let named = try await state.credentials(of: principal).load()
            #expect(named == [.named(token("t", principal))])
        }
    }

    @Test("seals all anew; the old key opens nothing any more")
    func rotation() async throws {
        let state = try self.place.open()
        try await self.fill(state)
        let old = try readFile(self.place.key)
        let outcome = try await state.rotate()
        #expect(outcome == StateFile.Rotation(records: 21))
        try await self.expectAll(state)
        try await state.cookies(of: "").apply([
            .stored(cookie("later")), .removed(cookie("later").identity),
        ])
        await state.close()
        #expect(try readFile(self.place.key) != old)
        #expect(TemporaryDirectory.names(self.place.path) == ["work", "work.key"])
        let again = try self.place.open()
        try await self.expectAll(again)
        await again.close()
        try writeFile(self.place.key, old)
        #expect(await self.place.openingError()?.code == .wrongKey)
    }

    @Test(
        "leaves what opens at whichever step the process ends",
        arguments: StateFile.RotationStep.allCases)
    func brokenOff(_ step: StateFile.RotationStep) async throws {
        let state = try self.place.open()
        try await self.fill(state)
        let ended = self.ended
        await #expect(throws: ended) {
            try await state.brokenRotation(after: step, ended)
        }
        await state.close()
        let events = Events()
        let again = try self.place.open(events)
        try await self.expectAll(again)
        switch step {
        case .keyWritten: #expect(events.all == [.rotationUndone])
        case .committed: #expect(events.all == [.rotationFinished])
        case .keyInPlace: #expect(events.all.isEmpty)
        }
        #expect(TemporaryDirectory.names(self.place.path) == ["work", "work.key"])
        // And it can be changed again.
        try await again.rotate()
        try await self.expectAll(again)
        await again.close()
    }

    @Test("is finished before the next one writes over its key")
    func twice() async throws {
        let events = Events()
        let state = try self.place.open(events)
        try await self.fill(state)
        let ended = self.ended
        for step in [StateFile.RotationStep.committed, .keyWritten] {
            await #expect(throws: ended) { try await state.brokenRotation(after: step, ended) }
        }
        await state.close()
        #expect(events.all == [.keyMade(path: self.place.key), .rotationFinished])
        let again = try self.place.open()
        try await self.expectAll(again)
        await again.close()
    }

    @Test("whose key cannot take its place opens all the same, says so, and is not begun again")
    func unmovable() async throws {
        // The superuser may rename everything: a process of its own becomes somebody else.
        await #expect(processExitsWith: .success) {
            if geteuid() == 0 { _ = seteuid(65_534) }
            let place = TemporaryDirectory()
            let tests = RotationTests()
            let state = try place.open()
            try await tests.fill(state)
            try? await state.brokenRotation(after: .committed, tests.ended)
            await state.close()
            let isShut = unsafe chmod(place.path, 0o500) == 0
            precondition(isShut)
            let events = Events()
            let again = try place.open(events)
            let principals = try await again.principals()
            precondition(principals.count == 3)
            guard case .rotationUnfinished(let key, _, _) = events.all.first else { exit(2) }
            let kept = try readFile(key)
            let outcome = try? await again.rotate()
            precondition(outcome == nil)
            let left = try readFile(key)
            precondition(left == kept)
            try await again.cookies(of: "").apply([.stored(cookie("later"))])
            await again.close()
            let isOpen = unsafe chmod(place.path, 0o700) == 0
            precondition(isOpen)
            let healed = Events()
            let last = try place.open(healed)
            precondition(healed.all == [.rotationFinished])
            let cookies = try await last.cookies(of: "").load()
            precondition(cookies.count == 6)
            await last.close()
        }
    }

    @Test("does not take the key from a file that was put in the place of the open one")
    func replaced() async throws {
        let state = try self.place.open()
        try await self.fill(state)
        let (kept, key) = (try readFile(self.place.data), try readFile(self.place.key))
        try #require(unsafe unlink(self.place.data) == 0)
        try writeFile(self.place.data, kept)
        await #expect(throws: StateError.self) { try await state.rotate() }
        await state.close()
        #expect(try readFile(self.place.key) == key)
        let again = try self.place.open()
        try await self.expectAll(again)
        await again.close()
    }

    @Test("does not lose a record that does not open")
    func unreadable() async throws {
        let state = try self.place.open()
        try await self.fill(state)
        await state.close()
        do {
            let storage = try StateStorage.open(self.place.data)
            defer { storage.environment.close() }
            let found = try storage.all().first { RecordSeal.kind(of: $0.key) == .cookie }
            let victim = try #require(found)
            try storage.environment.write { (transaction) throws(LMDBError) in
                try transaction.put(storage.records, victim.key.span, [1, 2, 3].span)
            }
        }
        let again = try self.place.open()
        let old = try readFile(self.place.key)
        await #expect(throws: StateError.self) { try await again.rotate() }
        #expect(try readFile(self.place.key) == old)
        #expect(TemporaryDirectory.names(self.place.path) == ["work", "work.key"])
        await again.close()
        #expect(await self.place.openingError() == nil)
    }
}

extension StateFile {
    /// A rotation that ends after a step, as a killed process would.
    fileprivate func brokenRotation(after step: RotationStep, _ error: StateError) throws {
        _ = try self.rotate(to: StateKey()) {
            (reached) throws(StateError) in
            if reached == step { throw error }
        }
    }
}
