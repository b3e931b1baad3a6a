import Foundation
import LarderEngine
import LarderHTTP
import LarderSession
import LarderState
import Synchronization
import Testing

@testable import URLLoading

/// A directory of the test's own, gone with it.
private final class Place: Sendable {
    let path = NSTemporaryDirectory() + "/cookies-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    var configuration: StateConfiguration {
        StateConfiguration(
            directory: "\(self.path)/.cookies.test", key: .file("\(self.path)/.cookies.test.key"))
    }

    /// As another process would have it.
    func storage() -> HTTPCookieStorage {
        HTTPCookieStorage(CookieStore(SharedState(self.configuration, now: CookieMoment.now)))
    }

    var contents: [UInt8] {
        let enumerator = FileManager.default.enumerator(atPath: self.path)
        var all: [UInt8] = []
        while let name = enumerator?.nextObject() as? String {
            all +=
                FileManager.default.contents(atPath: "\(self.path)/\(name)").map(Array.init) ?? []
        }
        return all
    }
}

@Suite("Cookies that outlive their process (§9.2)")
struct CookieKeepingTests {
    private let place = Place()

    @Test("are those with a date, once flushed")
    func kept() async throws {
        let first = self.place.storage()
        let dated = try made("dated", "s3cr3t-value", domain: ".a.example", expires: 5000)
        first.setCookie(dated)
        first.setCookie(try made("session"))
        first.setCookie(try made("discarded", expires: 5000, [.discard: "TRUE"]))
        await first.flush()
        let second = self.place.storage()
        #expect(second.cookies == [dated])
        #expect(second.cookies?.first?.isSecure == false)
        #expect(second.description == "<NSHTTPCookieStorage cookies count:1>")
        let needle = Array("s3cr3t-value".utf8)
        let contents = self.place.contents
        #expect(contents.count > 1000)
        #expect(Data(contents).range(of: Data(needle)) == nil)
    }

    @Test("leave their directory as soon as one is set, and nothing before")
    func directory() throws {
        let storage = self.place.storage()
        #expect(storage.cookies == [])
        #expect(!FileManager.default.fileExists(atPath: self.place.path))
        storage.setCookie(try made("n"))
        #expect(FileManager.default.fileExists(atPath: self.place.configuration.directory))
    }

    @Test("go when they are deleted, removed or replaced by one of the session")
    func removal() async throws {
        let first = self.place.storage()
        for name in ["a", "b", "c"] { first.setCookie(try made(name, expires: 5000)) }
        await first.flush()
        first.deleteCookie(try made("a"))
        first.setCookie(try made("b"))
        await first.flush()
        #expect(self.place.storage().names == ["c"])
        first.removeCookies(since: .distantPast)
        await first.flush()
        #expect(self.place.storage().names == [])
    }

    @Test("are seen by other processes at once, and merged with theirs")
    func merging() async throws {
        let (one, other) = (self.place.storage(), self.place.storage())
        #expect(one.names == [] && other.names == [])
        one.setCookie(try made("a", expires: 5000))
        other.setCookie(try made("b", expires: 5000))
        other.setCookie(try made("own"))
        await one.flush()
        await other.flush()
        #expect(Set(one.names) == ["a", "b"])
        #expect(Set(other.names) == ["a", "b", "own"])
        one.deleteCookie(try made("b"))
        await one.flush()
        #expect(Set(other.names) == ["a", "own"])
        other.setCookie(try made("a", "new", expires: 5000))
        await other.flush()
        #expect(one.cookies?.map(\.value) == ["new"])
    }

