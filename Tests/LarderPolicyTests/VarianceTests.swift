import LarderHTTP
import LarderPolicy
import Testing

@Suite("Selection by Vary (RFC 9111 §4.1)")
struct VarianceTests {
    struct Case: Sendable {
        let vary: String
        let then: String
        let now: String
        let semantic: Bool
        let matches: Bool

        init(_ vary: String, _ then: String, _ now: String, semantic: Bool = true, _ matches: Bool)
        {
            self.vary = vary
            self.then = then
            self.now = now
            self.semantic = semantic
            self.matches = matches
        }
    }

    static let plain: [Case] = [
        Case("", "", "", true), Case("", "Foo: 1", "Foo: 2", true),
        Case("Vary: Foo", "Foo: 1", "Foo: 1", true), Case("Vary: Foo", "Foo: 1", "Foo: 2", false),
        Case("Vary: Foo", "Foo: 1", "fOO: 1", true), Case("Vary: fOO", "Foo: 1", "Foo: 2", false),
        Case("Vary: Foo", "Foo: a", "Foo: A", false),
        // Absence matches absence only.
        Case("Vary: Foo", "", "", true), Case("Vary: Foo", "", "Foo: 1", false),
        Case("Vary: Foo", "Foo: 1", "", false), Case("Vary: Foo", "Foo: ", "", false),
        Case("Vary: Foo", "Foo: ", "Foo: ", true),
        // Several fields and lines.
        Case("Vary: Foo, Bar", "Foo: 1 | Bar: 2", "Bar: 2 | Foo: 1", true),
        Case("Vary: Foo, Bar", "Foo: 1 | Bar: 2", "Foo: 1", false),
        Case("Vary: Foo | Vary: Bar", "Foo: 1 | Bar: 2", "Foo: 1 | Bar: 3", false),
        Case("Vary: Foo, Bar, Baz", "Foo: 1 | Baz: 3", "Foo: 1 | Baz: 3", true),
        Case("Vary: Foo", "Foo: 1 | Other: 2", "Foo: 1 | Other: 3", true),
        Case("Vary: , Foo ,,", "Foo: 1", "Foo: 2", false),
        Case("Vary: ", "Foo: 1", "Foo: 2", true),
        // The star, and what nobody can read, match nothing.
        Case("Vary: *", "", "", false), Case("Vary: *, *", "", "", false),
        Case("Vary: Foo, *", "Foo: 1", "Foo: 1", false), Case("Vary: , *", "", "", false),
        Case("Vary: | Vary: *", "", "", false), Case("Vary: a b", "", "", false),
        Case("Vary: \"Foo\"", "Foo: 1", "Foo: 1", false),
        // Lines joined, white space around members set aside.
        Case("Vary: Foo", "Foo: 1, 2", "Foo: 1 | Foo: 2", true),
        Case("Vary: Foo", "Foo: 1,2", "Foo: 1 ,\t2", true),
        Case("Vary: Foo", "Foo: 1, 2", "Foo: 2, 1", false),
        // An empty member says nothing in a list, but whether it is one is not known.
        Case("Vary: Foo", "Foo: 42", "Foo: 42,", false),
        Case("Vary: Foo", "Foo: 42", "Foo: ,42", false),
        Case("Vary: Foo", "Foo: 1, , 2", "Foo: 1, 2", false),
        Case("Vary: Accept", "Accept: a/b", "Accept: a/b,", true),
        Case("Vary: Foo", "Foo: \"1,2\"", "Foo: \"1, 2\"", false),
        Case("Vary: Cookie", "Cookie: a=1,b", "Cookie: a=1, b", false),
        Case("Vary: User-Agent", "User-Agent: (a,b)", "User-Agent: (a, b)", false),
        Case("Vary: Origin", "Origin: http://a", "Origin: http://b", false),
    ]

    private static func languages(_ numbers: some Sequence<Int>) -> String {
        "Accept-Language: \(numbers.map { "l\($0)" }.joined(separator: ", "))"
    }

