extension Tables {
    /// Queries that a response answers, too (draft-ietf-httpbis-no-vary-search).
    static let searchVariance = Table.cases("NVS §2") { t in
        let known = "No-Vary-Search is not understood yet"
        func pair(_ field: String, _ first: String, _ second: String, hit: Bool) -> [Step] {
            [
                .get(at: first).answer("Cache-Control: max-age=600", "No-Vary-Search: \(field)"),
                hit ? .get(at: second).isHit : .get(at: second).isForwarded,
            ]
        }
        let same: [(String, String, String, String)] = [
            ("params: no parameter matters", "params", "?a=1", "?b=2"),
            ("params: a query or none", "params", "?a=1", ""),
            ("A list of parameters: they do not matter", "params=(\"a\")", "?a=1&b=2", "?b=2&a=3"),
            ("A list: one is missing", "params=(\"a\")", "?a=1&b=2", "?b=2"),
            ("except: others do not matter", "params, except=(\"a\")", "?a=1&b=2", "?a=1&c=3"),
            ("except alone", "except=(\"a\")", "?a=1&b=2", "?c=3&a=1"),
            ("key-order: order does not matter", "key-order", "?a=1&b=2", "?b=2&a=1"),
            ("Encodings of one name are the same", "params=(\"a b\")", "?a+b=1", "?a%20b=2"),
        ]
        for (title, field, first, second) in same {
            t.optimal(title, known: known, pair(field, first, second, hit: true))
        }
        let different: [(String, String, String, String)] = [
            ("Without the field the query matters", "key-order=?0", "?a=1&b=2", "?b=2&a=1"),
            ("A parameter that is not listed matters", "params=(\"a\")", "?a=1&b=2", "?a=1&b=3"),
            ("except: those listed matter", "params, except=(\"a\")", "?a=1", "?a=2"),
            ("except: one of them is missing", "except=(\"a\")", "?a=1", ""),
            ("Order matters without key-order", "params=(\"c\")", "?a=1&b=2", "?b=2&a=1"),
            ("key-order: the order of equal names matters", "key-order", "?a=1&a=2", "?a=2&a=1"),
            ("A list with a token is invalid: all matters", "params=(a)", "?a=1", "?a=2"),
            ("A number is invalid: all matters", "params=1", "?a=1", "?a=2"),
            ("No structured field: all matters", "params=(\"a\"", "?a=1", "?a=2"),
            ("The path matters", "params", "/x?a=1", "/y?a=1"),
        ]
        for (title, field, first, second) in different {
            t.must(title, pair(field, first, second, hit: false))
        }
        t.section("NVS §3")
        t.must(
            "Vary holds beside it",
            [
                .get("X-A: 1", at: "?a=1").answer(
                    "Cache-Control: max-age=600", "No-Vary-Search: params", "Vary: X-A"),
                .get("X-A: 2", at: "?a=2").isForwarded,
            ])
        t.must(
            "What is stale is not reused for another query",
            [
                .get(at: "?a=1").answer(
                    "Cache-Control: max-age=1", "No-Vary-Search: params", "Age: 20", "ETag: \"a\""),
                .get(at: "?a=2").isForwarded,
            ])
        t.optimal(
            "The exact match goes before others", known: known,
            [
                .get(at: "?a=1").answer("Cache-Control: max-age=600", "No-Vary-Search: params"),
                .get("Cache-Control: no-cache", at: "?a=2").answer(
                    "Cache-Control: max-age=600", "No-Vary-Search: params"
                ).isForwarded,
                .get(at: "?a=2").isHit(from: 2),
                .get(at: "?a=1").isStored(from: 2),
            ])
    }
}
