extension Tables {
    /// What is stale, and may be used all the same.
    static let staleness = Table.cases("9111 §4.2.4") { t in
        for directive in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=1"] {
            t.must(
                "\(directive) forbids it where the origin ends the connection",
                [
                    .get().answer(
                        "Cache-Control: max-age=1, \(directive)", "ETag: \"a\"", "Age: 20"),
                    .get().isRefused.status(directive == "no-cache" ? 502 : 504),
                ])
            t.must(
                "\(directive) forbids it, though stale-if-error stand beside it",
                [
                    .get().answer(
                        "Cache-Control: max-age=1, stale-if-error=600, \(directive)", "ETag: \"a\"",
                        "Age: 20"),
                    .get().isRefused.status(directive == "no-cache" ? 502 : 504),
                ])
            t.must(
                "\(directive) forbids it, though stale-while-revalidate stand beside it",
                [
                    .get().answer(
                        "Cache-Control: max-age=1, stale-while-revalidate=600, \(directive)",
                        "ETag: \"a\"", "Age: 20"),
                    .get().isForwarded,
                ])
        }
        t.optimal(
            "What is stale is used where the origin ends the connection",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().isRefused.isStored().says(containing: "grace-without-answer"),
            ])
        t.note(
            "Not after a day of silence",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 90000"),
                .get().isRefused.status(502),
            ])
        t.note(
            "Nor for one that says 503",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer(status: "503 Service Unavailable").isForwarded,
            ])
        t.must(
            "max-stale is the bound of what is used stale: connection ended (9111 §5.2.1.2)",
            [
                .get().answer(
                    "Cache-Control: max-age=1, stale-if-error=600", "ETag: \"a\"", "Age: 20"),
                .get("Cache-Control: max-stale=5").isRefused.status(502),
                .get("Cache-Control: max-stale=5, stale-if-error=600").isRefused.status(502),
            ])
        t.must(
            "max-stale is the bound of what is used stale: stale-while-revalidate",
            [
                .get().answer(
                    "Cache-Control: max-age=1, stale-while-revalidate=600", "ETag: \"a\"",
                    "Age: 20"),
                .get("Cache-Control: max-stale=5").isValidated(by: "If-None-Match: \"a\""),
            ])
        t.settings("sessions: {default: {freshness: {stale-if-error: 1 h}}}")
        t.note(
            "With a grace in the settings it is: connection ended",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().isRefused.isStored().gets(age: 20...50),
            ])
        t.note(
            "With a grace in the settings it is: 503",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer(status: "503 Service Unavailable").isStored(),
            ])
        t.note(
            "Not beyond the grace",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 9000"),
                .get().answer(status: "503 Service Unavailable").status(503),
            ])
        t.must(
            "Not against must-revalidate",
            [
                .get().answer(
                    "Cache-Control: max-age=1, must-revalidate", "ETag: \"a\"", "Age: 20"),
                .get().isRefused.status(504),
            ])

        t.settings("")
        t.section("5861 §4")
        t.optimal(
            "stale-if-error serves what is stale where the origin ends the connection",
            [
                .get().answer("Cache-Control: max-age=1, stale-if-error=600", "Age: 20"),
                .get().isRefused.isStored().gets(age: 20...50),
            ])
        for status in [
            "500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable",
            "504 Gateway Timeout",
        ] {
            t.optimal(
                "Where it answers \(status), too",
                [
                    .get().answer("Cache-Control: max-age=1, stale-if-error=600", "Age: 20"),
                    .get().answer(status: status).isStored(),
                ])
        }
        t.must(
            "Not where it answers 404",
            [
                .get().answer("Cache-Control: max-age=1, stale-if-error=600", "Age: 20"),
                .get().answer(status: "404 Not Found").isForwarded,
            ])
        t.optimal(
            "Though the lifetime be zero",
            [
                .get().answer("Cache-Control: max-age=0, stale-if-error=600"),
                .get().answer(status: "500 Internal Server Error").isStored(),
            ])
        t.must(
            "Not beyond its time",
            [
                .get().answer("Cache-Control: max-age=1, stale-if-error=60", "Age: 200"),
                .get().answer(status: "500 Internal Server Error").isForwarded,
            ])
        t.note(
            "A request's stale-if-error is honoured",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get("Cache-Control: stale-if-error=600").answer(
                    status: "500 Internal Server Error"
                )
                .isStored(),
            ])
        t.must(
            "Not beyond its time",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 200"),
                .get("Cache-Control: stale-if-error=60").answer(status: "500 Internal Server Error")
                    .isForwarded,
            ])
        t.must(
            "Not where the request says no-cache",
            [
                .get().answer("Cache-Control: max-age=1, stale-if-error=600", "Age: 20"),
                .get("Cache-Control: no-cache").isRefused.status(502),
            ])
        t.optimal(
            "Nor is an invalidated response used so",
            [
                .get().answer("Cache-Control: max-age=1, stale-if-error=600", "Age: 20"),
                .post().isForwarded,
                .get().isRefused.status(502),
            ])

        t.section("5861 §3")
        t.optimal(
            "stale-while-revalidate serves what is stale at once",
            [
                .get().answer(
                    "Cache-Control: max-age=1, stale-while-revalidate=600", "ETag: \"a\"", "Age: 20"
                ),
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"").isStored().says("hit")
                    .gets(age: 20...50),
            ])
        t.optimal(
            "And validates behind the client's back: 304",
            [
                .get().answer(
                    "Cache-Control: max-age=1, stale-while-revalidate=600", "ETag: \"a\"", "Age: 20"
                ),
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", status: "304 Not Modified"
                ).isStored().status(200).leadsTo(requests: 2),
                .get().isHit.gets("Cache-Control: max-age=600").eventually,
            ])
        t.optimal(
            "And validates behind the client's back: 200",
            [
                .get().answer(
                    "Cache-Control: max-age=0, stale-while-revalidate=600", "ETag: \"a\""),
                .get().answer("Cache-Control: max-age=600", "ETag: \"b\"").isStored().leadsTo(
                    requests: 2),
                .get().isHit(from: 2).gets("ETag: \"b\"").eventually,
            ])
        t.must(
            "Not beyond its time",
            [
                .get().answer(
                    "Cache-Control: max-age=1, stale-while-revalidate=60", "ETag: \"a\"", "Age: 200"
                ),
                .get().isForwarded,
            ])
        t.must(
            "Not where the request says no-cache",
            [
                .get().answer(
                    "Cache-Control: max-age=1, stale-while-revalidate=600", "ETag: \"a\"", "Age: 20"
                ),
                .get("Cache-Control: no-cache").isForwarded,
            ])
        t.note(
            "A response that needs no entity tag for it",
            [
                .get().answer("Cache-Control: max-age=1, stale-while-revalidate=600", "Age: 20"),
                .get().isStored().says("hit"),
            ])
        t.note(
            "No Warning is made of it, which is obsolete (9111 §5.5)",
            [
                .get().answer("Cache-Control: max-age=1, stale-if-error=600", "Age: 20"),
                .get().isRefused.isStored().lacks("Warning"),
            ])
    }

    /// What an unsafe request makes unusable.
    static let invalidation = Table.cases("9111 §4.4") { t in
        let lasting = "Cache-Control: max-age=600"
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FROBNICATE"] {
            t.must(
                "\(method) with an answer that is no error invalidates its target",
                [
                    .get().answer(lasting),
                    .send(method, content: "q").isForwarded,
                    .get().isForwarded,
                ])
            t.optimal(
                "\(method) with an error does not",
                [
                    .get().answer(lasting),
                    .send(method, content: "q").answer(status: "500 Internal Server Error")
                        .isForwarded,
                    .get().isHit,
                ])
            for (name, path) in [("Location", "/l"), ("Content-Location", "/c")] {
                t.must(
                    "\(method) invalidates the URI in \(name)",
                    [
                        .get(at: path).answer(lasting),
                        .send(method, content: "q").answer("\(name): {base}\(path)").isForwarded,
                        .get(at: path).isForwarded,
                    ])
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"] {
            t.optimal(
                "\(method) is safe, and invalidates nothing",
                [
                    .get().answer(lasting),
                    .send(method, "Cache-Control: no-store", at: "").answer().isForwarded,
                    .get().isHit,
                ])
        }
        t.must(
            "A redirection is no error",
            [
                .get().answer(lasting),
                .post().answer("Location: /x", status: "303 See Other").isForwarded,
                .get().isForwarded,
            ])
        t.must(
            "A 204 is no error",
            [
                .get().answer(lasting),
                .send("DELETE").answer(status: "204 No Content").isForwarded,
                .get().isForwarded,
            ])
        t.optimal(
            "A 404 is an error",
            [
                .get().answer(lasting),
                .send("DELETE").answer(status: "404 Not Found").isForwarded,
                .get().isHit,
            ])
        t.must(
            "A relative Location is resolved",
            [
                .get(at: "/a").answer(lasting),
                .post(at: "/b").answer("Location: a", status: "201 Created").isForwarded,
                .get(at: "/a").isForwarded,
            ])
        t.must(
            "A Location at another origin invalidates nothing",
            [
                .get(at: "/a").answer(lasting),
                .post().answer("Location: http://other.example{path}/a").isForwarded,
                .get(at: "/a").isHit,
            ])
        t.must(
            "All variants are invalidated",
            [
                .get("X-A: 1").answer(lasting, "Vary: X-A"),
                .get("X-A: 2").answer(lasting, "Vary: X-A").isForwarded,
                .post("X-A: 1").isForwarded,
                .get("X-A: 1").isForwarded,
                .get("X-A: 2").isForwarded,
            ])
        t.optimal(
            "What is invalidated may be validated", known: "what is invalidated is removed",
            [
                .get().answer(lasting, "ETag: \"a\""),
                .post().isForwarded,
                .get().isValidated(by: "If-None-Match: \"a\""),
            ])
        t.optimal(
            "Other queries stay",
            [
                .get(at: "?a=1").answer(lasting),
                .post(at: "?a=2").isForwarded,
                .get(at: "?a=1").isHit,
            ])
    }

    /// Cache groups.
    static let groups = Table.cases("9875 §2") { t in
        let lasting = "Cache-Control: max-age=600"
        t.optimal(
            "Invalidating a group invalidates its members",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: \"{path}\""),
                .post(at: "/b").answer("Cache-Group-Invalidation: \"{path}\"").isForwarded,
                .get(at: "/a").isForwarded,
            ])
        t.optimal(
            "A response may be in several groups",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: \"x{path}\", \"{path}\""),
                .post(at: "/b").answer("Cache-Group-Invalidation: \"{path}\"").isForwarded,
                .get(at: "/a").isForwarded,
            ])
        t.optimal(
            "Others stay",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: \"other{path}\""),
                .post(at: "/b").answer("Cache-Group-Invalidation: \"{path}\"").isForwarded,
                .get(at: "/a").isHit,
            ])
        t.must(
            "Group names differ by case (§2.1)",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: \"g{path}\""),
                .post(at: "/b").answer("Cache-Group-Invalidation: \"G{path}\"").isForwarded,
                .get(at: "/a").isHit,
            ])
        t.section("9875 §3")
        t.must(
            "A safe request invalidates no group",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: \"{path}\""),
                .get(at: "/b").answer("Cache-Group-Invalidation: \"{path}\"").isForwarded,
                .get(at: "/a").isHit,
            ])
        t.optimal(
            "What is invalidated so does not invalidate its other groups",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: \"1{path}\", \"2{path}\""),
                .get(at: "/b").answer(lasting, "Cache-Groups: \"2{path}\"").isForwarded,
                .post(at: "/c").answer("Cache-Group-Invalidation: \"1{path}\"").isForwarded,
                .get(at: "/b").isHit(from: 2),
                .get(at: "/a").isForwarded,
            ])
        t.optimal(
            "What came after the invalidation is fresh",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: \"{path}\""),
                .post(at: "/b").answer("Cache-Group-Invalidation: \"{path}\"").isForwarded,
                .get(at: "/a").answer(lasting, "Cache-Groups: \"{path}\"").isForwarded,
                .get(at: "/a").isHit(from: 3),
            ])
        t.must(
            "A field that is no list of strings is passed over",
            [
                .get(at: "/a").answer(lasting, "Cache-Groups: token, 1"),
                .post(at: "/b").answer("Cache-Group-Invalidation: token, 1").isForwarded,
                .get(at: "/a").isHit,
            ])
    }
}
