import LarderConfig
import LarderControl
import LarderCookies
import LarderCredentials
import LarderHTTP
import Testing

@testable import LarderDaemon

@Suite("Whose records a command means")
struct PrincipalNameTests {
    @Test(
        "A principal is named as a password file may have it",
        arguments: [
            ("user:alice", true), ("user:a b", true), ("user:ü", true), ("user:a\u{1}", false),
            ("user:a\u{7F}", false), ("", false),
        ])
    func names(_ name: String, _ isTaken: Bool) throws {
        let split = try Configuration.parse(
            "sessions: {default: {principals: address}}", file: "f",
            environment: ProcessEnvironment(["HOME": "/nowhere"]))
        let session = try #require(split.settings.session(named: .default))
        let taken = try? session.principal(name, hasCommon: false, known: [])
        #expect(taken == (isTaken ? name : nil))
    }
}

@Suite("What commands ask of a jar")
struct CookieJarCommandTests {
    private static let now = Timestamp(seconds: 1_800_000_000)

    private static func record(
        _ name: String, _ value: String = "v", domain: String = "h.example",
        isHostOnly: Bool = true, path: String = "/", isSecure: Bool = false,
        sameSite: String = "unspecified", expiry: Int64? = nil
    ) -> CookieRecord {
        CookieRecord(
            name: Array(name.utf8), value: ControlSecret(Array(value.utf8)),
            valueBytes: value.utf8.count, domain: domain, isHostOnly: isHostOnly, path: path,
            isSecure: isSecure, isHTTPOnly: false, sameSite: sameSite,
            createdMicroseconds: Self.now.microseconds, lastUsedMicroseconds: 0,
            expiryMicroseconds: expiry.map { $0 * 1_000_000 })
    }

    private static func jar(_ records: [CookieRecord] = []) -> CookieJar {
        var jar = CookieJar(suffixes: TopLevelSuffixes())
        _ = jar.obey(.put(records), at: Self.now)
        return jar
    }

    @Test("A cookie that breaks a rule is refused by its name, and the others are taken")
    func put() {
        var jar = Self.jar()
        let (answer, changes) = jar.obey(
            .put([
                Self.record("a"), Self.record("__Host-b"),
                Self.record("c", domain: "com", isHostOnly: false),
                Self.record("d", path: "x"), Self.record("e", sameSite: "none"),
                Self.record("f", sameSite: "perhaps"), Self.record("g", expiry: 1),
                Self.record("h", "v\u{1}"), Self.record("i", expiry: 1_800_000_060),
            ]), at: Self.now)
        let refusals: [String?] = [
            nil, "host-prefix", "public-suffix", "malformed-path", "same-site-none-insecure",
            "malformed", "expired", "control-character", nil,
        ]
        #expect(answer == .verdicts(refusals.map { CookieVerdict(refusal: $0) }))
        #expect(changes.count == 2 && jar.count == 2)
    }

    @Test("An accept policy is for servers, not for people")
    func policy() {
        var jar = CookieJar(acceptPolicy: .never, suffixes: TopLevelSuffixes())
        #expect(
            jar.obey(.put([Self.record("a")]), at: Self.now).answer == .verdicts([CookieVerdict()]))
    }

    @Test("A list has no values unless they are to be revealed, and nothing that has expired")
    func list() throws {
        var jar = Self.jar([Self.record("a", "hunter2"), Self.record("b", expiry: 1_800_000_001)])
        let hidden = CookieCommand.list(CookieFilter(), reveals: false)
        guard case .cookies(let all) = jar.obey(hidden, at: Self.now).answer else {
            throw CookieRefusal.empty
        }
        #expect(all.map(\.valueBytes) == [7, 1] && all.allSatisfy { $0.value == nil })
        let open = CookieCommand.list(CookieFilter(), reveals: true)
        guard case .cookies(let later) = jar.obey(open, at: Self.now + .seconds(2)).answer else {
            throw CookieRefusal.empty
        }
        #expect(later.map { $0.value?.revealed } == [Array("hunter2".utf8)])
    }

    @Test(
        "A filter wants all that it says",
        arguments: [
            (CookieFilter(), 4), (CookieFilter(name: Array("a".utf8)), 2),
            (CookieFilter(domain: "H.example"), 3), (CookieFilter(domain: ".h.example"), 3),
            (CookieFilter(domain: "x.h.example"), 1), (CookieFilter(domain: "example"), 4),
            (CookieFilter(domain: "ample"), 0), (CookieFilter(path: "/p"), 1),
            (CookieFilter(name: Array("a".utf8), domain: "other.example"), 1),
            (CookieFilter(name: [0xFF]), 0),
        ])
    func filter(_ filter: CookieFilter, _ count: Int) {
        var jar = Self.jar([
            Self.record("a"), Self.record("b", path: "/p"), Self.record("c", domain: "x.h.example"),
            Self.record("a", domain: "other.example"),
        ])
        let (answer, changes) = jar.obey(.remove(filter), at: Self.now)
        #expect(answer == .removed(count) && changes.count == count && jar.count == 4 - count)
    }
}

