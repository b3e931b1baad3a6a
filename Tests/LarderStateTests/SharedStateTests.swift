import Glibc
import LarderCookies
import LarderCredentials
import LarderHTTP
import LarderLMDB
import Testing

@testable import LarderState

private let t0 = Timestamp(seconds: 1_700_000_000)

extension SharedState {
    fileprivate convenience init(_ place: TemporaryDirectory) {
        self.init(place.configuration, now: t0)
    }

    fileprivate func names() throws -> [String] {
        try self.readCookies { $0.map { String(decoding: $0.name, as: UTF8.self) }.sorted() }
    }
}

@Suite("A state that several processes use")
struct SharedStateTests {
    @Test("touches no disk before there is something to keep")
    func untouched() async throws {
        let place = TemporaryDirectory()
        let state = SharedState(place)
        #expect(state.isStale)
        #expect(try state.names() == [])
        #expect(!state.isStale)
        try await state.cookies.apply([.removed(cookie("a").identity)])
        #expect(FilePlace(place.state) == nil)
        #expect(FilePlace(place.key) == nil)
    }

    @Test("gives what one has kept to the others, and tells them that there is something new")
    func exchange() async throws {
        let place = TemporaryDirectory()
        let (one, other) = (SharedState(place), SharedState(place))
        #expect(try one.names() == [] && other.names() == [])
        try await one.cookies.apply([.stored(cookie("a"))])
        #expect(!one.isStale)
        #expect(other.isStale)
        #expect(try other.names() == ["a"])
        #expect(!other.isStale)
        try await other.cookies.apply([.stored(cookie("b")), .removed(cookie("a").identity)])
        #expect(one.isStale && !other.isStale)
        #expect(try one.names() == ["b"])
        let loaded = try await other.cookies.load()
        #expect(loaded == [cookie("b")])
    }

    @Test("notes what others did before a change of one's own")
    func missedTurn() async throws {
        let place = TemporaryDirectory()
        let (one, other) = (SharedState(place), SharedState(place))
        #expect(try one.names() == [])
        try await other.cookies.apply([.stored(cookie("a"))])
        try await one.cookies.apply([.stored(cookie("b"))])
        // Its own write must not hide that it has not read the other's.
        #expect(one.isStale)
        #expect(try one.names() == ["a", "b"])
    }

    @Test("merges by cookie, and its last writer counts")
    func merging() async throws {
        let place = TemporaryDirectory()
        let states = (0..<4).map { _ in SharedState(place) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, state) in states.enumerated() {
                group.addTask {
                    for round in 0..<5 {
                        try await state.cookies.apply([
                            .stored(cookie("own-\(number)-\(round)")),
                            .stored(cookie("common", "\(number)")),
                        ])
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try states[0].names().count == 21)
        #expect(try states[3].names() == states[0].names())
    }

    @Test("keeps credentials, too")
    func credentials() async throws {
        let place = TemporaryDirectory()
        let (space, credential) = (space(), credential("u", "p"))
        let (one, other) = (SharedState(place), SharedState(place))
        try await one.credentials.apply([
            .stored(credential, space), .defaultChanged(user: "u", space),
        ])
        #expect(
            try other.readCredentials()
                == [.stored(credential, space), .defaultChanged(user: "u", space)])
        #expect(!other.isStale)
    }

    @Test("leaves one that a process has for itself alone")
    func alone() async throws {
        let place = TemporaryDirectory()
        let state = SharedState(place)
        try await state.cookies.apply([.stored(cookie("a"))])
        let owner = try StateFile.open(state.configuration, now: t0) { _ in }
        await #expect(throws: CookieStorageError.self) {
            try await state.cookies.apply([.stored(cookie("b"))])
        }
        await owner.close()
        try await state.cookies.apply([.stored(cookie("b"))])
        #expect(try state.names() == ["a", "b"])
    }

    @Test("survives that its files are deleted under it")
    func deleted() async throws {
        let place = TemporaryDirectory()
        let state = SharedState(place)
        try await state.cookies.apply([.stored(cookie("a"))])
        for name in TemporaryDirectory.names(place.state) {
            let result = unsafe unlink("\(place.state)/\(name)")
            try #require(result == 0)
        }
        try await state.cookies.apply([.stored(cookie("b"))])
        #expect(try state.names() == ["b"])
    }

    @Test("that is damaged while it is in use is set aside by the next to come")
    func damagedUnderway() async throws {
        let (place, events) = (TemporaryDirectory(), Events())
        let state = SharedState(place.configuration, now: t0) { events.note($0) }
        try await state.cookies.apply([.stored(cookie("a"))])
        #expect(try state.names() == ["a"])
        let storage = try StateStorage.open(place.data)
        let name = try #require(storage.all().first?.key)
        let found = try storage.environment.read { (transaction) throws(LMDBError) in
            try transaction.place(storage.records, name.span, mayWait: true)
        }
        storage.environment.close()
        guard case .at(let offset, _) = found else {
            Issue.record("no record")
            return
        }
        // In place: it stays the file that was found to be sound.
        let descriptor = unsafe open(place.data, O_WRONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        let noise = [UInt8](repeating: 0xA5, count: 64)
        #expect(unsafe pwrite(descriptor, noise, 64, off_t(offset / 4096 * 4096)) == 64)
        _ = close(descriptor)
        #expect(throws: (any Error).self) { try state.names() }
        #expect(events.all.count == 1, "its key was made")
        #expect(try state.names() == [])
        guard case .setAside = events.all.last else {
            Issue.record("\(events.all)")
            return
        }
        try await state.cookies.apply([.stored(cookie("b"))])
        #expect(try state.names() == ["b"])
    }

    @Test("keeps its files to its user")
    func modes() async throws {
        let place = TemporaryDirectory()
        let state = SharedState(place)
        try await state.cookies.apply([.stored(cookie("a"))])
        #expect(mode(place.key) == 0o600)
        #expect(mode(place.state) == 0o700)
        #expect(TemporaryDirectory.names(place.state).contains("state.turn"))
        for name in TemporaryDirectory.names(place.state) {
            #expect(mode("\(place.state)/\(name)") == 0o600, "\(name)")
        }
    }

    /// Keeps one cookie a batch, as one of several processes.
    private static func write(_ place: String, _ name: String, until end: Int, killed: Bool) async {
        let state = SharedState(
            StateConfiguration(directory: "\(place)/work", key: .file("\(place)/work.key")), now: t0
        )
        for number in 0..<end {
            do throws(CookieStorageError) {
                try await state.cookies.apply([.stored(cookie("\(name)-\(number)"))])
            } catch {
                exit(1)
            }
        }
        if killed { _ = kill(getpid(), SIGKILL) }
        exit(0)
    }

    @Test("is written to by processes side by side, also where one of them is killed")
    func processes() async throws {
        let place = TemporaryDirectory()
        let path = place.path
        async let first = #expect(processExitsWith: .success) { [path = path as String] in
            await Self.write(path, "first", until: 12, killed: false)
        }
        async let second = #expect(processExitsWith: .success) { [path = path as String] in
            await Self.write(path, "second", until: 12, killed: false)
        }
        async let third = #expect(processExitsWith: .signal(SIGKILL)) {
            [path = path as String] in
            await Self.write(path, "third", until: 6, killed: true)
        }
        _ = await (first, second, third)
        let names = try SharedState(place).names()
        #expect(names.count == 30)
        #expect(Set(names).count == 30)
    }
}
