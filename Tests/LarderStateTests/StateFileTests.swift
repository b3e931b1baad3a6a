import Glibc
import LarderCookies
import LarderCredentials
import LarderHTTP
import LarderLMDB
import Testing

@testable import LarderState

@Suite("The state of a default session", .timeLimit(.minutes(10)))
struct StateFileTests {
    private let place = TemporaryDirectory()

    private func changes(_ state: StateFile, _ principal: String) async throws -> Set<String> {
        Set(try await state.credentials(of: principal).load().map { "\($0)" })
    }

    @Test("outlasts the process: cookies, credentials, defaults, named ones")
    func reopening() async throws {
        let state = try self.place.open()
        try await state.cookies(of: "").apply([.stored(cookie("a", "1")), .stored(cookie("b"))])
        try await state.cookies(of: "").apply([
            .stored(cookie("a", "2")), .removed(cookie("b").identity),
        ])
        let kept: [CredentialChange] = [
            .stored(credential("u", "one"), space()), .stored(credential("v", "two"), space()),
            .defaultChanged(user: "v", space()), .named(token("ci", "t")),
        ]
        try await state.credentials(of: "").apply(kept)
        try await state.credentials(of: "").apply([
            .stored(credential("w", "three"), space()), .named(token("old", "t")),
            .defaultChanged(user: "u", space("b.example")),
        ])
        try await state.credentials(of: "").apply([
            .removed(user: "w", space()), .namedRemoved("old"),
            .defaultChanged(user: nil, space("b.example")),
        ])
        await state.close()
        let again = try self.place.open()
        #expect(try await again.cookies(of: "").load() == [cookie("a", "2")])
        let loaded = try await again.credentials(of: "").load()
        #expect(loaded.count == kept.count)
        #expect(kept.allSatisfy(loaded.contains))
        var store = CredentialStore(keepsPermanent: true)
        store.restore(loaded)
        #expect(store.defaultCredential(for: space())?.password == Secret("two"))
        #expect(store.named("ci")?.kind == .bearer(Secret("t")))
        await again.close()
    }

    @Test("keeps persistent cookies alone, and forgets one that a cookie of the session replaced")
    func sessionCookies() async throws {
        let state = try self.place.open()
        let cookies = state.cookies(of: "")
        try await cookies.apply([.stored(cookie("s", expires: false)), .stored(cookie("p"))])
        #expect(try await cookies.load() == [cookie("p")])
        try await cookies.apply([.stored(cookie("p", expires: false))])
        #expect(try await cookies.load().isEmpty)
        await state.close()
    }

    @Test("shows no principal what another stored")
    func principals() async throws {
        let state = try self.place.open()
        try await state.cookies(of: "user:alice").apply([.stored(cookie("c", "hers"))])
        try await state.credentials(of: "user:bob").apply([.named(token("t", "his"))])
        #expect(try await state.cookies(of: "user:bob").load().isEmpty)
        #expect(try await state.credentials(of: "user:alice").load().isEmpty)
        #expect(try await state.cookies(of: "").load().isEmpty)
        #expect(try await state.principals() == ["user:alice", "user:bob"])
        #expect(try await state.removeAll(of: "user:alice") == 1)
        #expect(try await state.principals() == ["user:bob"])
        try await state.credentials(of: "user:bob").apply([.namedRemoved("t")])
        #expect(try await state.principals().isEmpty)
        await state.close()
    }

    @Test("is this user's alone, also where it was not")
    func modes() async throws {
        try await self.place.openOnce()
        #expect(mode(self.place.state) == 0o700)
        #expect(mode(self.place.data) == 0o600)
        #expect(mode(self.place.key) == 0o600)
        try #require(unsafe chmod(self.place.data, 0o644) == 0)
        try #require(unsafe chmod(self.place.state, 0o755) == 0)
        try await self.place.openOnce()
        #expect(mode(self.place.state) == 0o700)
        #expect(mode(self.place.data) == 0o600)
    }

    @Test("is open once; the refusal names the process")
    func inUse() async throws {
        let state = try self.place.open()
        let error = await self.place.openingError()
        #expect(error?.code == .inUse)
        #expect(error?.cause.contains("process \(getpid()) ") == true)
        await state.close()
        #expect(await self.place.openingError() == nil)
    }

