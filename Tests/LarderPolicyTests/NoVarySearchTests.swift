import LarderHTTP
import LarderPolicy
import Testing

@Suite("No-Vary-Search (draft-ietf-httpbis-no-vary-search-10)")
struct NoVarySearchTests {
    private static func keys(_ names: [String]) -> Set<NoVarySearch.Key> {
        Set(names.map { Array($0.utf8) })
    }

    @Test(
        "is a dictionary with names to ignore, or names that alone count",
        arguments: [
            ("No-Vary-Search: key-order", .allBut([]), false),
            ("No-Vary-Search: key-order=?1", .allBut([]), false),
            ("No-Vary-Search: key-order;x=1", .allBut([]), false),
            ("No-Vary-Search: params=(\"a\")", .allBut(keys(["a"])), true),
            ("No-Vary-Search: params=(\"a\" \"b\")", .allBut(keys(["a", "b"])), true),
            ("No-Vary-Search: params=(\"a\";x \"b\");y=2", .allBut(keys(["a", "b"])), true),
            ("No-Vary-Search: except=(\"x\")", .only(keys(["x"])), true),
            ("No-Vary-Search: except=()", .only([]), true),
            ("No-Vary-Search: except=(\"x\"), key-order", .only(keys(["x"])), false),
            ("No-Vary-Search: key-order | No-Vary-Search: except=()", .only([]), false),
            ("No-Vary-Search: params=(\"a\"), future=(1 2)", .allBut(keys(["a"])), true),
            ("No-Vary-Search: params=(\"%C3%A9+%E6%B0%97\")", .allBut(keys(["é 気"])), true),
            ("No-Vary-Search: params=(\"%f6%\")", .allBut(keys(["\u{FFFD}%"])), true),
            ("No-Vary-Search: params=(\"a\"), params=(\"b\")", .allBut(keys(["b"])), true),
        ] as [(String, NoVarySearch.Parameters, Bool)])
    func meaning(_ text: String, _ parameters: NoVarySearch.Parameters, _ ordersKeys: Bool) {
        let search = NoVarySearch(fields(text))
        #expect(search.parameters == parameters)
        #expect(search.ordersKeys == ordersKeys)
        #expect(search != .standard)
    }

    @Test(
        "is the default where it is missing, says nothing or is not understood",
        arguments: [
            "", "No-Vary-Search: ", "No-Vary-Search: params=()", "No-Vary-Search: key-order=?0",
            "No-Vary-Search: other",
            "No-Vary-Search: key-order=\"not a boolean\"", "No-Vary-Search: key-order=(1)",
            "No-Vary-Search: params=\"not an inner list\"", "No-Vary-Search: params=(not-a-string)",
            "No-Vary-Search: params=?0", "No-Vary-Search: params=?1", "No-Vary-Search: params",
            "No-Vary-Search: params=?1, except=(\"x\")", "No-Vary-Search: params, except=(\"x\")",
            "No-Vary-Search: params=(\"a\"), except=(\"x\")",
            "No-Vary-Search: params=(), except=()", "No-Vary-Search: except=\"not an inner list\"",
            "No-Vary-Search: except=(not-a-string)", "No-Vary-Search: except=?1",
            "No-Vary-Search: key-order=1, params=(\"a\")", "No-Vary-Search: params=(\"a\"),",
            "No-Vary-Search: params=(\"a\"", "No-Vary-Search: params=(\"ü\")",
            "No-Vary-Search: Params=(\"a\")", "No-Vary-Search: params=(\"a\"\"b\")",
        ])
    func standard(_ text: String) {
        let search = NoVarySearch(fields(text))
        #expect(search == .standard)
        #expect(search.equates("/a?b=1", "/a?b=1"))
        #expect(!search.equates("/a", "/a?"))
        #expect(!search.equates("/foo?a=b&&&c", "/foo?a=b&c="))
    }