    static let semantic: [Case] = [
        // Lists that nobody would write are compared as they stand.
        Case("Vary: Accept-Language", languages(1...32), languages((1...32).reversed()), true),
        Case("Vary: Accept-Language", languages(1...33), languages((1...33).reversed()), false),
        Case("Vary: Accept-Language", languages(1...33), languages(1...33), true),
        Case("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", true),
        Case("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: eN, De", true),
        Case("Vary: Accept-Language", "Accept-Language: en,de", "Accept-Language:  en ,  de", true),
        Case("Vary: Accept-Language", "Accept-Language: en;q=1.0", "Accept-Language: en", true),
        Case(
            "Vary: Accept-Language", "Accept-Language: en;q=0.5", "Accept-Language: en; q=0.50",
            true),
        Case("Vary: Accept-Language", "Accept-Language: en;q=0.5", "Accept-Language: en", false),
        Case("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: en", false),
        Case("Vary: Accept-Language", "Accept-Language: en, en", "Accept-Language: en", true),
        Case("Vary: Accept-Language", "Accept-Language: en;q=x", "Accept-Language: EN;q=x", false),
        Case("Vary: Accept-Language", "Accept-Language: en;q=2", "Accept-Language: EN;q=2", false),
        Case(
            "Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en",
            semantic: false, false),
        Case(
            "Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br, gzip", true),
        Case("Vary: Accept-Encoding", "Accept-Encoding: x-gzip", "Accept-Encoding: GZIP", true),
        Case("Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: br", false),
        Case("Vary: Accept-Encoding", "Accept-Encoding: gzip;q=0", "Accept-Encoding: gzip", false),
        Case("Vary: Accept-Encoding", "Accept-Encoding: ", "", false),
        Case("Vary: Accept", "Accept: a/b, c/d", "Accept: c/d, a/b", false),
        // §4.1: the language that the origin chose is the one that this request prefers.
        Case(
            "Vary: Accept-Language | Content-Language: de", "Accept-Language: en, de",
            "Accept-Language: fr;q=0.5, de;q=1.0", true),
        Case("Vary: Accept-Language | Content-Language: DE", "", "Accept-Language: de", true),
        Case(
            "Vary: Accept-Language | Content-Language: de", "Accept-Language: en, de",
            "Accept-Language: fr, de;q=0.5", false),
        Case(
            "Vary: Accept-Language | Content-Language: de", "Accept-Language: en, de",
            "Accept-Language: fr, de", false),
        Case(
            "Vary: Accept-Language | Content-Language: de, en", "Accept-Language: en, de",
            "Accept-Language: de", false),
        Case("Vary: Accept-Language | Content-Language: de", "Accept-Language: en, de", "", false),
        Case(
            "Vary: Accept-Language | Content-Language: de", "Accept-Language: en, de",
            "Accept-Language: de;q=0", false),
        Case(
            "Vary: Accept-Language | Content-Language: de", "Accept-Language: en, de",
            "Accept-Language: de", semantic: false, false),
    ]

    static func check(_ c: Case) {
        let configuration = PolicyConfiguration(semanticVary: c.semantic)
        let head = StoredHead(
            storing: response(c.vary), to: request(c.then), requestTime: t0, responseTime: t0)
        let matches = Variance.matches(head, request(c.now), configuration: configuration)
        #expect(matches == c.matches)
    }

    @Test("compares the fields that Vary names", arguments: Self.plain)
    func compares(_ c: Case) { Self.check(c) }

    @Test("compares preferences by meaning (§4.1)", arguments: Self.semantic)
    func understands(_ c: Case) { Self.check(c) }

    @Test(
        "takes the language of what is successful alone for one that the origin has (§4.1)",
        arguments: [
            (200, true), (203, true), (300, false), (302, false), (404, false), (406, false),
        ]
            as [(UInt16, Bool)])
    func languageOfFailures(_ status: UInt16, _ matches: Bool) {
        let head = stored(
            "Vary: Accept-Language | Content-Language: en", status: status,
            varying: "Accept-Language: fr")
        let configuration = PolicyConfiguration(semanticVary: true)
        let asked = request("Accept-Language: en")
        #expect(Variance.matches(head, asked, configuration: configuration) == matches)
        let same = request("Accept-Language: fr")
        #expect(Variance.matches(head, same, configuration: configuration))
    }

    @Test(
        "chooses the most recent match by Date, one with Vary first",
        arguments: [
            (["Date: @-5", "Date: @-9"], 0), (["Date: @-9", "Date: @-5"], 1),
            (["Date: @-9", "Date: @-5", "Date: @-7"], 1), (["Date: @-9", "Date: @-9"], 1),
            (["Date: @-9", "Vary: Foo | Date: @-20"], 1),
            (["Vary: Foo | Date: @-20", "Date: @-9"], 0),
            (["Vary: Foo | Date: @-20", "Vary: Bar | Date: @-10"], 1),
            (["Vary: * | Date: @-1", "Date: @-9"], 1),
        ] as [([String], Int)])
    func chooses(_ candidates: [String], _ expected: Int) {
        let heads = candidates.map { stored($0 + " | Cache-Control: max-age=60") }
        let verdict = Reuse.decide(
            request: request(), candidates: heads, now: t0, configuration: .shared)
        guard case .serve(let index, _, _, _) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(index == expected)
    }

    @Test(
        "of the same Date, or none, what was asked for last is the most recent",
        arguments: ["Date: @0", ""])
    func askedLast(_ date: String) {
        var heads = (0..<2).map { _ in stored(date + " | Cache-Control: max-age=60") }
        // Asked for first, and come last.
        heads[0].requestTime = t0
        heads[0].responseTime = t0 + .seconds(5)
        heads[1].requestTime = t0 + .seconds(1)
        heads[1].responseTime = t0 + .seconds(2)
        for (candidates, expected) in [(heads, 1), (heads.reversed(), 0)] {
            let verdict = Reuse.decide(
                request: request(), candidates: candidates, now: t0 + .seconds(6),
                configuration: .shared)
            #expect(verdict.index == expected)
        }
    }

