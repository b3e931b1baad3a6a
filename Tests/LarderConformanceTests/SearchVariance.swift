extension Tables {
    private static func pair(
        _ field: String, _ first: String, _ second: String, isHit: Bool
    ) -> [Step] {
        [
            .get(at: first).answer("Cache-Control: max-age=600", "No-Vary-Search: \(field)"),
            isHit ? .get(at: second).isHit : .get(at: second).isForwarded,
        ]
    }

    /// Queries that a response answers, too (draft-ietf-httpbis-no-vary-search).
    static let searchVariance = Table.cases("NVS §2") { t in
        let same: [(String, String, String, String)] = [
            ("Nothing excepted: no parameter matters", "except=()", "?a=1", "?b=2"),
            ("Nothing excepted: a query or none", "except=()", "?a=1", ""),
            ("A list of parameters: they do not matter", "params=(\"a\")", "?a=1&b=2", "?b=2&a=3"),
            ("A list: one is missing", "params=(\"a\")", "?a=1&b=2", "?b=2"),
            ("except: others do not matter", "except=(\"a\")", "?a=1&b=2", "?a=1&c=3"),
            ("except: in whatever place", "except=(\"a\")", "?a=1&b=2", "?c=3&a=1"),
            ("key-order: order does not matter", "key-order", "?a=1&b=2", "?b=2&a=1"),
            ("key-order and params", "key-order, params=(\"c\")", "?a=1&b=2&c=3", "?b=2&a=1"),
            ("Encodings of one name are the same", "params=(\"a b\")", "?a+b=1", "?a%20b=2"),
        ]
        for (title, field, first, second) in same {
            t.optimal(title, Self.pair(field, first, second, isHit: true))
        }
        let different: [(String, String, String, String)] = [
            ("key-order=?0: all matters", "key-order=?0", "?a=1&b=2", "?b=2&a=1"),
            ("A parameter that is not listed matters", "params=(\"a\")", "?a=1&b=2", "?a=1&b=3"),
            ("except: those listed matter", "except=(\"a\")", "?a=1", "?a=2"),
            ("except: one of them is missing", "except=(\"a\")", "?a=1", ""),
            ("Order matters without key-order", "params=(\"c\")", "?a=1&b=2", "?b=2&a=1"),
            ("key-order: the order of equal names matters", "key-order", "?a=1&a=2", "?a=2&a=1"),
            ("params and except together are invalid", "params=(), except=()", "?a=1", "?a=2"),
            ("params without a list is invalid", "params", "?a=1", "?a=2"),
            ("A list with a token is invalid", "params=(a)", "?a=1", "?a=2"),
            ("A number is invalid", "params=1", "?a=1", "?a=2"),
            ("No structured field", "params=(\"a\"", "?a=1", "?a=2"),
            ("The path matters", "except=()", "/x?a=1", "/y?a=1"),
        ]
        for (title, field, first, second) in different {
            t.must(title, Self.pair(field, first, second, isHit: false))
        }
        t.section("NVS §3")
        t.must(
            "Vary holds beside it",
            [
                .get("X-A: 1", at: "?a=1").answer(
                    "Cache-Control: max-age=600", "No-Vary-Search: except=()", "Vary: X-A"),
                .get("X-A: 2", at: "?a=2").isForwarded,
            ])
        t.must(
            "What is stale is not reused for another query",
            [
                .get(at: "?a=1").answer(
                    "Cache-Control: max-age=1", "No-Vary-Search: except=()", "Age: 20",
                    "ETag: \"a\""),
                .get(at: "?a=2").isForwarded,
            ])
        t.optimal(
            "The most recent of those that match comes",
            [
                .get(at: "?a=1").answer("Cache-Control: max-age=600", "No-Vary-Search: except=()"),
                .get("Cache-Control: no-cache", at: "?a=2").answer(
                    "Cache-Control: max-age=600", "No-Vary-Search: except=()"
                ).isForwarded,
                .get(at: "?a=2").isHit(from: 2),
                .get(at: "?a=1").isHit(from: 2),
            ])
    }
}
