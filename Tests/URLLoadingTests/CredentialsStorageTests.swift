import Foundation
import LarderCredentials
import Synchronization
import Testing

@testable import URLLoading

@Suite("A storage of credentials (§6.6)")
struct CredentialsStorageTests {
    private static func space(
        _ host: String = "example.com", port: Int = 80, protocol: String? = "http",
        realm: String? = nil, method: String? = nil
    ) -> URLProtectionSpace {
        URLProtectionSpace(
            host: host, port: port, protocol: `protocol`, realm: realm,
            authenticationMethod: method)
    }

    /// Those that the engine knows, and those that it does not.
    static let spaces = [
        Self.space(), Self.space(port: 0), Self.space("[::1]"), Self.space("::1"),
        Self.space("EXAMPLE.com", realm: "r", method: NSURLAuthenticationMethodHTTPBasic),
        Self.space(protocol: "imap"), Self.space(port: 70000), Self.space(port: -1),
        Self.space(protocol: nil), Self.space(method: "basic"),
        URLProtectionSpace(
            proxyHost: "p", port: 1, type: NSURLProtectionSpaceSOCKSProxy, realm: nil,
            authenticationMethod: nil),
        URLProtectionSpace(
            proxyHost: "p", port: 1, type: "else", realm: "r", authenticationMethod: nil),
    ]

    private func credential(
        _ user: String, _ password: String = "p",
        _ persistence: URLCredential.Persistence = .forSession
    ) -> URLCredential {
        URLCredential(user: user, password: password, persistence: persistence)
    }

    /// How often a change was told while something was done, on this thread.
    private func changes(_ storage: URLCredentialStorage, _ body: () -> Void) -> Int {
        let count = Mutex(0)
        let observer = NotificationCenter.default.addObserver(
            forName: .NSURLCredentialStorageChanged, object: storage, queue: nil
        ) { _ in count.withLock { $0 += 1 } }
        body()
        NotificationCenter.default.removeObserver(observer)
        return count.withLock { $0 }
    }

    @Test("holds credentials by space and user; the first one becomes the default", arguments: spaces)
    func holding(space: URLProtectionSpace) {
        let storage = URLCredentialStorage()
        let (one, two) = (self.credential("one"), self.credential("two", "q", .permanent))
        #expect(storage.credentials(for: space) == nil)
        storage.set(one, for: space)
        storage.set(two, for: space)
        #expect(storage.credentials(for: space) == ["one": one, "two": two])
        #expect(storage.allCredentials == [space: ["one": one, "two": two]])
        #expect(storage.defaultCredential(for: space) == one)
        storage.setDefaultCredential(two, for: space)
        #expect(storage.defaultCredential(for: space) == two)
        let replaced = self.credential("two", "new")
        storage.set(replaced, for: space)
        #expect(storage.credentials(for: space)?["two"] == replaced)
        storage.remove(replaced, for: space)
        #expect(storage.defaultCredential(for: space) == nil)
        #expect(storage.credentials(for: space) == ["one": one])
        storage.remove(one, for: space)
        #expect(storage.credentials(for: space) == nil)
        #expect(storage.allCredentials.isEmpty)
    }

