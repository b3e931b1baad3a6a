import LarderHTTP
import Testing

@Suite("Entity tags (RFC 9110 §8.8.3)")
struct EntityTagTests {
    static func tag(_ text: String) -> EntityTag? { EntityTag(parsing: Array(text.utf8)[...]) }

    @Test(
        "are quoted, and perhaps weak",
        arguments: [
            ("\"abc\"", EntityTag("abc")), ("W/\"abc\"", EntityTag(weak: true, "abc")),
            ("\"\"", EntityTag("")), ("W/\"\"", EntityTag(weak: true, "")),
            ("\"a,b\"", EntityTag("a,b")), ("\"a\\b\"", EntityTag("a\\b")),
            ("\"a\\\"", EntityTag("a\\")), ("\"W/\"", EntityTag("W/")), ("\"ü\"", EntityTag("ü")),
            ("\"!#$%&'()*+-./:;<=>?@[]^_`{|}~\"", EntityTag("!#$%&'()*+-./:;<=>?@[]^_`{|}~")),
            ("abc", nil), ("", nil), ("\"abc", nil), ("abc\"", nil), ("\"", nil),
            ("w/\"abc\"", nil), ("W\"abc\"", nil), ("W\\\"abc\"", nil), ("W/abc", nil),
            ("W/ \"abc\"", nil), ("\"a b\"", nil), ("\"a\tb\"", nil), ("\"a\"b\"", nil),
            ("\"abc\" ", nil), (" \"abc\"", nil), ("\"a\", \"b\"", nil), ("'abc'", nil),
        ] as [(String, EntityTag?)])
    func parsing(_ text: String, _ expected: EntityTag?) {
        #expect(Self.tag(text) == expected)
        if let expected { #expect(expected.bytes == Array(text.utf8)) }
    }

    /// The table of §8.8.3.2.
    @Test(
        "compare strongly and weakly (§8.8.3.2)",
        arguments: [
            ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true), ("\"1\"", "\"1\"", true, true),
            ("\"a\"", "\"A\"", false, false),
        ])
    func comparison(_ a: String, _ b: String, _ strong: Bool, _ weak: Bool) throws {
        let left = try #require(Self.tag(a))
        let right = try #require(Self.tag(b))
        #expect(left.matchesStrongly(right) == strong)
        #expect(right.matchesStrongly(left) == strong)
        #expect(left.matchesWeakly(right) == weak)
        #expect(right.matchesWeakly(left) == weak)
    }

    @Test("stand once in a response; two different ones are none")
    func ofFields() {
        #expect(EntityTag(of: ["ETag": "\"a\""]) == EntityTag("a"))
        #expect(EntityTag(of: ["ETag": "\"a\"", "etag": "\"a\""]) == EntityTag("a"))
        #expect(EntityTag(of: ["ETag": "\"a\"", "ETag": "\"b\""]) == nil)
        #expect(EntityTag(of: ["ETag": "\"a\"", "ETag": "W/\"a\""]) == nil)
        #expect(EntityTag(of: ["ETag": "a"]) == nil)
        #expect(EntityTag(of: [:]) == nil)
    }
}

@Suite("Lists of entity tags (RFC 9110 §13.1.1, §13.1.2)")
struct EntityTagConditionTests {
    struct Case: Sendable {
        let lines: [String]
        let expected: EntityTagCondition?

        init(_ lines: String..., expected: EntityTagCondition?) {
            self.lines = lines
            self.expected = expected
        }
    }

    @Test(
        "are read from all lines",
        arguments: [
            Case("\"a\"", expected: .tags([EntityTag("a")])),
            Case("\"a\", W/\"b\"", expected: .tags([EntityTag("a"), EntityTag(weak: true, "b")])),
            Case("\"a\",\"b\"", expected: .tags([EntityTag("a"), EntityTag("b")])),
            Case("\"a\" ,\t\"b\" ", expected: .tags([EntityTag("a"), EntityTag("b")])),
            Case(", ,\"a\",,", expected: .tags([EntityTag("a")])),
            Case("\"a\"", "\"b\"", expected: .tags([EntityTag("a"), EntityTag("b")])),
            Case("\"a,b\", \"c\"", expected: .tags([EntityTag("a,b"), EntityTag("c")])),
            Case("\"a\\\", \"b\"", expected: .tags([EntityTag("a\\"), EntityTag("b")])),
            Case("*", expected: .any), Case(" * ", expected: .any),
            Case("*, \"a\"", expected: .tags([EntityTag("a")])),
            Case("*, *", expected: .tags([])), Case("**", expected: .tags([])),
            Case("a, \"b\"", expected: .tags([EntityTag("b")])),
            Case("\"a\"x, \"b\"", expected: .tags([EntityTag("b")])),
            Case("\"a", expected: .tags([])), Case("", expected: .tags([])),
            Case(expected: nil),
        ])
    func parsing(_ c: Case) {
        var fields = Fields()
        for line in c.lines { fields.append("If-None-Match", line) }
        #expect(EntityTagCondition(fields, name: FieldName(.ifNoneMatch)) == c.expected)
    }

    @Test("match by weak comparison for If-None-Match, by strong for If-Match")
    func matching() throws {
        let list = EntityTagCondition.tags([EntityTag("a"), EntityTag(weak: true, "b")])
        #expect(list.matchesWeakly(EntityTag(weak: true, "a")))
        #expect(list.matchesWeakly(EntityTag("b")))
        #expect(!list.matchesWeakly(EntityTag("c")))
        #expect(!list.matchesWeakly(nil))
        #expect(list.matchesStrongly(EntityTag("a")))
        #expect(!list.matchesStrongly(EntityTag("b")))
        #expect(!list.matchesStrongly(nil))
        #expect(EntityTagCondition.any.matchesWeakly(nil))
        #expect(EntityTagCondition.any.matchesStrongly(nil))
    }
}