    @Test("misses where no variant matches, and says so")
    func misses() {
        let held = stored("Vary: Foo | Cache-Control: max-age=60", varying: "Foo: 1")
        let verdict = Reuse.decide(
            request: request("Foo: 2"), candidates: [held, held], now: t0, configuration: .shared)
        #expect(verdict == .fetch(forward: .varyMiss, because: .noMatchingVariant))
    }

    struct Replacement: Sendable {
        let new: (vary: String, asked: String)
        let old: [(vary: String, asked: String)]
        let replaced: [Int]
    }

    @Test(
        "replaces what the new response takes the place of",
        arguments: [
            Replacement(new: ("", ""), old: [("", "")], replaced: [0]),
            Replacement(new: ("", ""), old: [("Vary: A", "A: 1"), ("", "")], replaced: [1]),
            // The variants for other requests stay, and are preferred to it (§4.1).
            Replacement(
                new: ("", "A: 1"), old: [("Vary: A", "A: 1"), ("Vary: A", "A: 2"), ("", "")],
                replaced: [0, 2]),
            Replacement(new: ("", ""), old: [("Vary: *", "")], replaced: [0]),
            Replacement(
                new: ("Vary: A", "A: 1"), old: [("Vary: A", "A: 1"), ("Vary: A", "A: 2")],
                replaced: [0]),
            Replacement(new: ("Vary: A", "A: 1"), old: [("", "")], replaced: [0]),
            Replacement(
                new: ("Vary: A", ""), old: [("Vary: A", ""), ("Vary: A", "A: 1")], replaced: [0]),
            Replacement(
                new: ("Vary: A, B", "A: 1 | B: 1"),
                old: [("Vary: A", "A: 1"), ("Vary: A", "A: 2")],
                replaced: [0]),
            Replacement(
                new: ("Vary: A", "A: 1"), old: [("Vary: A, B", "A: 1 | B: 1")], replaced: []),
            Replacement(new: ("Vary: A", "A: 1"), old: [("Vary: *", "")], replaced: [0]),
            Replacement(new: ("Vary: A", "A: 1"), old: [], replaced: []),
        ])
    func replaces(_ c: Replacement) {
        let head = { (of: (vary: String, asked: String)) in
            StoredHead(
                storing: response(of.vary), to: request(of.asked), requestTime: t0,
                responseTime: t0)
        }
        let replaced = Variance.replaced(
            by: head(c.new), to: request(c.new.asked), among: c.old.map(head))
        #expect(replaced == c.replaced)
    }

    @Test("by more fields than a request may have is like by everything", arguments: [32, 33])
    func crowded(_ count: Int) {
        let names = (0..<count).map { "F\($0)" }.joined(separator: ", ")
        let verdict = Storability.judge(
            request: request(), response: response("Cache-Control: max-age=9 | Vary: \(names)"),
            bodyLength: .none, now: t0, configuration: .shared)
        #expect(verdict == (count > 32 ? .notStorable(.varyAny) : .storable))
    }

    @Test("takes no longer lists apart than programs send: those are compared byte for byte")
    func longLists() {
        for count in [100, 1000] {
            let list = String(repeating: "a,", count: count) + "z"
            let head = stored("Vary: Accept-Encoding, Foo", varying: "Foo: \(list)")
            let spaced = request("Foo: \(list.replacing(",", with: ", "))")
            #expect(
                Variance.matches(head, request("Foo: \(list)"), configuration: .shared))
            #expect(
                Variance.matches(head, spaced, configuration: .shared) == (count == 100))
        }
    }

    @Test("by more of the request than is compared is like by everything", arguments: [8, 17])
    func large(_ kibibytes: Int) {
        let cookie = String(repeating: "c", count: kibibytes << 10)
        let verdict = Storability.judge(
            request: request("Cookie: \(cookie)"),
            response: response("Cache-Control: max-age=9 | Vary: Cookie"), bodyLength: .none,
            now: t0, configuration: .shared)
        #expect(verdict == (kibibytes > 16 ? .notStorable(.varyAny) : .storable))
    }

    @Test("keeps a bounded number of variants, the youngest")
    func bounded() {
        let old = (0..<5).map {
            stored("Vary: A", varying: "A: \($0)", received: [3, 1, 4, 2, 5][$0])
        }
        let new = stored("Vary: A", varying: "A: new", received: 9)
        let replaced = Variance.replaced(
            by: new, among: old, configuration: PolicyConfiguration(maximumVariants: 3))
        #expect(replaced == [0, 1, 3])
        let absurd = PolicyConfiguration(maximumVariants: .min)
        #expect(Variance.replaced(by: new, among: old, configuration: absurd).count == 5)
    }
}