    @Test("tells who comes too late that it is closed")
    func closed() async throws {
        let state = try self.place.open()
        await state.close()
        await #expect(throws: CookieStorageError.self) {
            try await state.cookies(of: "").apply([.stored(cookie("a"))])
        }
    }

    @Test("that is damaged is set aside by name and said, never emptied")
    func damaged() async throws {
        let state = try self.place.open()
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await state.close()
        var bytes = try readFile(self.place.data)
        for i in bytes.indices.prefix(1 << 20) where i >= 8192 { bytes[i] = 0xA5 }
        try writeFile(self.place.data, bytes)
        let events = Events()
        let again = try self.place.open(events)
        #expect(try await again.cookies(of: "").load().isEmpty)
        await again.close()
        guard case .setAside(let name, _) = try #require(events.all.first) else {
            Issue.record("\(events.all)")
            return
        }
        #expect(name == "state.mdb.damaged-1700000000")
        #expect(try readFile("\(self.place.state)/\(name)") == bytes)
    }

    @Test("of an unknown kind is set aside as well", arguments: ["", "no database", "x"])
    func foreign(_ text: String) async throws {
        try #require(unsafe mkdir(self.place.state, 0o700) == 0)
        try writeFile(self.place.data, Array(text.utf8))
        let events = Events()
        try await self.place.openOnce(events)
        let aside = TemporaryDirectory.names(self.place.state).filter { $0.contains("damaged") }
        #expect(aside.count == 1)
        #expect(events.all.contains(.keyMade(path: self.place.key)))
    }

    @Test("that was emptied is set aside and said; one that is gone is said to be begun anew")
    func emptied() async throws {
        let state = try self.place.open()
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await state.close()
        try #require(unsafe truncate(self.place.data, 0) == 0)
        let events = Events()
        try await self.place.openOnce(events)
        let name = "state.mdb.damaged-1700000000"
        #expect(events.all == [.setAside(name: name, reason: "it is empty")])
        try #require(unsafe unlink(self.place.data) == 0)
        let later = Events()
        try await self.place.openOnce(later)
        #expect(later.all == [.begunAnew])
        let last = Events()
        try await self.place.openOnce(last)
        #expect(last.all.isEmpty)
    }

    @Test("is not waited for where something else bears its name", arguments: [false, true])
    func noFile(_ isDirectory: Bool) async throws {
        try await self.place.openOnce()
        try #require(unsafe unlink(self.place.data) == 0)
        let made =
            isDirectory
            ? unsafe mkdir(self.place.data, 0o700) : unsafe mkfifo(self.place.data, 0o600)
        try #require(made == 0)
        let events = Events()
        try await self.place.openOnce(events)
        #expect(
            events.all == [.setAside(name: "state.mdb.damaged-1700000000", reason: "not a file")])
    }

    @Test("is opened again once that can be done, and only if it is the same session's")
    func openedAgain() async throws {
        let state = try self.place.open()
        try await state.cookies(of: "").apply([.stored(cookie("a"))])
        await state.lose()
        let hidden = self.place.data + ".hidden"
        try #require(unsafe rename(self.place.data, hidden) == 0)
        await #expect(throws: CookieStorageError.self) {
            try await state.cookies(of: "").apply([.stored(cookie("b"))])
        }
        let other = TemporaryDirectory()
        try await other.openOnce()
        try writeFile(self.place.data, try readFile(other.data))
        let foreign = try readFile(self.place.data)
        await #expect(throws: CookieStorageError.self) {
            try await state.cookies(of: "").apply([.stored(cookie("b"))])
        }
        #expect(try readFile(self.place.data) == foreign)
        try #require(unsafe rename(hidden, self.place.data) == 0)
        try await state.cookies(of: "").apply([.stored(cookie("b"))])
        #expect(try await state.cookies(of: "").load().count == 2)
        await state.close()
    }

    @Test("loads what opens, and says how much does not")
    func unreadable() async throws {
        let state = try self.place.open()
        try await state.cookies(of: "").apply((0..<20).map { .stored(cookie("c\($0)", "\($0)")) })
        await state.close()
        try self.damageOneValue()
        let events = Events()
        let again = try self.place.open(events)
        #expect(try await again.cookies(of: "").load().count == 19)
        #expect(events.all == [.unreadable(records: 1)])
        await again.close()
    }

    /// Changes one record's value in the file, where LMDB sees nothing amiss.
    private func damageOneValue() throws {
        let storage = try StateStorage.open(self.place.data)
        defer { storage.environment.close() }
        let all = try storage.all().filter { RecordSeal.kind(of: $0.key) == .cookie }
        var victim = try #require(all.first)
        victim.value[victim.value.count - 1] ^= 1
        try storage.environment.write { (transaction) throws(LMDBError) in
            try transaction.put(storage.records, victim.key.span, victim.value.span)
        }
    }

    @Test("grows with what it is given, up to its capacity, and goes on after a refusal")
    func full() async throws {
        let state = try self.place.open(capacity: .mebibytes(20))
        let cookies = state.cookies(of: "")
        let value = String(repeating: "v", count: 4000)
        var stored = 0
        var refusal: CookieStorageError?
        while refusal == nil, stored < 20_000 {
            let batch = (stored..<stored + 200).map {
                CookieChange.stored(cookie("c\($0)", value, domain: "d\($0 % 97).example"))
            }
            do throws(CookieStorageError) {
                try await cookies.apply(batch)
                stored += 200
            } catch {
                refusal = error
            }
        }
        #expect(refusal?.code == .full)
        #expect(stored > 1000)
        #expect(try await cookies.load().count == stored)
        try await cookies.apply(
            (0..<200).map { .removed(cookie("c\($0)", domain: "d\($0 % 97).example").identity) })
        try await cookies.apply([.stored(cookie("late"))])
        #expect(try await cookies.load().count == stored - 199)
        await state.close()
        let again = try self.place.open(capacity: .mebibytes(20))
        #expect(try await again.cookies(of: "").load().count == stored - 199)
        await again.close()
    }

    @Test("refuses to write to a file that was deleted under it, and says so")
    func deleted() async throws {
        let state = try self.place.open()
        try #require(unsafe unlink(self.place.data) == 0)
        await #expect(throws: CookieStorageError.self) {
            try await state.cookies(of: "").apply([.stored(cookie("a"))])
        }
        await state.close()
    }

    @Test("holds no value, password, token, name, host or user in clear, in base64 or in hex")
    func nothingInClear() async throws {
        let state = try self.place.open()
        let words = [
            "Kuckucksuhr-Wert", "correct-horse-battery", "tok_5f3a9c", "X-Secret-Key-Name",
            "hidden-host.example", "mallory-the-user", "user:wachtmeister", "cookie-by-name",
        ]
        try await state.cookies(of: words[6]).apply([
            .stored(cookie(words[7], words[0], domain: words[4]))
        ])
        try await state.credentials(of: words[6]).apply([
            .stored(credential(words[5], words[1]), space(words[4])),
            .defaultChanged(user: words[5], space(words[4])),
            .named(token("n", words[2])),
            .named(
                NamedCredential(
                    name: "k", kind: .field(name: words[3], value: Secret(words[1])),
                    persistence: .permanent)),
        ])
        try self.expectAbsent(words)
        try await state.rotate()
        try await state.removeAll(of: words[6])
        await state.close()
        try self.expectAbsent(words)
        // The search finds what is there.
        #expect(try readFile(self.place.data).contains("larder state"))
    }

    private func expectAbsent(_ words: [String]) throws {
        for name in TemporaryDirectory.names(self.place.state) {
            let bytes = try readFile("\(self.place.state)/\(name)")
            for word in words {
                for form in Self.forms(word) {
                    #expect(!bytes.contains(form), "\(name) holds a form of \(word)")
                }
            }
        }
    }

    /// A text as it is, in hex of both cases, and in base64 at each of its three alignments.
    private static func forms(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        let hex = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        let base64 = (0..<3).map { skipped in
            var text = ""
            var i = skipped
            while i + 3 <= bytes.count {
                let group = Int(bytes[i]) << 16 | Int(bytes[i + 1]) << 8 | Int(bytes[i + 2])
                for shift in [18, 12, 6, 0] { text.append(alphabet[group >> shift & 63]) }
                i += 3
            }
            return text
        }
        return [text, hex, hex.uppercased()] + base64
    }
}

extension StateFile {
    /// Leaves it as a failed attempt to open the file anew does.
    fileprivate func lose() {
        self.opened?.storage.environment.close()
        self.opened = nil
    }
}

extension [UInt8] {
    /// Whether the bytes of a text are among these.
    func contains(_ text: String) -> Bool {
        let wanted = Array(text.utf8)
        guard let first = wanted.first else { return true }
        return unsafe self.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            var offset = 0
            while bytes.count - offset >= wanted.count,
                let found = unsafe memchr(start + offset, Int32(first), bytes.count - offset)
            {
                offset = unsafe UnsafeRawPointer(found) - start
                guard offset + wanted.count <= bytes.count else { return false }
                if unsafe memcmp(found, wanted, wanted.count) == 0 { return true }
                offset += 1
            }
            return false
        }
    }
}
