extension Tables {
    /// Conditions that clients send, answered from the cache or by the origin.
    static let entityTagConditions = Table.cases("9111 §4.3.2") { t in
        t.optimal(
            "If-None-Match with the tag of what is fresh is 304",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("If-None-Match: \"a\"").isHit.status(304),
            ])
        t.must(
            "The 304 has the entity tag",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("If-None-Match: \"a\"").isHit.status(304).gets("ETag: \"a\""),
            ])
        t.must(
            "And what else a 304 must tell (9110 §15.4.5)",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Location: /x",
                    "Vary: X-None", "Expires: {now+60}", "Date: {now-5}"),
                .get("If-None-Match: \"a\"").isHit.status(304)
                    .gets("Cache-Control: max-age=600").gets("Content-Location: /x")
                    .gets("Vary: X-None").gets("Expires: {now+60}").gets("Date: {now-5}"),
            ])
        t.optimal(
            "The comparison is weak: W/ of the client",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("If-None-Match: W/\"a\"").isHit.status(304),
            ])
        t.optimal(
            "The comparison is weak: W/ of the origin",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: W/\"a\""),
                .get("If-None-Match: \"a\"").isHit.status(304),
            ])
        t.optimal(
            "The comparison is weak: W/ of both",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: W/\"a\""),
                .get("If-None-Match: W/\"a\"").isHit.status(304),
            ])
        for list in [
            "\"a\", \"x\", \"y\"", "\"x\", \"a\", \"y\"", "\"x\", \"y\", \"a\"", "\"x\",\"a\"",
            ", \"x\" ,, W/\"a\"",
        ] {
            t.optimal(
                "A list with the tag is 304: \(list)",
                [
                    .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                    .get("If-None-Match: \(list)").isHit.status(304),
                ])
        }
        t.optimal(
            "Two lines are one list",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("If-None-Match: \"x\"", "If-None-Match: \"a\"").isHit.status(304),
            ])
        t.must(
            "A comma within a tag does not end it",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"b\""),
                .get("If-None-Match: \"a,b\", \"c\"").isHit,
            ])
        t.optimal(
            "An asterisk is 304 for whatever is fresh",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("If-None-Match: *").isHit.status(304),
            ])
        t.must(
            "Another tag gets the whole",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("If-None-Match: \"b\"").isHit.status(200),
            ])
        t.must(
            "Tags differ by case",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("If-None-Match: \"A\"").isHit.status(200),
            ])
        t.must(
            "If-None-Match counts, not an If-Modified-Since beside it: equal",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Last-Modified: {now-5000}"),
                .get("If-None-Match: \"a\"", "If-Modified-Since: {now-9000}").isHit.status(304),
            ])
        t.must(
            "If-None-Match counts, not an If-Modified-Since beside it: different",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Last-Modified: {now-5000}"),
                .get("If-None-Match: \"b\"", "If-Modified-Since: {now}").isHit.status(200),
            ])
        t.note(
            "A tag may hold bytes beyond ASCII",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"ü\""),
                .get("If-None-Match: \"ü\"").isHit.status(304),
            ])
        for (mine, its) in [
            ("a", "\"a\""), ("\"a\"", "a"), ("w/\"a\"", "w/\"a\""), ("W\"a\"", "W\"a\""),
            ("W\\\"a\"", "W\\\"a\""),
        ] {
            t.note(
                "What is no entity tag matches none: \(mine) and \(its)",
                [
                    .get().answer("Cache-Control: max-age=600", "ETag: \(its)"),
                    .get("If-None-Match: \(mine)").isHit.status(200),
                ])
        }
        t.must(
            "A HEAD with the tag is 304, too",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .head("If-None-Match: \"a\"").isHit.status(304),
            ])
        t.must(
            "Where nothing is stored, the condition goes to the origin",
            [
                .get("If-None-Match: \"a\"").isForwarded.asks("If-None-Match: \"a\"")
            ])
        t.note(
            "As it is, also where it is none",
            [
                .get("If-None-Match: a").isForwarded.asks("If-None-Match: a")
            ])
        t.must(
            "The origin's 304 to the client's condition is the client's",
            [
                .get("If-None-Match: \"a\"").answer("ETag: \"a\"", status: "304 Not Modified")
                    .isForwarded.status(304).gets("ETag: \"a\"")
            ])
        t.optimal(
            "If what is stored is stale, one request validates it for both",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get("If-None-Match: \"a\"").isValidated(by: "If-None-Match: \"a\"").status(304),
            ])
        t.optimal(
            "A client with another tag gets the whole after the validation",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get("If-None-Match: \"b\"").answer("ETag: \"a\"")
                    .isValidated(by: "If-None-Match: \"a\"").status(200),
            ])
        t.must(
            "If-Match is the origin's to judge (9110 §13.1.1)",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("If-Match: \"a\"").isForwarded.asks("If-Match: \"a\""),
            ])
        t.must(
            "So is If-Unmodified-Since (9110 §13.1.4)",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-9000}"),
                .get("If-Unmodified-Since: {now-9000}").isForwarded
                    .asks("If-Unmodified-Since: {now-9000}"),
            ])
        t.must(
            "A 412 of the origin is not stored",
            [
                .get("If-Match: \"x\"").answer(
                    "Cache-Control: max-age=600", status: "412 Precondition Failed"),
                .get().isForwarded,
            ])
    }

    static let dateConditions = Table.cases("9111 §4.3.2") { t in
        t.optimal(
            "If-Modified-Since with the date of what is fresh is 304",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .get("If-Modified-Since: {now-3000}").isHit.status(304),
            ])
        t.optimal(
            "So it is with a later date",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .get("If-Modified-Since: {now-2000}").isHit.status(304),
            ])
        t.must(
            "An earlier date gets the whole",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .get("If-Modified-Since: {now-4000}").isHit.status(200),
            ])
        t.optimal(
            "Without Last-Modified the date of the response counts: later",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now-10}"),
                .get("If-Modified-Since: {now-5}").isHit.status(304),
            ])
        t.must(
            "Without Last-Modified the date of the response counts: earlier",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now-10}"),
                .get("If-Modified-Since: {now-3000}").isHit.status(200),
            ])
        t.optimal(
            "The date may be in the form of RFC 850",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .get("If-Modified-Since: {rfc850-3000}").isHit.status(304),
            ])
        t.optimal(
            "The date may be in the form of asctime",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .get("If-Modified-Since: {asctime-3000}").isHit.status(304),
            ])
        t.must(
            "What is no date is passed over (9110 §13.1.3)",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .get("If-Modified-Since: some day").isHit.status(200),
            ])
        t.must(
            "It is passed over for other methods (9110 §13.1.3)",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .post("If-Modified-Since: {now}").isForwarded.status(200),
            ])
        t.optimal(
            "If what is stored is stale, one request validates it for both",
            [
                .get().answer("Cache-Control: max-age=1", "Last-Modified: {now-3000}", "Age: 20"),
                .get("If-Modified-Since: {now-3000}")
                    .isValidated(by: "If-Modified-Since: {now-3000}").status(304),
            ])
        t.must(
            "Where nothing is stored, the condition goes to the origin",
            [
                .get("If-Modified-Since: {now-3000}").isForwarded
                    .asks("If-Modified-Since: {now-3000}")
            ])
        t.must(
            "The 304 has the date of modification where there is no tag (9110 §15.4.5)",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-3000}"),
                .get("If-Modified-Since: {now-3000}").isHit.status(304)
                    .gets("Last-Modified: {now-3000}"),
            ])
        t.must(
            "A stored redirection is not judged by conditions (9110 §13.2.1)",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Location: /x", status: "302 Found"
                ),
                .get("If-None-Match: \"a\"").isHit.status(302),
            ])
        t.must(
            "Nor a stored 404",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "Last-Modified: {now-3000}",
                    status: "404 Not Found"),
                .get("If-Modified-Since: {now}").isHit.status(404),
            ])
    }
}
