import LarderCredentials
import LarderHTTP
import Testing

@Suite("A store that several processes keep permanent credentials for")
struct CredentialRereadingTests {
    private static let space = ProtectionSpace(
        party: .server(.https), host: "example.com", port: 443, realm: "r", method: .basic)

    private func credential(_ user: String, _ persistence: CredentialPersistence) -> Credential {
        Credential(user: user, password: Secret("p"), persistence: persistence)
    }

    private func store(_ credentials: Credential...) -> CredentialStore {
        var store = CredentialStore(keepsPermanent: true)
        for credential in credentials { store.set(credential, for: Self.space) }
        return store
    }

    @Test("has what the storage has, in the place of what it had of it")
    func replaced() {
        var store = self.store(self.credential("old", .permanent))
        store.reread([
            .stored(self.credential("new", .permanent), Self.space),
            .defaultChanged(user: "new", Self.space),
        ])
        #expect(store.credentials(for: Self.space).keys.sorted() == ["new"])
        #expect(store.defaultCredential(for: Self.space)?.user == "new")
        store.reread([])
        #expect(store.isEmpty)
    }

    @Test("keeps what is of the session, and a default among it")
    func kept() {
        var store = self.store(
            self.credential("passing", .forSession), self.credential("old", .permanent))
        store.set(NamedCredential(name: "n", kind: .bearer(Secret("t")), persistence: .forSession))
        store.reread([
            .stored(self.credential("new", .permanent), Self.space),
            .defaultChanged(user: "new", Self.space),
        ])
        #expect(store.credentials(for: Self.space).keys.sorted() == ["new", "passing"])
        #expect(store.defaultCredential(for: Self.space)?.user == "passing")
        #expect(store.named("n") != nil)
    }

    @Test("has the storage's default in the place of the one it had, if that was to last")
    func permanentDefault() {
        var store = self.store(
            self.credential("old", .permanent), self.credential("passing", .forSession))
        store.reread([
            .stored(self.credential("a", .permanent), Self.space),
            .stored(self.credential("z", .permanent), Self.space),
            .defaultChanged(user: "z", Self.space),
        ])
        #expect(store.defaultCredential(for: Self.space)?.user == "z")
    }

    @Test("has no default where the permanent one is gone")
    func withoutDefault() {
        var store = self.store(
            self.credential("old", .permanent), self.credential("passing", .forSession))
        store.reread([])
        #expect(store.credentials(for: Self.space).keys.sorted() == ["passing"])
        #expect(store.defaultCredential(for: Self.space) == nil)
        #expect(store.offered(for: Self.space)?.user == "passing")
    }
}
