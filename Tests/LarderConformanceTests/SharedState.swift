extension Tables {
    /// What one client's exchange must not do to the next client's.
    static let sharedState = Table.cases("9111 §3.2") { t in
        let stale = "Cache-Control: max-age=0"
        let lasting = "Cache-Control: max-age=600"
        t.must(
            "A 304 that varies by more keeps other requests out",
            [
                .get("X-A: 1").answer(lasting, "ETag: \"a\"", "Vary: X-A"),
                .get("X-A: 1", "X-B: 1", "Cache-Control: no-cache")
                    .answer("Vary: X-A, X-B", "ETag: \"a\"", status: "304 Not Modified")
                    .isStored(),
                .get("X-A: 1", "X-B: 2").answer("Cache-Control: no-store").isForwarded,
                .get("X-A: 1", "X-B: 1").isHit,
            ])
        t.must(
            "One that varies by less does not let them in",
            [
                .get("X-A: 1").answer(lasting, "ETag: \"a\"", "Vary: X-A"),
                .get("X-A: 1", "Cache-Control: no-cache")
                    .answer("Vary: X-B", "ETag: \"a\"", status: "304 Not Modified").isStored(),
                .get("X-A: 2").answer("Cache-Control: no-store").isForwarded,
            ])

        t.section("9111 §3.5")
        t.must(
            "A 304 to a request with credentials updates nothing for others",
            [
                .get().answer(stale, "ETag: \"a\""),
                .get("Authorization: Basic YTpi")
                    .answer(lasting, "ETag: \"a\"", "X-User: a", status: "304 Not Modified")
                    .isStored().gets("X-User: a"),
                .get().isValidated(by: "If-None-Match: \"a\"").lacks("X-User"),
            ])
        t.must(
            "Unless it allows that",
            [
                .get().answer(stale, "ETag: \"a\""),
                .get("Authorization: Basic YTpi")
                    .answer(
                        "Cache-Control: public, max-age=600", "ETag: \"a\"",
                        status: "304 Not Modified"
                    ).isStored(),
                .get().isHit,
            ])

        t.section("9111 §4.1")
        t.must(
            "The cookies of another variant's client are not passed on with its content",
            [
                .get("Cookie: c=1").answer(
                    lasting, "ETag: \"a\"", "Vary: Cookie", "Set-Cookie: s=1"),
                .get("Cookie: c=2").answer("Vary: Cookie").isForwarded
                    .asks(without: "If-None-Match").lacks("Set-Cookie"),
            ])

        t.section("9111 §4.3.3")
        t.must(
            "What a full answer has superseded does not come back stale",
            [
                .get().answer("Cache-Control: max-age=0, stale-if-error=600", "ETag: \"a\""),
                .get().answer("Cache-Control: no-store").isForwarded,
                .get().isRefused.status(502),
            ])

        t.must(
            "The same where it has no validator",
            [
                .get().answer("Cache-Control: max-age=0, stale-if-error=600"),
                .get().answer("Cache-Control: no-store").isForwarded,
                .get().isRefused.status(502),
            ])

        t.section("9111 §3.2")
        t.note(
            "The cookies of a 304 are those of the client that it answers, and of nobody else",
            [
                .get().answer("Cache-Control: max-age=0", "ETag: \"a\""),
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Set-Cookie: s=1",
                    status: "304 Not Modified"
                ).isStored().gets("Set-Cookie: s=1"),
                .get().isHit.lacks("Set-Cookie"),
            ])

        t.section("9111 §5.2.2.7")
        t.must(
            "A field that private names is not taken over from a 304",
            [
                .get().answer(
                    "Cache-Control: max-age=0, private=\"set-cookie\"", "ETag: \"a\""),
                .get().answer("ETag: \"a\"", "Set-Cookie: s=1", status: "304 Not Modified")
                    .isStored().gets("Set-Cookie: s=1"),
                .get().isValidated(by: "If-None-Match: \"a\"").lacks("Set-Cookie"),
            ])

        t.must(
            "Nor does a 304 that names it take a field that says what the content is",
            [
                .get().answer(stale, "ETag: \"a\"", "Content-Encoding: x-odd"),
                .get().answer(
                    "Cache-Control: max-age=600, private=\"content-encoding\"", "ETag: \"a\"",
                    status: "304 Not Modified"
                ).isStored().gets("Content-Encoding: x-odd"),
                .get().isHit.gets("Content-Encoding: x-odd"),
            ])

        t.section("9111 §5.2.1.5")
        t.must(
            "The answer to a HEAD with no-store updates nothing",
            [
                .get().answer(lasting, "ETag: \"a\"", "X-A: 1"),
                .head("Cache-Control: no-store").answer("ETag: \"a\"", "X-A: 2"),
                .get().isHit.gets("X-A: 1"),
            ])

        t.section("9110 §7.6.1")
        for (name, value) in [
            ("Cache-Control", "max-age=600, must-revalidate"), ("Vary", "X-A"),
            ("ETag", "\"a\""), ("Expires", "{now+600}"),
        ] {
            t.must(
                "A response whose \(name) is for the connection only is not stored",
                [
                    .get("X-A: 1").answer(
                        "Last-Modified: {now-90000}", "\(name): \(value)", "Connection: \(name)"),
                    .get("X-A: 2").isForwarded,
                ])
        }
    }
}