    @Test("tells of each effective change once, and of no other", arguments: spaces)
    func notifications(space: URLProtectionSpace) {
        let storage = URLCredentialStorage()
        let (one, two) = (self.credential("one"), self.credential("two"))
        #expect(self.changes(storage) { storage.set(one, for: space) } == 1)
        #expect(self.changes(storage) { storage.set(self.credential("one"), for: space) } == 0)
        #expect(self.changes(storage) { storage.setDefaultCredential(one, for: space) } == 0)
        #expect(self.changes(storage) { storage.setDefaultCredential(two, for: space) } == 1)
        #expect(self.changes(storage) { storage.set(self.credential("one", "q"), for: space) } == 1)
        #expect(self.changes(storage) { storage.remove(one, for: space) } == 0)
        #expect(
            self.changes(storage) { storage.remove(self.credential("one", "q"), for: space) } == 1)
        let other = Self.space("other.example")
        #expect(self.changes(storage) { storage.remove(two, for: other) } == 0)
        #expect(self.changes(storage) { storage.remove(two, for: space) } == 1)
    }

    @Test(
        "keeps nothing that is used once or synchronised",
        arguments: [URLCredential.Persistence.none, .synchronizable])
    func unkept(persistence: URLCredential.Persistence) {
        let storage = URLCredentialStorage()
        let credential = self.credential("u", "p", persistence)
        let told = self.changes(storage) {
            storage.set(credential, for: Self.space())
            storage.setDefaultCredential(credential, for: Self.space())
            for value in [NSNumber(value: false), NSNumber(value: true), NSString("yes")] {
                storage.remove(
                    credential, for: Self.space(),
                    options: [NSURLCredentialStorageRemoveSynchronizableCredentials: value])
            }
        }
        #expect(told == 0)
        #expect(storage.allCredentials.isEmpty)
        #expect(storage.defaultCredential(for: Self.space()) == nil)
    }

    @Test("one that is nobody's becomes the default alone")
    func identities() throws {
        let storage = URLCredentialStorage()
        let credential = URLCredential(
            identity: try CertificateFixtures.identity(), certificates: nil,
            persistence: .forSession)
        let space = Self.space(
            port: 443, protocol: "https", method: NSURLAuthenticationMethodClientCertificate)
        #expect(self.changes(storage) { storage.setDefaultCredential(credential, for: space) } == 1)
        #expect(storage.defaultCredential(for: space) == credential)
        #expect(storage.credentials(for: space) == nil)
        #expect(self.changes(storage) { storage.remove(credential, for: space) } == 1)
        #expect(storage.defaultCredential(for: space) == nil)
    }

    @Test("the methods with a task do the same")
    func tasks() throws {
        let storage = URLCredentialStorage()
        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: try #require(URL(string: "http://example.com/")))
        let (one, space) = (self.credential("one"), Self.space())
        storage.set(one, for: space, task: task)
        var isCalled = false
        storage.getCredentials(for: space, task: task) {
            #expect($0 == ["one": one])
            isCalled = true
        }
        #expect(isCalled)
        storage.setDefaultCredential(self.credential("two"), for: space, task: task)
        storage.getDefaultCredential(for: space, task: task) { #expect($0?.user == "two") }
        storage.remove(one, for: space, options: [:], task: task)
        #expect(storage.credentials(for: space)?.count == 1)
    }

    @Test("a reset empties it, and forgets what was accepted")
    func reset() {
        let storage = URLCredentialStorage()
        for space in Self.spaces { storage.set(self.credential("u"), for: space) }
        #expect(self.changes(storage) { storage.removeAll() } == 1)
        #expect(storage.allCredentials.isEmpty)
        #expect(self.changes(storage) { storage.removeAll() } == 0)
    }

    @Test("permanent credentials go to the storage behind it, others do not")
    func permanent() async {
        let kept = RecordedStorage()
        let storage = URLCredentialStorage(keeping: kept)
        let space = Self.space(realm: "r", method: NSURLAuthenticationMethodHTTPBasic)
        storage.set(self.credential("lasting", "p", .permanent), for: space)
        storage.set(self.credential("passing"), for: space)
        await storage.flush()
        #expect(kept.users == ["lasting"])
        let again = URLCredentialStorage(keeping: kept)
        await again.servers.load()
        #expect(again.defaultCredential(for: space)?.user == "lasting")
        again.remove(self.credential("lasting", "p", .permanent), for: space)
        await again.flush()
        #expect(kept.users.isEmpty)
    }

    @Test("a program's subclass hears what was accepted, and is asked for its default")
    func subclass() async throws {
        let storage = HeardStorage()
        var script = try ScriptedChallenges(storage: storage)
        _ = script.challenged("Basic realm=\"r\"")
        #expect(script.machine.decided(.performDefaultHandling, nil).field == basic("asked"))
        _ = script.challenged("Basic realm=\"r\"")
        _ = script.use("new")
        let heard = await withCheckedContinuation { continuation in
            storage.expect { continuation.resume(returning: $0) }
            script.accepted()
        }
        #expect(heard == "new")
    }

    @Test("many threads may use it")
    func threads() async {
        let storage = URLCredentialStorage()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask {
                    let space = Self.space(realm: "\(number % 5)")
                    let credential = URLCredential(
                        user: "\(number)", password: "p", persistence: .forSession)
                    storage.set(credential, for: space)
                    _ = storage.allCredentials
                    storage.remove(credential, for: space)
                }
            }
        }
        #expect(storage.allCredentials.isEmpty)
    }
}

/// A storage in memory.
private final class RecordedStorage: CredentialStorage {
    private let changes = Mutex<[CredentialChange]>([])

    var users: Set<String> {
        var store = CredentialStore(keepsPermanent: true)
        store.restore(self.changes.withLock { $0 })
        return Set(store.all.map(\.credential.user))
    }

    func load() async throws(CredentialStorageError) -> [CredentialChange] {
        self.changes.withLock { $0 }
    }

    func apply(_ changes: [CredentialChange]) async throws(CredentialStorageError) {
        self.changes.withLock { $0 += changes }
    }
}

/// A program's own.
private final class HeardStorage: URLCredentialStorage, @unchecked Sendable {
    private let heard = Mutex<(@Sendable (String?) -> Void)?>(nil)

    func expect(_ body: @escaping @Sendable (String?) -> Void) {
        self.heard.withLock { $0 = body }
    }

    override func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        URLCredential(user: "asked", password: "secret", persistence: .none)
    }

    override func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.heard.withLock { $0 }?(credential.user)
    }

    override func set(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.heard.withLock { $0 }?(credential.user)
    }
}