    @Test("reach a session that sends requests, without its waiting")
    func sessions() async throws {
        let (one, other) = (self.place.storage(), self.place.storage())
        let view = other.hopCookies(accept: .always, sets: true)
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let token = NotificationCenter.default.addObserver(
            forName: .NSHTTPCookieManagerCookiesChanged, object: other, queue: nil
        ) { _ in continuation.finish() }
        defer { NotificationCenter.default.removeObserver(token) }
        one.setCookie(try made("a", expires: 5000))
        await one.flush()
        let uri = try #require(TargetURI(text: "http://a.example/"))
        let hop = Hop(method: .get, uri: uri, client: [:], cookies: RequestCookies())
        var fields: Fields = [:]
        view.addCookies(to: &fields, for: hop, at: CookieMoment.now)
        for await _ in stream {}
        view.addCookies(to: &fields, for: hop, at: CookieMoment.now)
        #expect(fields.string("Cookie") == "a=v")
    }

    @Test("come from responses, too")
    func responses() async throws {
        let one = self.place.storage()
        let view = one.hopCookies(accept: .always, sets: true)
        let uri = try #require(TargetURI(text: "https://a.example/x"))
        let hop = Hop(method: .get, uri: uri, client: [:], cookies: RequestCookies())
        var head = ResponseHead(status: StatusCode(401))
        head.fields.append(
            "Set-Cookie", "a=1; Max-Age=900; HttpOnly; SameSite=Lax; Domain=a.example")
        view.takeCookies(from: &head, for: hop, at: CookieMoment.now)
        await one.flush()
        let found = try #require(self.place.storage().cookies?.first)
        #expect(found.isHTTPOnly && found.sameSitePolicy == .sameSiteLax)
        #expect(found.domain == ".a.example" && found.path == "/")
    }

    /// What a small program does: something is set, and then it is over.
    private static func setAndEnd(_ path: String) throws {
        let configuration = StateConfiguration(
            directory: "\(path)/.cookies.test", key: .file("\(path)/.cookies.test.key"))
        let storage = HTTPCookieStorage(
            CookieStore(SharedState(configuration, now: CookieMoment.now)))
        storage.store.finishAtExit()
        for number in 0..<20 { storage.setCookie(try made("n\(number)", expires: 5000)) }
        exit(0)
    }

