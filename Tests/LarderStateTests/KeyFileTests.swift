import Glibc
import LarderCookies
import LarderCredentials
import LarderHTTP
import Testing

@testable import LarderState

@Suite("The key of a session's state", .timeLimit(.minutes(10)))
struct KeyFileTests {
    private let place = TemporaryDirectory()

    /// A state with one cookie, closed.
    private func makeState() async throws {
        let state = try self.place.open()
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await state.close()
    }

    private func expectRefused(_ code: StateError.Code, key: KeySource? = nil) async throws {
        let before = try readFile(self.place.data)
        let error = await self.place.openingError(key: key)
        #expect(error?.code == code)
        #expect(error?.remedy.isEmpty == false)
        #expect(try readFile(self.place.data) == before)
    }

    @Test("is a line of text with its version, and one of hexadecimal digits")
    func text() throws {
        let key = StateKey()
        var writer = RecordWriter()
        key.writeText(to: &writer)
        let bytes = writer.withBytes { unsafe $0.withUnsafeBufferPointer { unsafe Array($0) } }
        #expect(bytes.count == StateKey.textSize)
        #expect(bytes.starts(with: "larder-key 1\n".utf8))
        #expect(Self.key(bytes) == key)
        #expect(Self.key(Array(bytes.dropLast())) == key)
        for count in 0..<bytes.count - 1 {
            #expect(Self.key(Array(bytes.prefix(count))) == nil)
        }
        for i in bytes.indices {
            var changed = bytes
            changed[i] = UInt8(ascii: "!")
            #expect(Self.key(changed) == nil)
        }
        #expect(Self.key(bytes + bytes) == nil)
        #expect(StateKey() != key)
    }

    private static func key(_ text: [UInt8]) -> StateKey? { StateKey(text.span) }

    @Test("that is there and may not be read is told as such, as waiting does not help")
    func unreadable() async {
        // The superuser may read everything: a process of its own becomes somebody else.
        await #expect(processExitsWith: .exitCode(78)) {
            var template = Array("/tmp/larder-XXXXXX\0".utf8CString)
            guard let made = unsafe mkdtemp(&template) else { exit(2) }
            let directory = unsafe String(cString: made)
            _ = unsafe chmod(directory, 0o755)
            let path = "\(directory)/key"
            close(unsafe open(path, O_WRONLY | O_CREAT, 0))
            if geteuid() == 0 { _ = seteuid(65_534) }
            var code: StateError.Code?
            do throws(StateError) {
                _ = try KeyFile.read(path, isGuarded: false)
            } catch {
                code = error.code
            }
            if getuid() == 0 { _ = seteuid(0) }
            _ = unsafe unlink(path)
            _ = unsafe rmdir(directory)
            exit(code == .badKeyFile ? 78 : 1)
        }
    }

    @Test("is made with the state, for this user alone, and said")
    func made() async throws {
        let events = Events()
        try await self.place.openOnce(events)
        #expect(events.all == [.keyMade(path: self.place.key)])
        #expect(mode(self.place.key) == 0o600)
        #expect(TemporaryDirectory.names(self.place.path) == ["work", "work.key"])
        let again = Events()
        try await self.place.openOnce(again)
        #expect(again.all.isEmpty)
    }

    @Test("that is missing while there is a state is asked for, and none is made")
    func missing() async throws {
        try await self.makeState()
        try #require(unsafe unlink(self.place.key) == 0)
        try await self.expectRefused(.badKeyFile)
        #expect(mode(self.place.key) == nil)
        try await self.expectRemedy()
    }

    @Test("of another machine is told at once, and nothing is overwritten")
    func wrong() async throws {
        try await self.makeState()
        let right = try readFile(self.place.key)
        try KeyFile.write(StateKey(), to: self.place.key)
        try await self.expectRefused(.wrongKey)
        try await self.expectRemedy()
        try writeFile(self.place.key, right)
        let state = try self.place.open()
        #expect(try await state.cookies(of: "").load() == [cookie("a")])
        await state.close()
    }

    /// Both files, as the second alone says at each start that there was a state.
    private func expectRemedy() async throws {
        let remedy = try #require(await self.place.openingError()?.remedy)
        #expect(remedy.contains("move \(self.place.data) and state.mdb-lock away to begin anew"))
    }

    @Test("is refused where others may read it", arguments: [0o640, 0o604, 0o660] as [mode_t])
    func readable(_ mode: mode_t) async throws {
        try await self.makeState()
        try #require(unsafe chmod(self.place.key, mode) == 0)
        try await self.expectRefused(.badKeyFile)
    }

    @Test(
        "is refused where it is no key", arguments: ["", "larder-key 1\n", "x", "larder-key 2\n"])
    func notKey(_ text: String) async throws {
        try await self.makeState()
        let rest = text.hasPrefix("larder-key 2") ? String(repeating: "0", count: 64) + "\n" : ""
        try writeFile(self.place.key, Array((text + rest).utf8))
        try await self.expectRefused(.badKeyFile)
        try writeFile(self.place.key, [UInt8](repeating: 0x30, count: 4096))
        try await self.expectRefused(.badKeyFile)
    }

    @Test("is refused where it is a directory, or lies where the state does")
    func placement() async throws {
        try await self.makeState()
        try await self.expectRefused(.badKeyFile, key: .file(self.place.path))
        try await self.expectRefused(.badKeyFile, key: .file("\(self.place.state)/key"))
        #expect(TemporaryDirectory.names(self.place.state).contains("key") == false)
    }

    @Test("comes from the service manager where that gives one (systemd.exec(5))")
    func credentials() async throws {
        let given = "\(self.place.path)/larder.key"
        let environment = ["CREDENTIALS_DIRECTORY": self.place.path]
        #expect(
            KeySource.automatic(file: "/k", environment: environment) == .file("/k"))
        try KeyFile.write(StateKey(), to: given)
        // It guards the file by an access list, whose mask shows as the group's.
        try #require(unsafe chmod(given, 0o440) == 0)
        let source = KeySource.automatic(file: "/k", environment: environment)
        #expect(source == .credential(given))
        #expect(KeySource.automatic(file: "/k", environment: [:]) == .file("/k"))
        let state = try self.place.open(key: source)
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await #expect(throws: StateError.self) { try await state.rotate() }
        await state.close()
        #expect(mode(self.place.key) == nil)

        // The new one beside the one before: sealed anew at the start.
        try #require(unsafe rename(given, "\(given).previous") == 0)
        try KeyFile.write(StateKey(), to: given)
        let events = Events()
        let rotated = try self.place.open(events, key: source)
        #expect(events.all == [.rotationFinished])
        #expect(try await rotated.cookies(of: "").load() == [cookie("a")])
        await rotated.close()
        try #require(unsafe unlink("\(given).previous") == 0)
        #expect(await self.place.openingError(key: source) == nil)
    }

    @Test("gives digests that outlast a restart, and are others with another key")
    func digests() async throws {
        let first = try self.place.open()
        let digest = first.digests.digest([1, 2, 3])
        #expect(digest.count == 32)
        #expect(first.digests.digest([1, 2, 4]) != digest)
        await first.close()
        let second = try self.place.open()
        #expect(second.digests.digest([1, 2, 3]) == digest)
        try await second.rotate()
        await second.close()
        let third = try self.place.open()
        #expect(third.digests.digest([1, 2, 3]) != digest)
        await third.close()
        #expect(KeyedDigest().digest([1]) != KeyedDigest().digest([1]))
    }
}