    @Test(
        "compares queries as forms are read",
        arguments: [
            ("key-order", "/", "/?", true), ("key-order", "/?a=x", "/?%61=%78", true),
            ("key-order", "/?a=%f6", "/?a=%ef%bf%bd", true),
            ("key-order", "/?a=x&&&&", "/?a=x", true), ("key-order", "/?a=", "/?a", true),
            ("key-order", "/?a=%20", "/?a=+", true), ("key-order", "/?a=%2", "/?a=%252", true),
            ("key-order", "/?a=%C3%A9", "/?a=e%CC%81", false),
            ("key-order", "/?a=%2B", "/?a=+", false), ("key-order", "/?a=b=c", "/?a=b%3Dc", true),
            ("key-order", "/?a=1&b=2", "/?b=2&a=1", true),
            ("key-order", "/?a=1&b=2&a=3", "/?b=2&a=1&a=3", true),
            ("key-order", "/?a=1&a=2", "/?a=2&a=1", false),
            ("key-order", "/?a=1", "/?a=1&a=1", false), ("key-order", "/?a", "/?A", false),
            ("key-order", "/a?x", "/b?x", false), ("key-order", "/a?x", "/%61?x", false),
            ("params=(\"u\")", "/?a=1&u=2", "/?u=9&a=1", true),
            ("params=(\"u\")", "/?a=1", "/?a=1&u", true), ("params=(\"u\")", "/", "/?u=1", true),
            ("params=(\"u\")", "/?a=1&u=2", "/?a=2&u=2", false),
            ("params=(\"u\")", "/?a=1&b=2", "/?b=2&a=1", false),
            ("params=(\"u\"), key-order", "/?a=1&u=1&b=2", "/?b=2&a=1", true),
            ("params=(\"%C3%A9+%E6%B0%97\")", "/?%C3%A9%20%E6%B0%97=3", "/", true),
            ("params=(\"é\")", "/?%C3%A9=3", "/", false),
            ("except=(\"id\")", "/?id=1&x=2", "/?y=1&id=1", true),
            ("except=(\"id\")", "/?id=1", "/?id=2", false), ("except=(\"id\")", "/?x", "/", true),
            ("except=()", "/?a=1", "/?b=2", true), ("except=()", "/a", "/b", false),
        ])
    func equivalence(_ rule: String, _ a: String, _ b: String, _ expected: Bool) {
        let search = NoVarySearch(fields("No-Vary-Search: \(rule)"))
        #expect(search.equates(a, b) == expected)
        #expect(search.equates(b, a) == expected)
        #expect(search.equates(a, a) && search.equates(b, b))
    }

    @Test("compares one target with many, whatever their responses say")
    func many() {
        var asked = AskedSearch("/?a=1&b=2&u=3")
        let ignoring = stored("No-Vary-Search: params=(\"u\")")
        let sorting = stored("No-Vary-Search: params=(\"u\"), key-order")
        for (head, own, expected) in [
            (ignoring, "/?a=1&b=2", true), (ignoring, "/?b=2&a=1", false),
            (sorting, "/?b=2&a=1", true), (ignoring, "/?b=2&a=1", false),
            (stored(), "/?a=1&b=2&u=3", true), (stored(), "/?a=1&b=2", false),
            (sorting, "/?b=2&a=1&a=1", false), (sorting, "/x?b=2&a=1", false),
        ] {
            var head = head
            head.pathAndQuery = own
            #expect(head.answers(&asked) == expected)
        }
        #expect(!ignoring.answers(&asked))
    }

    @Test("with more than 64 names is the default", arguments: ["params", "except"])
    func crowded(_ key: String) {
        func search(_ count: Int) -> NoVarySearch {
            let names = (1...count).map { "\"x\($0)\"" }.joined(separator: " ")
            return NoVarySearch(fields("No-Vary-Search: \(key)=(\(names))"))
        }
        #expect(search(64) != .standard)
        #expect(search(65) == .standard)
    }

    @Test("compares a query of more than 256 pairs byte for byte")
    func long() {
        func target(_ numbers: some Sequence<Int>) -> String {
            "/?" + numbers.map { "k\($0)=1" }.joined(separator: "&")
        }
        let search = NoVarySearch(fields("No-Vary-Search: key-order, params=(\"u\")"))
        #expect(search.equates(target(1...256), target((1...256).reversed())))
        #expect(!search.equates(target(1...257), target((1...257).reversed())))
        #expect(search.equates(target(1...257), target(1...257)))
        #expect(!search.equates("/?a=1" + String(repeating: "&", count: 256), "/?a=1"))
    }

    @Test("is a place for all queries of a path, which no request has by itself")
    func place() {
        let asked = request(uri: uri("/p?a=1"))
        let head = stored("No-Vary-Search: params=(\"a\")")
        let place = Storability.place(head, for: asked, configuration: .shared)
        #expect(place.key == CacheKey(method: .get, uri: uri("/p?b=2")).withoutSearch)
        #expect(place.key == CacheKey(method: .get, uri: uri("/p")).withoutSearch)
        #expect(place.key.withoutSearch == place.key)
        #expect(place.key != CacheKey(method: .get, uri: uri("/p")))
        #expect(place.key.parts.uri == "http://a.example/p")
        #expect(place.head.pathAndQuery == "/p?a=1")
        #expect(place.head.answers(uri("/p?a=2")) && !place.head.answers(uri("/p?b=2")))
        #expect(!head.answers(uri("/p")))
        var off = PolicyConfiguration.shared
        off.honoursNoVarySearch = false
        for (held, configuration) in [(stored(), PolicyConfiguration.shared), (head, off)] {
            let plain = Storability.place(held, for: asked, configuration: configuration)
            #expect(plain.key == CacheKey(method: .get, uri: asked.uri))
            #expect(plain.head.pathAndQuery == nil)
        }
    }
}