    @Test("are kept before a program ends that ends at once")
    func lastWork() async throws {
        let path = self.place.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            try Self.setAndEnd(path)
        }
        #expect(self.place.storage().cookies?.count == 20)
    }

    @Test("are kept before a program ends whose tasks block all the threads that tasks share")
    func lastWorkAmongBlocked() async throws {
        let path = self.place.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            await SharedThreads.amongBlocked { try? Self.setAndEnd(path) }
        }
        #expect(self.place.storage().cookies?.count == 20)
    }

    /// A run of a program that finds so many cookies, and adds one.
    private static func run(_ data: String, finding count: Int) throws {
        guard unsafe setenv("XDG_DATA_HOME", data, 1) == 0 else { exit(4) }
        let storage = HTTPCookieStorage.shared
        guard storage.cookies?.count == count else { exit(2) }
        storage.setCookie(try made("session"))
        let place = "\(data)/\(KeptPlace.application)/.cookies.shared"
        guard FileManager.default.fileExists(atPath: place) else { exit(3) }
        storage.setCookie(try made("n\(count)", expires: 5000))
        exit(0)
    }

    @Test("are those of the shared storage, from run to run of a program")
    func runs() async throws {
        let path = self.place.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            try Self.run(path, finding: 0)
        }
        await #expect(processExitsWith: .success) { [path = path as String] in
            try Self.run(path, finding: 1)
        }
        await #expect(processExitsWith: .success) { [path = path as String] in
            try Self.run(path, finding: 2)
        }
    }

    @Test("stay in memory where the disk has no place for them")
    func broken() async throws {
        try FileManager.default.createDirectory(
            atPath: self.place.path, withIntermediateDirectories: true)
        #expect(
            FileManager.default.createFile(
                atPath: self.place.configuration.directory, contents: Data("no directory".utf8)))
        let storage = self.place.storage()
        storage.setCookie(try made("a", expires: 5000))
        await storage.flush()
        #expect(storage.names == ["a"])
        #expect(try storage.names(for: "http://a.example/") == ["a"])
    }

    /// Looks where groups are kept of which there was something before.
    private static func findGroups(_ data: String) throws {
        guard unsafe setenv("XDG_DATA_HOME", data, 1) == 0 else { exit(4) }
        let place = "\(data)/\(KeptPlace.application)"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: true)
        for name in ["g.x", "shared", "shared.key"] {
            let key = "\(place)/.cookies.\(name).key"
            guard FileManager.default.createFile(atPath: key, contents: nil) else { exit(3) }
        }
        let names = ["g.x", "g.y", "shared", "shared.key"].map { KeptPlace.name(ofGroup: $0) }
        exit(
            names == [
                ".cookies.g.x", ".group-cookies.g.y.state", ".group-cookies.shared.state",
                ".group-cookies.shared.key.state",
            ] ? 0 : 2)
    }

    @Test("of a group stay where they once were kept, but where that is another's place")
    func formerGroups() async throws {
        let path = self.place.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            try Self.findGroups(path)
        }
    }

    @Test(
        "are in the place of their directory, credentials not where all programs are built",
        arguments: [
            ("/a/app", "app", "app"), ("/a/app.resources", "app", "app"), ("/a/bin", "p", "p"),
            ("/", "p", "p"), ("/a/debug", "debug", "p-9d9d508b43f48d01"),
            ("/b/debug", "debug", "p-22fd36349192df6c"),
            ("/a/release", "release", "p-4243768b2b3dcccf"),
            ("/a/Debug-linux", "Debug-linux", "p-d47a8b3c6f197dfa"),
            ("/a/debugger", "debugger", "debugger"),
        ])
    func program(path: String, cookies: String, credentials: String) {
        #expect(KeptPlace.name(in: path, process: "p", keeping: .cookies) == cookies)
        #expect(KeptPlace.name(in: path, process: "p", keeping: .credentials) == credentials)
    }

    @Test("are in one place for one name")
    func places() {
        #expect(HTTPCookieStorage.shared === HTTPCookieStorage.shared)
        let group = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "g")
        #expect(group === HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "g"))
        #expect(group !== HTTPCookieStorage.shared)
        #expect(KeptPlace.state(named: ".cookies.shared").directory.hasSuffix("/.cookies.shared"))
        #expect(KeptPlace.component("../x/y") == "..%2Fx%2Fy")
        #expect(KeptPlace.component("..") == "_")
        // No group has the place of another, nor of a key, nor the program's own.
        let long = String(repeating: "é", count: 300)
        let names = [
            "shared", "shared.key", "g", "g.key", "g.state.key", "", ".", "..", "a/b", "a%2Fb",
            long, long + "x", long + ".key",
        ].map { KeptPlace.name(ofGroup: $0) }
        let places = ([".cookies.shared", ".credentials.shared"] + names).flatMap { name in
            let directory = KeptPlace.state(named: name).directory
            return [directory, directory + ".key"]
        }
        #expect(Set(places).count == places.count)
        #expect(
            KeptPlace.state(named: KeptPlace.name(ofGroup: "a/b")).directory
                .hasSuffix("/.group-cookies.a%2Fb.state"))
        #expect(KeptPlace.component(String(repeating: ".", count: 300)).count < 160)
        #expect(KeptPlace.component(long).utf8.count < 160)
        #expect(KeptPlace.component(long) != KeptPlace.component(long + "x"))
    }

    @Test("share one open state in one process, whatever path leads there")
    func registry() throws {
        let configuration = self.place.configuration
        var other = configuration
        let state = LibraryState.shared(configuration)
        #expect(LibraryState.shared(configuration) === state)
        try state.prepare()
        let link = "\(self.place.path)-link"
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: self.place.path)
        defer { try? FileManager.default.removeItem(atPath: link) }
        other.directory = "\(link)/.cookies.test"
        #expect(LibraryState.shared(other) === state)
        other.directory = "\(link)/.cookies.other"
        #expect(LibraryState.shared(other) !== state)
    }
}
