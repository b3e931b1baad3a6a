extension Tables {
    /// What a private cache does otherwise than a shared one.
    static let privateCache = Table.cases("9111 §5.2.2.7") { t in
        t.settings("sessions: {default: {cache: {shared: false}}}")
        t.optimal(
            "private is reused by a private cache",
            [
                .get().answer("Cache-Control: private, max-age=600"),
                .get().isHit,
            ])
        t.optimal(
            "So are the fields that private names",
            [
                .get().answer("Cache-Control: private=\"x-name\", max-age=600", "X-Name: me"),
                .get().isHit.gets("X-Name: me"),
            ])
        t.must(
            "no-store keeps a response out of it, too",
            [
                .get().answer("Cache-Control: private, no-store, max-age=600"),
                .get().isForwarded,
            ])
        t.section("9111 §3.2")
        t.must(
            "Set-Cookie of a 304 replaces the stored one",
            [
                .get().answer(
                    "Cache-Control: max-age=1", "ETag: \"a\"", "Set-Cookie: a=b", "Age: 20"),
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "Set-Cookie: a=c")
                    .isValidated(by: "If-None-Match: \"a\"").gets("Set-Cookie: a=c"),
                .get().isHit.gets("Set-Cookie: a=c"),
            ])
        t.section("9111 §3.5")
        t.optimal(
            "The answer to a request with Authorization is reused by its owner",
            [
                .get("Authorization: Basic YTpi").answer("Cache-Control: max-age=600"),
                .get("Authorization: Basic YTpi").isHit,
            ])
        t.section("9111 §5.2.2.10")
        t.must(
            "A private cache takes max-age, not a longer s-maxage",
            [
                .get().answer("Cache-Control: s-maxage=600, max-age=1", "Age: 20"),
                .get().isForwarded,
            ])
        t.must(
            "Nor one in a line of its own",
            [
                .get().answer("Cache-Control: s-maxage=600", "Cache-Control: max-age=1", "Age: 20"),
                .get().isForwarded,
            ])
        t.optimal(
            "Nor a shorter one",
            [
                .get().answer("Cache-Control: s-maxage=1, max-age=600", "Age: 20"),
                .get().isHit,
            ])
        t.section("9111 §5.2.2.8")
        t.optimal(
            "proxy-revalidate does not bind a private cache",
            [
                .get().answer(
                    "Cache-Control: max-age=1, proxy-revalidate, stale-if-error=600", "Age: 20"),
                .get().isRefused.isStored(),
            ])
        t.section("9111 §5.2.2.2")
        t.must(
            "must-revalidate does",
            [
                .get().answer(
                    "Cache-Control: max-age=1, must-revalidate, stale-if-error=600", "ETag: \"a\"",
                    "Age: 20"),
                .get().isRefused.status(504),
            ])
    }
}
