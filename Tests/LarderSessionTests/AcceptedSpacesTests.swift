import LarderCredentials
import LarderHTTP
import Testing

@testable import LarderSession

@Suite("What a session remembers of where a credential was good")
struct AcceptedSpacesTests {
    private static func uri(_ host: String, _ path: String = "/") -> TargetURI {
        TargetURI(scheme: .https, host: host, pathAndQuery: path)
    }

    private static func sent(
        _ host: String, user: String = "u", realm: String = "r", owner: String? = nil
    ) -> SentCredential {
        SentCredential(
            form: .field(Secret("")),
            space: ProtectionSpace(
                party: .server(.https), host: host, port: 443, realm: realm, method: .basic),
            scheme: .basic,
            credential: Credential(user: user, password: Secret("p"), persistence: .forSession),
            owner: owner, isPreemptive: false)
    }

    /// How many entries cover a path.
    private static func count(
        _ spaces: AcceptedSpaces, _ host: String, _ path: String = "/"
    ) -> Int { spaces.covering(self.uri(host, path)).count }

    @Test("it is bounded, and what was used least recently goes first")
    func bounded() {
        var spaces = AcceptedSpaces(limit: 3)
        for host in ["a", "b", "c"] {
            spaces.accepted(Self.sent(host), at: Self.uri(host), nil)
        }
        spaces.accepted(Self.sent("a"), at: Self.uri("a"), nil)
        spaces.accepted(Self.sent("d"), at: Self.uri("d"), nil)
        #expect(["a", "b", "c", "d"].map { Self.count(spaces, $0) } == [1, 0, 1, 1])
        for number in 0..<1000 {
            spaces.accepted(Self.sent("a", realm: "\(number)"), at: Self.uri("a"), nil)
        }
        #expect(["a", "c", "d"].map { Self.count(spaces, $0) } == [3, 0, 0])
    }

    @Test("refusals are bounded too, and speak of one credential alone")
    func refusals() {
        var spaces = AcceptedSpaces(limit: 2)
        for host in ["a", "b", "c"] {
            let isFinal = spaces.refused(Self.sent(host), at: Self.uri(host))
            #expect(isFinal)
        }
        let a = Self.sent("a")
        let c = Self.sent("c")
        #expect(!spaces.isRefused(a.credential, for: a.space, owner: nil))
        #expect(spaces.isRefused(c.credential, for: c.space, owner: nil))
        #expect(!spaces.isRefused(c.credential, for: c.space, owner: "rule"))
        let other = Self.sent("c", user: "v")
        #expect(!spaces.isRefused(other.credential, for: c.space, owner: nil))
        spaces.accepted(c, at: Self.uri("c"), nil)
        #expect(!spaces.isRefused(c.credential, for: c.space, owner: nil))
    }

    @Test("Basic's reach is the widest directory it was good in (RFC 7617 §2.2)")
    func directories() {
        var spaces = AcceptedSpaces()
        let sent = Self.sent("a")
        spaces.accepted(sent, at: Self.uri("a", "/x/y/"), nil)
        spaces.accepted(sent, at: Self.uri("a", "/z/"), nil)
        let paths = ["/x/y/1", "/x/1", "/z/1"]
        #expect(paths.map { Self.count(spaces, "a", $0) } == [1, 0, 1])
        for directory in ["/x/", "/x/y/z/"] {
            spaces.accepted(sent, at: Self.uri("a", directory), nil)
            #expect(paths.map { Self.count(spaces, "a", $0) } == [1, 1, 1])
        }
        let isFinal = spaces.refused(sent, at: Self.uri("a", "/x/1"))
        #expect(!isFinal)
        #expect(paths.map { Self.count(spaces, "a", $0) } == [0, 0, 0])
    }
}
