import LarderCredentials
import LarderHTTP
import SeededNumbers
import Testing

@Suite("The credential store")
struct CredentialStoreTests {
    private static func space(
        _ realm: String? = "r", host: String = "a.test",
        party: ProtectionSpace.Party = .server(.https), method: AuthenticationMethod = .basic
    ) -> ProtectionSpace {
        ProtectionSpace(party: party, host: host, port: 443, realm: realm, method: method)
    }

    private static func credential(
        _ user: String, _ password: String = "p", _ persistence: CredentialPersistence = .permanent
    ) -> Credential {
        Credential(user: user, password: Secret(password), persistence: persistence)
    }

    @Test("the first credential is the default until another is made so")
    func defaults() {
        var store = CredentialStore(keepsPermanent: true)
        let space = Self.space()
        #expect(store.defaultCredential(for: space) == nil && store.isEmpty)
        #expect(
            store.set(Self.credential("a"), for: space) == [
                .stored(Self.credential("a"), space), .defaultChanged(user: "a", space),
            ])
        #expect(
            store.set(Self.credential("b"), for: space) == [.stored(Self.credential("b"), space)])
        #expect(store.defaultCredential(for: space)?.user == "a")
        #expect(
            store.setDefault(Self.credential("b"), for: space) == [
                .defaultChanged(user: "b", space)
            ])
        #expect(store.set(Self.credential("b"), for: space).isEmpty)
        #expect(store.defaultCredential(for: space)?.user == "b")
        #expect(Set(store.credentials(for: space).keys) == ["a", "b"])
        #expect(
            store.remove(user: "b", for: space) == [
                .removed(user: "b", space), .defaultChanged(user: nil, space),
            ])
        #expect(store.defaultCredential(for: space) == nil)
        #expect(store.remove(user: "b", for: space).isEmpty)
        store.set(Self.credential("c"), for: space)
        #expect(store.defaultCredential(for: space)?.user == "c")
    }

    @Test("a challenge is offered what there is, the default first")
    func offered() {
        var store = CredentialStore(keepsPermanent: true)
        let space = Self.space()
        #expect(store.offered(for: space) == nil)
        for user in ["d", "b", "c"] { store.set(Self.credential(user), for: space) }
        #expect(store.offered(for: space)?.user == "d")
        store.remove(user: "d", for: space)
        #expect(store.defaultCredential(for: space) == nil)
        #expect(store.offered(for: space)?.user == "b")
        #expect(store.offered(for: Self.space("other")) == nil)
    }

    @Test("a default for the session takes none away that lasts, and gives its place back")
    func passingDefault() {
        var store = CredentialStore(keepsPermanent: true)
        let space = Self.space()
        store.set(Self.credential("k"), for: space)
        #expect(store.setDefault(Self.credential("s", "p", .forSession), for: space).isEmpty)
        #expect(store.defaultCredential(for: space)?.user == "s")
        #expect(store.set(Self.credential("l"), for: space).count == 1)
        #expect(store.remove(user: "s", for: space).isEmpty)
        #expect(store.defaultCredential(for: space)?.user == "k")
        // What lasts may change its default beneath it.
        store.setDefault(Self.credential("s", "p", .forSession), for: space)
        #expect(
            store.remove(user: "k", for: space) == [
                .removed(user: "k", space), .defaultChanged(user: nil, space),
            ])
        #expect(store.defaultCredential(for: space)?.user == "s")
        #expect(
            store.setDefault(Self.credential("l"), for: space) == [
                .defaultChanged(user: "l", space)
            ])
        store.endSession()
        #expect(store.defaultCredential(for: space)?.user == "l")
    }

    @Test("a credential for one use is never kept")
    func none() {
        var store = CredentialStore(keepsPermanent: true)
        store.set(Self.credential("a", "old"), for: Self.space())
        #expect(store.setDefault(Self.credential("a", "new", .none), for: Self.space()).isEmpty)
        #expect(store.defaultCredential(for: Self.space())?.password == Secret("old"))
    }

    @Test("what is for the session reaches no storage, and leaves it when it was there")
    func forSession() {
        var store = CredentialStore(keepsPermanent: true)
        let space = Self.space()
        #expect(store.set(Self.credential("s", "p", .forSession), for: space).isEmpty)
        store.setDefault(Self.credential("p"), for: space)
        #expect(
            store.set(Self.credential("p", "q", .forSession), for: space) == [
                .removed(user: "p", space), .defaultChanged(user: nil, space),
            ])
        store.set(Self.credential("k"), for: space)
        store.endSession()
        #expect(store.all.map(\.credential.user) == ["k"])
    }

    @Test("an ephemeral store keeps what is permanent for the session, and tells nobody")
    func ephemeral() {
        var store = CredentialStore(keepsPermanent: false)
        #expect(store.setDefault(Self.credential("a"), for: Self.space()).isEmpty)
        #expect(store.defaultCredential(for: Self.space())?.user == "a")
        var copy = store
        #expect(copy.remove(user: "a", for: Self.space()).isEmpty && copy.isEmpty)
        store.endSession()
        #expect(store.isEmpty)
        store.restore([.stored(Self.credential("a"), Self.space())])
        #expect(store.isEmpty)
    }

    @Test(
        "a space is another one when any part differs",
        arguments: [
            space("R"), space(nil), space(host: "b.test"), space(party: .server(.http)),
            space(party: .proxy(.https)), space(method: .digest),
            ProtectionSpace(
                party: .server(.https), host: "a.test", port: 444, realm: "r", method: .basic),
        ])
    func spaces(_ other: ProtectionSpace) {
        var store = CredentialStore(keepsPermanent: true)
        store.set(Self.credential("a"), for: Self.space(host: "A.TEST"))
        #expect(store.defaultCredential(for: Self.space())?.user == "a")
        #expect(store.credentials(for: other).isEmpty)
        #expect(store.remove(user: "a", for: other).isEmpty)
    }

    @Test(
        "a storage that follows the changes holds what is permanent", arguments: [1, 2] as [UInt64])
    func changes(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var store = CredentialStore(keepsPermanent: true)
        var held = CredentialStore(keepsPermanent: true)
        var events = 0
        for i in 0..<500 {
            let space = Self.space("r\(Int.random(in: 0..<3, using: &generator))")
            let user = "u\(Int.random(in: 0..<4, using: &generator))"
            let persistence = CredentialPersistence.allCases.randomElement(using: &generator)
            let credential = Self.credential(user, "p\(i % 7)", persistence ?? .none)
            let changes =
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: store.set(credential, for: space)
                case 1: store.setDefault(credential, for: space)
                default: store.remove(user: user, for: space)
                }
            events += changes.count
            held.restore(changes)
            for r in 0..<3 {
                let space = Self.space("r\(r)")
                let permanent = store.credentials(for: space).filter {
                    $0.value.persistence == .permanent
                }
                #expect(held.credentials(for: space) == permanent)
                let chosen = store.defaultCredential(for: space)
                if let chosen, chosen.persistence == .permanent {
                    #expect(held.defaultCredential(for: space) == chosen)
                } else if chosen == nil {
                    #expect(held.defaultCredential(for: space) == nil)
                }
                #expect((store.offered(for: space) == nil) == store.credentials(for: space).isEmpty)
            }
        }
        #expect(events > 100)
    }
}

