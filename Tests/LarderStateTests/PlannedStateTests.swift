import Glibc
import LarderCookies
import LarderCredentials
import LarderHTTP
import Testing

@testable import LarderState

@Suite("A state that is made when there is something to keep", .timeLimit(.minutes(2)))
struct PlannedStateTests {
    private let place = TemporaryDirectory()

    private func open(_ events: Events = Events(), key: KeySource? = nil) throws -> StateFile {
        try StateFile.open(
            StateConfiguration(
                directory: self.place.state, key: key ?? .file(self.place.key),
                capacity: .mebibytes(64)),
            now: Timestamp(seconds: 1_700_000_000), isMadeWhenNeeded: true
        ) { events.note($0) }
    }

    private var files: [String] { TemporaryDirectory.names(self.place.path) }

    @Test("leaves nothing on the disk until then: no directory, no key")
    func nothing() async throws {
        let events = Events()
        let state = try self.open(events)
        #expect(try await state.cookies(of: "").load().isEmpty)
        #expect(try await state.credentials(of: "user:alice").load().isEmpty)
        // Nothing is to be removed, and a cookie of the session is not kept.
        try await state.cookies(of: "").apply([
            .removed(cookie("a").identity), .stored(cookie("s", expires: false)),
        ])
        try await state.credentials(of: "").apply([.namedRemoved("t")])
        #expect(try await state.principals().isEmpty)
        #expect(try await state.removeAll(of: "") == 0)
        #expect(await !state.isMade)
        await state.close()
        #expect(self.files.isEmpty && events.all.isEmpty)
    }

    @Test("is made with the first record, and with the digests it had until then")
    func first() async throws {
        let events = Events()
        let state = try self.open(events)
        let digest = state.digests.digest([1, 2, 3])
        try await state.cookies(of: "").apply([.stored(cookie("a", "1"))])
        #expect(await state.isMade)
        #expect(events.all == [.keyMade(path: self.place.key)])
        #expect(mode(self.place.key) == 0o600 && mode(self.place.data) == 0o600)
        #expect(try await state.cookies(of: "").load() == [cookie("a", "1")])
        try await state.cookies(of: "").apply([.stored(cookie("b"))])
        #expect(await self.place.openingError()?.code == .inUse)
        await state.close()
        let again = try self.open(events)
        #expect(await again.isMade)
        #expect(try await again.cookies(of: "").load().count == 2)
        #expect(again.digests.digest([1, 2, 3]) == digest)
        #expect(events.all.count == 1)
        await again.close()
    }

    @Test("opens what another process has made meanwhile, once that has closed it")
    func race() async throws {
        let planned = try self.open()
        let other = try self.place.open()
        try await other.credentials(of: "").apply([.named(token("t", "other"))])
        do {
            try await planned.cookies(of: "").apply([.stored(cookie("a"))])
            Issue.record("it was kept in a file that another has open")
        } catch {
            #expect(error.code == .unavailable)
        }
        await other.close()
        try await planned.cookies(of: "").apply([.stored(cookie("a"))])
        #expect(try await planned.cookies(of: "").load() == [cookie("a")])
        #expect(try await planned.credentials(of: "").load() == [.named(token("t", "other"))])
        await planned.close()
        let again = try self.place.open()
        #expect(try await again.cookies(of: "").load() == [cookie("a")])
        await again.close()
    }

    @Test("uses the key that lies there, and refuses at the start one that cannot be used")
    func keys() async throws {
        try KeyFile.write(StateKey(), to: self.place.key)
        let key = try readFile(self.place.key)
        let state = try self.open()
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await state.close()
        #expect(try readFile(self.place.key) == key)
        let bad = self.place.path + "/bad.key"
        try writeFile(bad, [1, 2, 3])
        for source in [KeySource.file(bad), .file(self.place.path + "/new/state/key")] {
            let directory = self.place.path + "/new/state"
            do throws(StateError) {
                _ = try StateFile.open(
                    StateConfiguration(directory: directory, key: source),
                    now: Timestamp(seconds: 1_700_000_000), isMadeWhenNeeded: true
                ) { _ in }
                Issue.record("it took \(source)")
            } catch {
                #expect(error.code == .badKeyFile)
            }
        }
        #expect(self.files == ["bad.key", "work", "work.key"])
    }

    @Test("is said to be gone only where it was there, and made anew only once it is")
    func gone() async throws {
        // A key that was laid there for it.
        try KeyFile.write(StateKey(), to: self.place.key)
        let first = Events()
        await (try self.open(first)).close()
        #expect(first.all.isEmpty)
        let state = try self.open(first)
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await state.close()
        #expect(first.all == [.begunAnew])
        try #require(unsafe unlink(self.place.data) == 0)
        let later = Events()
        for _ in 1...2 { await (try self.open(later)).close() }
        let missing = StateEvent.missing(path: self.place.data)
        #expect(later.all == [missing, missing])
        let last = Events()
        let made = try self.open(last)
        try await made.cookies(of: "").apply([.stored(cookie("a"))])
        await made.close()
        await (try self.open(last)).close()
        #expect(last.all == [missing, .begunAnew])
        // As the remedies say: nobody misses it.
        for file in [self.place.data, "\(self.place.data)-lock"] {
            try #require(unsafe unlink(file) == 0)
        }
        let away = Events()
        await (try self.open(away)).close()
        #expect(away.all.isEmpty)
    }

    @Test("makes the directory of its key, too, for this user alone")
    func keyDirectory() async throws {
        let key = self.place.path + "/keys/of/work"
        let state = try self.open(key: .file(key))
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await state.close()
        #expect(mode(key) == 0o600)
        for directory in ["/keys", "/keys/of"] {
            #expect(mode(self.place.path + directory) == 0o700)
        }
    }

    @Test("is tried again with the next record where it could not be made")
    func later() async throws {
        let state = try self.open()
        // A file in the place of the directory.
        try writeFile(self.place.state, [])
        await #expect(throws: (any Error).self) {
            try await state.cookies(of: "").apply([.stored(cookie("a"))])
        }
        #expect(self.files == ["work"])
        #expect(unsafe unlink(self.place.state) == 0)
        try await state.cookies(of: "").apply([.stored(cookie("a")), .stored(cookie("b"))])
        #expect(try await state.cookies(of: "").load().count == 2)
        await state.close()
    }

    @Test("is closed without ever having been made, and then takes nothing")
    func closed() async throws {
        let state = try self.open()
        await state.close()
        await #expect(throws: (any Error).self) {
            try await state.cookies(of: "").apply([.stored(cookie("a"))])
        }
        #expect(self.files.isEmpty)
    }
}