@Suite("What commands ask of a store of credentials")
struct CredentialStoreCommandTests {
    private static let space = SpaceRecord(
        host: "H.example", port: 443, scheme: "https", realm: "r", method: "digest")

    private static func record(
        _ name: CredentialReference, _ kind: String = "password", user: String? = "alice",
        field: String? = nil, persistence: String = "permanent", isDefault: Bool = false
    ) -> CredentialRecord {
        CredentialRecord(
            name: name, kind: kind, user: user, field: field, persistence: persistence,
            isDefault: isDefault)
    }

    private static func put(
        _ record: CredentialRecord, _ secret: String, in store: inout CredentialStore,
        isLasting: Bool = true
    ) -> (answer: CredentialAnswer, changes: [CredentialChange])? {
        do throws(ControlRefusal) {
            return try store.obey(
                .put(record, secret: ControlSecret(Array(secret.utf8))), isLasting: isLasting)
        } catch {
            #expect(error.failure.code == .invalid)
            #expect(!error.failure.message.contains(secret))
            return nil
        }
    }

    @Test("What is kept is listed without its secret, by name and by space")
    func keep() throws {
        var store = CredentialStore(keepsPermanent: true)
        let records = [
            Self.record(.named("api"), "field", user: nil, field: "X-Key"),
            Self.record(.named("bot"), "bearer", user: nil),
            Self.record(.named("site")),
            Self.record(.space(Self.space, user: "alice"), isDefault: true),
        ]
        for record in records {
            let kept = try #require(Self.put(record, "hunter2", in: &store))
            #expect(!kept.changes.isEmpty)
            #expect(!"\(kept.answer)".contains("hunter2"))
        }
        let listed = try store.obey(.list, isLasting: true)
        guard case .credentials(let all) = listed?.answer else { throw CookieRefusal.empty }
        #expect(all.map(\.kind) == ["field", "bearer", "password", "password"])
        guard case .space(let space, "alice") = all.last?.name else { throw CookieRefusal.empty }
        #expect(space.host == "h.example" && all.last?.isDefault == true)
        #expect(try store.obey(.remove(.named("bot")), isLasting: true)?.answer == .removed(1))
        #expect(try store.obey(.remove(.named("bot")), isLasting: true)?.answer == .removed(0))
        let gone = try store.obey(.remove(.space(Self.space, user: "alice")), isLasting: true)
        #expect(gone?.answer == .removed(1) && store.allNamed.count == 2 && store.all.isEmpty)
    }

    @Test("In an ephemeral session what is meant to be permanent says that it is not")
    func ephemeral() throws {
        var store = CredentialStore(keepsPermanent: false)
        let kept = try #require(
            Self.put(Self.record(.named("x")), "hunter2", in: &store, isLasting: false))
        guard case .credentials(let records) = kept.answer else { throw CookieRefusal.empty }
        #expect(records.map(\.persistence) == ["for-session"] && kept.changes.isEmpty)
    }

    @Test(
        "What no field could carry is refused, and never repeated",
        arguments: [
            (Self.record(.named("a b")), "hunter2"), (Self.record(.named("")), "hunter2"),
            (Self.record(.named("x"), "magic"), "hunter2"),
            (Self.record(.named("x"), user: nil), "hunter2"),
            (Self.record(.named("x"), user: "a:b"), "hunter2"),
            (Self.record(.named("x")), "hunter2\r\nX: y"),
            (Self.record(.named("x"), persistence: "none"), "hunter2"),
            (Self.record(.named("x"), "bearer"), "hunter 2"),
            (Self.record(.named("x"), "bearer"), "hunter2=x"),
            (Self.record(.named("x"), "field", field: "X Y"), "hunter2"),
            (Self.record(.named("x"), "field"), "hunter2"),
            (Self.record(.named("x"), "field", field: "Content-Length"), "17"),
            (Self.record(.named("x"), "field", field: "X-Key"), "hunter2\n"),
            (Self.record(.named("x"), "field", field: "X-Key"), " hunter2"),
            (
                Self.record(
                    .space(
                        SpaceRecord(
                            host: "h", port: 1, scheme: "https", realm: nil, method: "magic"),
                        user: "alice")), "hunter2"
            ),
            (
                Self.record(
                    .space(
                        SpaceRecord(
                            host: "h", port: 1, scheme: "gopher", realm: nil, method: "basic"),
                        user: "alice")), "hunter2"
            ),
        ])
    func refuse(_ record: CredentialRecord, _ secret: String) {
        var store = CredentialStore(keepsPermanent: true)
        #expect(Self.put(record, secret, in: &store) == nil)
        #expect(store.isEmpty)
    }
}
