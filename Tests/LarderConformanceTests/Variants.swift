extension Tables {
    /// Choice among stored responses by `Vary`.
    static let variants = Table.cases("9111 §4.1") { t in
        let lasting = "Cache-Control: max-age=600"
        t.optimal(
            "The same field value is answered from the cache",
            [
                .get("X-A: 1").answer(lasting, "Vary: X-A"),
                .get("X-A: 1").isHit,
            ])
        t.must(
            "Another value is not",
            [
                .get("X-A: 1").answer(lasting, "Vary: X-A"),
                .get("X-A: 2").isForwarded,
            ])
        t.must(
            "A missing field is not",
            [
                .get("X-A: 1").answer(lasting, "Vary: X-A"),
                .get().isForwarded,
            ])
        t.must(
            "A field that was missing is not",
            [
                .get().answer(lasting, "Vary: X-A"),
                .get("X-A: 1").isForwarded,
            ])
        t.optimal(
            "A field that is missing both times matches",
            [
                .get().answer(lasting, "Vary: X-A"),
                .get().isHit,
            ])
        t.must(
            "An empty value is not a missing one",
            [
                .get("X-A:").answer(lasting, "Vary: X-A"),
                .get().isForwarded,
            ])
        t.optimal(
            "Names in Vary are compared without regard to case",
            [
                .get("X-A: 1").answer(lasting, "Vary: x-a"),
                .get("X-a: 1").isHit,
            ])
        t.optimal(
            "Fields that Vary does not name do not matter",
            [
                .get("X-A: 1", "X-Other: 2").answer(lasting, "Vary: X-A"),
                .get("X-A: 1", "X-Other: 3").isHit,
            ])
        t.optimal(
            "Two variants live beside each other",
            [
                .get("X-A: 1").answer(lasting, "Vary: X-A"),
                .get("X-A: 2").answer(lasting, "Vary: X-A").isForwarded,
                .get("X-A: 1").isHit,
                .get("X-A: 2").isHit(from: 2),
            ])
        t.optimal(
            "Two fields match",
            [
                .get("X-A: 1", "X-B: b").answer(lasting, "Vary: X-A, X-B"),
                .get("X-B: b", "X-A: 1").isHit,
            ])
        t.must(
            "Two fields, one of them different",
            [
                .get("X-A: 1", "X-B: b").answer(lasting, "Vary: X-A, X-B"),
                .get("X-A: 2", "X-B: b").isForwarded,
            ])
        t.must(
            "Two fields, both missing",
            [
                .get("X-A: 1", "X-B: b").answer(lasting, "Vary: X-A, X-B"),
                .get().isForwarded,
            ])
        t.must(
            "Two fields in two lines of Vary",
            [
                .get("X-A: 1", "X-B: b").answer(lasting, "Vary: X-A", "Vary: X-B"),
                .get("X-A: 1", "X-B: c").isForwarded,
            ])
        t.optimal(
            "Three fields match",
            [
                .get("X-A: 1", "X-B: b", "X-C: 9").answer(lasting, "Vary: X-A, X-B, X-C"),
                .get("X-A: 1", "X-B: b", "X-C: 9").isHit,
            ])
        t.must(
            "Three fields, one of them different",
            [
                .get("X-A: 1", "X-B: b", "X-C: 9").answer(lasting, "Vary: X-A, X-B, X-C"),
                .get("X-A: 2", "X-B: b", "X-C: 9").isForwarded,
            ])
        t.must(
            "Three fields in another order, one of them different",
            [
                .get("X-A: 1", "X-B: b", "X-C: 9").answer(lasting, "Vary: X-A, X-B, X-C"),
                .get("X-A: 1", "X-C: 9", "X-B: bcd").isForwarded,
            ])
        t.optimal(
            "Three fields, one missing both times",
            [
                .get("X-A: 1", "X-C: 9").answer(lasting, "Vary: X-A, X-B, X-C"),
                .get("X-A: 1", "X-C: 9").isHit,
            ])
        for lines in [
            ["Vary: *"], ["Vary: *, *"], ["Vary: *", "Vary: *"], ["Vary: , *"],
            ["Vary: ", "Vary: *"], ["Vary: *, X-A"], ["Vary: X-A, *"], ["Vary: X-A", "Vary: *"],
        ] {
            var step = Step.get("X-A: 1", "X-C: 9")
            step.answer.fields = [lasting] + lines
            t.must(
                "An asterisk matches nothing: \(lines.joined(separator: " / "))",
                [
                    step, .get("X-A: 1", "X-C: 9").isForwarded,
                ])
        }
        t.optimal(
            "Values in two lines are those of a list",
            [
                .get("X-A: 1, 2").answer(lasting, "Vary: X-A"),
                .get("X-A: 1", "X-A: 2").isHit,
            ])
        t.optimal(
            "Space around the members of a list does not matter",
            [
                .get("X-A: 1,2").answer(lasting, "Vary: X-A"),
                .get("X-A:  1, 2 ").isHit,
            ])
        t.must(
            "The order of values does, where their meaning is not known",
            [
                .get("X-A: 1, 2").answer(lasting, "Vary: X-A"),
                .get("X-A: 2, 1").isForwarded,
            ])
        t.must(
            "So does their case",
            [
                .get("X-A: a").answer(lasting, "Vary: X-A"),
                .get("X-A: A").isForwarded,
            ])
        t.must(
            "The most recent response of those that match is chosen",
            [
                .get("X-A: 1").answer(lasting, "Vary: X-A", "Date: {now-100}"),
                .get("X-A: 1", "Cache-Control: no-cache").answer(lasting, "Date: {now-10}")
                    .isForwarded,
                .get("X-A: 1").isHit(from: 2),
            ])
        t.optimal(
            "A response without Vary does not hide the variants' fields",
            [
                .get("X-A: 1").answer(lasting, "Vary: X-A", "Date: {now-10}"),
                .get("X-A: 2").answer(lasting, "Date: {now-100}").isForwarded,
                .get("X-A: 1").isHit,
            ])
        t.optimal(
            "Vary of Host, Accept and others that every request has",
            [
                .get("Accept: text/html, */*;q=0.1").answer(lasting, "Vary: Accept, Host"),
                .get("Accept: text/html, */*;q=0.1").isHit,
            ])
        t.must(
            "Vary: Authorization tells credentials apart",
            [
                .get("Authorization: Basic YTpi").answer(
                    "Cache-Control: public, max-age=600", "Vary: Authorization"),
                .get("Authorization: Basic eDp5").isForwarded,
            ])
        t.must(
            "Vary: Cookie tells cookies apart",
            [
                .get("Cookie: a=1").answer(lasting, "Vary: Cookie"),
                .get("Cookie: a=2").isForwarded,
            ])
    }

    /// Comparison by meaning, which RFC 9111 §4.1 permits for fields that are understood.
    static let negotiation = Table.cases("9111 §4.1") { t in
        let same = [
            ("another order", "en, de", "de, en"), ("another case", "en, de", "eN, De"),
            ("space", "en, de", " en ,   de"), ("a weight of one", "en", "en;q=1.0"),
            ("weights written otherwise", "en;q=0.5, de", "de, en; q=0.500"),
        ]
        for (what, first, second) in same {
            t.optimal(
                "Accept-Language with \(what) is the same",
                [
                    .get("Accept-Language: \(first)").answer(
                        "Cache-Control: max-age=600", "Vary: Accept-Language"),
                    .get("Accept-Language: \(second)").isHit,
                ])
        }
        t.must(
            "Accept-Language with other weights is not",
            [
                .get("Accept-Language: en;q=0.5, de").answer(
                    "Cache-Control: max-age=600", "Vary: Accept-Language"),
                .get("Accept-Language: de;q=0.5, en").isForwarded,
            ])
        t.must(
            "Accept-Language with one language more is not",
            [
                .get("Accept-Language: en").answer(
                    "Cache-Control: max-age=600", "Vary: Accept-Language"),
                .get("Accept-Language: en, de").isForwarded,
            ])
        t.optimal(
            "A stored language that the client prefers is chosen by its weight",
            [
                .get("Accept-Language: en, de").answer(
                    "Cache-Control: max-age=600", "Vary: Accept-Language", "Content-Language: de"),
                .get("Accept-Language: fr;q=0.5, de;q=1.0").isHit,
            ])
        for (what, first, second) in [
            ("another order", "gzip, br", "br, gzip"), ("another case", "gzip", "GZip"),
            ("space", "gzip,br", "gzip , br"), ("x-gzip (9110 §8.4.1.3)", "gzip", "x-gzip"),
        ] {
            t.optimal(
                "Accept-Encoding with \(what) is the same",
                [
                    .get("Accept-Encoding: \(first)").answer(
                        "Cache-Control: max-age=600", "Vary: Accept-Encoding"),
                    .get("Accept-Encoding: \(second)").isHit,
                ])
        }
        t.must(
            "Accept-Encoding with a coding less is not",
            [
                .get("Accept-Encoding: gzip, br").answer(
                    "Cache-Control: max-age=600", "Vary: Accept-Encoding"),
                .get("Accept-Encoding: gzip").isForwarded,
            ])
        t.must(
            "Accept-Encoding with a coding refused is not",
            [
                .get("Accept-Encoding: gzip, br").answer(
                    "Cache-Control: max-age=600", "Vary: Accept-Encoding"),
                .get("Accept-Encoding: gzip, br;q=0").isForwarded,
            ])
    }

    /// What tells two resources apart.
    static let keys = Table.cases("9111 §2") { t in
        t.must(
            "Other queries are other resources",
            [
                .get(at: "?a=1").answer("Cache-Control: max-age=600"),
                .get(at: "?a=2").isForwarded,
            ])
        t.optimal(
            "The same query is the same resource",
            [
                .get(at: "?a=1").answer("Cache-Control: max-age=600"),
                .get(at: "?a=1").isHit,
            ])
        t.must(
            "The order of a query matters",
            [
                .get(at: "?a=1&b=2").answer("Cache-Control: max-age=600"),
                .get(at: "?b=2&a=1").isForwarded,
            ])
        t.must(
            "An empty query is not none",
            [
                .get(at: "?").answer("Cache-Control: max-age=600"),
                .get().isForwarded,
            ])
        t.must(
            "The case of a path matters",
            [
                .get(at: "/a").answer("Cache-Control: max-age=600"),
                .get(at: "/A").isForwarded,
            ])
        t.optimal(
            "Percent-encoding of what needs none does not (9110 §4.2.3)",
            [
                .get(at: "/~a").answer("Cache-Control: max-age=600"),
                .get(at: "/%7Ea").isHit,
            ])
        t.optimal(
            "The case of percent-encoding does not (9110 §4.2.3)",
            [
                .get(at: "/%e4").answer("Cache-Control: max-age=600"),
                .get(at: "/%E4").isHit,
            ])
        t.must(
            "Percent-encoding of what is reserved matters",
            [
                .get(at: "/a/b").answer("Cache-Control: max-age=600"),
                .get(at: "/a%2Fb").isForwarded,
            ])
        t.must(
            "The origin gets the target as it was written",
            [
                .get(at: "/%7Ea?x=%41").isForwarded
            ])
        t.must(
            "A HEAD and a GET have one stored response",
            [
                .get().answer("Cache-Control: max-age=600"),
                .head().isHit,
            ])
    }
}
