import LarderHTTP
import LarderPolicy
import Testing

@Suite("Where the redirections of a stored response led")
struct RedirectionTrailTests {
    private static func head(_ text: String, _ targets: [TargetURI]) -> StoredHead {
        var head = stored(text)
        head.attachment = RedirectionTrail(targets)?.attachment
        return head
    }

    @Test("is read back as it was kept, and is nothing where nothing was followed")
    func kept() {
        let targets = [uri("/a?b"), uri("/", host: "b.example", scheme: .https)]
        #expect(RedirectionTrail(of: Self.head("", targets))?.targets == targets)
        #expect(RedirectionTrail(nil) == nil)
        #expect(RedirectionTrail([]) == nil)
        #expect(RedirectionTrail(of: stored()) == nil)
        // What others keep with it is none.
        for text in ["", "led", "other\nhttp://b.example/"] {
            var head = stored()
            head.attachment = StoredAttachment(bytes: Array(text.utf8))
            #expect(RedirectionTrail(of: head) == nil, "\(text)")
        }
    }

    @Test("may be gone along by whoever may go to each of its places")
    func permitted() throws {
        let hosts = ["b.example", "c.example", "d.example"]
        let trail = try #require(RedirectionTrail(hosts.map { uri(host: $0) }))
        #expect(trail.isPermitted { _ in true })
        for closed in hosts {
            #expect(!trail.isPermitted { $0.host != closed }, "\(closed)")
        }
    }

    @Test(
        "may be gone along by nobody where it cannot be read",
        arguments: [
            "led to", "led to\n", "led to\nb.example", "led to\nhttp://b.example/\n",
        ])
    func unreadable(_ text: String) throws {
        var head = stored()
        head.attachment = StoredAttachment(bytes: Array(text.utf8))
        let trail = try #require(RedirectionTrail(of: head))
        #expect(trail.targets.isEmpty)
        #expect(!trail.isPermitted { _ in true })
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var first: [TargetURI] = [uri("/x?1")]
        let now: [TargetURI]?
        var had = "ETag: \"e\""
        var says = "ETag: \"e\""
        let isSame: Bool
        var testDescription: String { "\(self.now ?? []) \(self.had) \(self.says)" }
    }

    @Test(
        "tells whether a response speaks of what is stored (RFC 9110 §8.8.1)",
        arguments: [
            Case(now: [uri("/x?1")], isSame: true),
            Case(now: [uri("/other"), uri("/x?1")], isSame: true),
            Case(now: [uri("/x?1"), uri("/other")], isSame: false),
            Case(now: [uri("/y?1")], isSame: false),
            Case(now: [uri("/x?1", host: "b.example")], isSame: false),
            Case(now: [uri("/x?1", scheme: .https)], isSame: false),
            Case(now: [], isSame: false),
            Case(now: nil, isSame: true),
            Case(first: [], now: [], isSame: true),
            Case(first: [], now: [uri("/x?1")], isSame: false),
            Case(now: [uri("/x?1")], had: "", says: "", isSame: true),
            // Of another query a strong entity tag says that it is the same.
            Case(now: [uri("/x?2")], isSame: true),
            Case(now: [uri("/x")], isSame: true),
            Case(now: [uri("/x?2")], says: "", isSame: true),
            Case(now: [uri("/x?2")], says: "ETag: \"f\"", isSame: false),
            Case(now: [uri("/x?2")], had: "", isSame: false),
            Case(now: [uri("/x?2")], had: "ETag: W/\"e\"", says: "ETag: W/\"e\"", isSame: false),
            Case(now: [uri("/x?2")], had: "Last-Modified: @-60", says: "", isSame: false),
        ])
    func resources(_ c: Case) {
        let head = Self.head(c.had, c.first)
        #expect(
            RedirectionTrail.isOfSameResource(head, response(c.says), ledTo: c.now) == c.isSame)
    }

    @Test("tells whether a body that broke off is gone on with")
    func continuing() {
        for (earlier, later, expected) in [
            (nil, nil, true), ([uri("/x?1")], [uri("/x?2")], true),
            ([uri("/x")], [uri("/y")], false), ([uri("/x")], nil, false),
            ([], [uri("/x")], false),
        ] as [([TargetURI]?, [TargetURI]?, Bool)] {
            #expect(RedirectionTrail.continues(earlier, later) == expected)
        }
    }
}