@Suite("Spaces and secrets")
struct ProtectionSpaceTests {
    @Test("a challenge names its space; one that no password answers names none")
    func ofChallenge() throws {
        let uri = TargetURI(scheme: .http, host: "a.test", port: 8080, pathAndQuery: "/")
        let space = try #require(ProtectionSpace(challenge("Digest realm=x, nonce=n"), from: uri))
        #expect(
            space
                == ProtectionSpace(
                    party: .server(.http), host: "a.test", port: 8080, realm: "x", method: .digest))
        #expect(try ProtectionSpace(challenge("Bearer"), from: uri) == nil)
        #expect(!space.isProxy && !space.receivesCredentialSecurely)
    }

    @Test(
        "a secret travels safely over TLS, or by a method that hides it",
        arguments: [
            (.server(.https), .basic, true), (.server(.http), .basic, false),
            (.server(.http), .digest, false), (.server(.http), .ntlm, true),
            (.server(.ftp), .default, false), (.proxy(.https), .basic, true),
            (.proxy(.http), .form, false), (.proxy(.socks), .negotiate, true),
        ] as [(ProtectionSpace.Party, AuthenticationMethod, Bool)])
    func security(
        _ party: ProtectionSpace.Party, _ method: AuthenticationMethod, _ expected: Bool
    ) {
        let space = ProtectionSpace(
            party: party, host: "a.test", port: 1, realm: nil, method: method)
        #expect(space.receivesCredentialSecurely == expected)
        if case .proxy = party { #expect(space.isProxy) }
    }

    @Test("no description, mirror or dump shows a secret")
    func descriptions() throws {
        let credential = Credential(
            user: "anna", password: Secret("geheim"), persistence: .permanent)
        var store = CredentialStore(keepsPermanent: true)
        let space = ProtectionSpace(
            party: .server(.https), host: "a.test", port: 443, realm: "r", method: .basic)
        let changes = store.set(credential, for: space)
        let session = DigestSession(
            try digest("realm=r, nonce=n"), credential: credential, cnonce: bytes("c"))
        var shown = "\(credential) \(String(reflecting: credential)) \(changes) \(session) \(store)"
        dump(credential, to: &shown)
        dump(store, to: &shown)
        dump(session, to: &shown)
        dump(credential.password, to: &shown)
        // Where a private type's description lies, another place in each run, may have any digits.
        shown = shown.replacing(#/ at \$[0-9a-f]+/#, with: "")
        #expect(shown.contains("anna"))
        #expect(!shown.contains("geheim") && !shown.contains("103"))  // Its first byte.
    }

    @Test("secrets are equal or not, whatever their length")
    func equality() {
        #expect(Secret("abc") == Secret(bytes("abc")))
        #expect(Secret("abc") != Secret("abd") && Secret("abc") != Secret("ab"))
        #expect(Secret("") == Secret([]) && Secret("").isEmpty)
    }
}

@Suite("Named credentials")
struct NamedCredentialTests {
    private static func token(
        _ name: String, _ secret: String = "s", _ persistence: CredentialPersistence = .permanent
    ) -> NamedCredential {
        NamedCredential(name: name, kind: .bearer(Secret(secret)), persistence: persistence)
    }

    @Test("the last of a name counts, and only what lasts reaches a storage")
    func changes() {
        var store = CredentialStore(keepsPermanent: true)
        #expect(store.set(Self.token("a")) == [.named(Self.token("a"))])
        #expect(store.set(Self.token("a")).isEmpty)
        #expect(store.set(Self.token("a", "t")) == [.named(Self.token("a", "t"))])
        #expect(store.named("a") == Self.token("a", "t"))
        #expect(store.set(Self.token("a", "u", .forSession)) == [.namedRemoved("a")])
        #expect(store.set(Self.token("b", "u", .none)).isEmpty && store.named("b") == nil)
        #expect(store.set(Self.token("c")) == [.named(Self.token("c"))])
        store.endSession()
        #expect(store.allNamed == [Self.token("c")])
        #expect(store.remove(named: "c") == [.namedRemoved("c")] && store.isEmpty)
    }

    @Test("a storage brings back what lasts")
    func restore() {
        var store = CredentialStore(keepsPermanent: true)
        store.restore([
            .named(Self.token("a")), .named(Self.token("b")), .namedRemoved("a"),
            .named(Self.token("c", "s", .forSession)),
        ])
        #expect(store.allNamed == [Self.token("b")])
    }

    @Test("neither name nor description shows the secret")
    func description() {
        #expect("\(Self.token("a", "very-secret"))" == "a (bearer)")
        #expect(!String(reflecting: Self.token("a", "very-secret").kind).contains("very"))
    }

    @Test(
        "names are short words",
        arguments: [
            ("a", true), ("A-b_c.9", true), ("", false), ("a b", false), ("ä", false),
            (String(repeating: "x", count: 64), true), (String(repeating: "x", count: 65), false),
        ])
    func names(_ text: String, isName: Bool) {
        #expect(NamedCredential.isName(text) == isName)
    }
}
