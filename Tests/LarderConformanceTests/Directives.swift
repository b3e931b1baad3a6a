extension Tables {
    /// What requests say in `Cache-Control`.
    static let requestDirectives = Table.cases("9111 §5.2.1.1") { t in
        t.note(
            "max-age=0 asks for a validation of what is fresh",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: max-age=0").isForwarded,
            ])
        t.note(
            "max-age bounds the age of what is fresh: too old",
            [
                .get().answer("Cache-Control: max-age=3600", "Age: 1800"),
                .get("Cache-Control: max-age=600").isForwarded,
            ])
        t.note(
            "max-age bounds the age of what is fresh: young enough",
            [
                .get().answer("Cache-Control: max-age=3600", "Age: 1800"),
                .get("Cache-Control: max-age=2400").isHit,
            ])
        t.note(
            "An invalid max-age is as good as zero",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: max-age=x").isForwarded,
            ])

        t.section("9111 §5.2.1.2")
        t.note(
            "max-stale takes a stale response",
            [
                .get().answer("Cache-Control: max-age=1500", "Age: 2000"),
                .get("Cache-Control: max-stale=1000").isHit.says("hit"),
            ])
        t.note(
            "max-stale without a value takes any",
            [
                .get().answer("Cache-Control: max-age=1", "Age: 900000"),
                .get("Cache-Control: max-stale").isHit,
            ])
        t.note(
            "max-stale does not take what is too stale",
            [
                .get().answer("Cache-Control: max-age=1500", "Age: 2000"),
                .get("Cache-Control: max-stale=100").isForwarded,
            ])
        t.must(
            "A stale response tells that its age is beyond its lifetime",
            [
                .get().answer("Cache-Control: max-age=1500", "Age: 2000"),
                .get("Cache-Control: max-stale=1000").isHit.gets(age: 2000...2030),
            ])
        for directive in ["must-revalidate", "proxy-revalidate", "s-maxage=1", "no-cache"] {
            t.must(
                "\(directive) of the response holds against max-stale",
                [
                    .get().answer("Cache-Control: max-age=1, \(directive)", "Age: 20"),
                    .get("Cache-Control: max-stale").isForwarded,
                ])
        }

        t.section("9111 §5.2.1.3")
        t.note(
            "min-fresh asks for more than is left",
            [
                .get().answer("Cache-Control: max-age=1500"),
                .get("Cache-Control: min-fresh=2000").isForwarded,
            ])
        t.note(
            "min-fresh reckons with the age",
            [
                .get().answer("Cache-Control: max-age=1500", "Age: 1000"),
                .get("Cache-Control: min-fresh=1000").isForwarded,
            ])
        t.note(
            "min-fresh is content with less",
            [
                .get().answer("Cache-Control: max-age=1500", "Age: 1000"),
                .get("Cache-Control: min-fresh=400").isHit,
            ])

        t.section("9111 §5.2.1.4")
        t.note(
            "no-cache asks for a validation of what is fresh",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: no-cache").isForwarded,
            ])
        t.note(
            "It is validated by its entity tag",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .get("Cache-Control: no-cache").isValidated(by: "If-None-Match: \"a\""),
            ])
        t.note(
            "Or by its date",
            [
                .get().answer("Cache-Control: max-age=600", "Last-Modified: {now-9000}"),
                .get("Cache-Control: no-cache").isValidated(by: "If-Modified-Since: {now-9000}"),
            ])
        t.must(
            "no-cache goes on to the origin",
            [
                .get("Cache-Control: no-cache").isForwarded.asks("Cache-Control: no-cache")
            ])

        t.section("9111 §5.2.1.5")
        t.note(
            "no-store asks for an answer of the origin",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: no-store").isForwarded,
            ])
        t.note(
            "What is stored stays stored",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: no-store").isForwarded,
                .get().isHit,
            ])

        t.section("9111 §5.2.1.7")
        t.note(
            "only-if-cached with nothing stored is 504",
            [
                .get("Cache-Control: only-if-cached").status(504).asks(times: 0)
            ])
        t.note(
            "only-if-cached with something stale is 504",
            [
                .get().answer("Cache-Control: max-age=0"),
                .get("Cache-Control: only-if-cached").status(504).asks(times: 0),
            ])
        t.note(
            "only-if-cached with something fresh is a hit",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: only-if-cached").isHit,
            ])
        t.note(
            "only-if-cached with max-stale takes what is stale",
            [
                .get().answer("Cache-Control: max-age=1", "Age: 20"),
                .get("Cache-Control: only-if-cached, max-stale=100").isHit,
            ])
        t.note(
            "Unknown directives of requests are passed over",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: nothing-to-see").isHit,
            ])
        t.must(
            "Unknown directives go on to the origin (9111 §5.2.3)",
            [
                .get("Cache-Control: surprise=1").isForwarded.asks("Cache-Control: surprise=1")
            ])
    }

    /// What responses say in `Cache-Control`, beside lifetimes and what forbids storing.
    static let responseDirectives = Table.cases("9111 §5.2.2.4") { t in
        t.must(
            "no-cache allows no reuse without validation",
            [
                .get().answer("Cache-Control: max-age=600, no-cache", "Expires: {now+600}"),
                .get().isForwarded,
            ])
        t.must(
            "In whatever case",
            [
                .get().answer("Cache-Control: max-age=600, No-CaChE"),
                .get().isForwarded,
            ])
        t.optimal(
            "It may be stored, and validated",
            [
                .get().answer("Cache-Control: no-cache", "ETag: \"a\""),
                .get().isValidated(by: "If-None-Match: \"a\""),
            ])
        t.optimal(
            "Though it be fresh",
            [
                .get().answer("Cache-Control: no-cache, max-age=600", "ETag: \"a\""),
                .get().isValidated(by: "If-None-Match: \"a\""),
            ])
        t.note(
            "no-cache with a field leaves the rest reusable",
            [
                .get().answer(
                    "Cache-Control: no-cache=\"x-one\"", "X-One: 1", "X-Two: 2",
                    "Cache-Control: max-age=600"),
                .get().isHit.gets("X-Two: 2").lacks("X-One"),
            ])
        t.note(
            "no-cache with several fields, too",
            [
                .get().answer(
                    "Cache-Control: no-cache=\"x-one, x-two\", max-age=600", "X-One: 1", "X-Two: 2",
                    "X-Three: 3"),
                .get().isHit.gets("X-Three: 3").lacks("X-One").lacks("X-Two"),
            ])
        t.must(
            "Fields that no-cache names are not sent without validation",
            [
                .get().answer("Cache-Control: no-cache=\"x-one\", max-age=600", "X-One: 1"),
                .get().lacks("X-One"),
            ])
        t.note(
            "no-cache with a token in place of a list is read like the list",
            [
                .get().answer("Cache-Control: no-cache=x-one, max-age=600", "X-One: 1", "X-Two: 2"),
                .get().isHit.gets("X-Two: 2").lacks("X-One"),
            ])

        t.section("9111 §5.2.2.2")
        t.optimal(
            "must-revalidate does not keep what is fresh from being reused",
            [
                .get().answer("Cache-Control: max-age=600, must-revalidate", "ETag: \"a\""),
                .get().isHit,
            ])
        t.must(
            "What is stale is validated",
            [
                .get().answer(
                    "Cache-Control: max-age=1, must-revalidate", "ETag: \"a\"", "Age: 20"),
                .get().isValidated(by: "If-None-Match: \"a\""),
            ])
        t.must(
            "Where the origin ends the connection, the answer is 504",
            [
                .get().answer(
                    "Cache-Control: max-age=1, must-revalidate", "ETag: \"a\"", "Age: 20"),
                .get().isRefused.status(504),
            ])

        t.section("9111 §5.2.2.8")
        t.optimal(
            "proxy-revalidate does not keep what is fresh from being reused",
            [
                .get().answer("Cache-Control: max-age=600, proxy-revalidate"),
                .get().isHit,
            ])

        t.section("9111 §5.2.2.6")
        t.must(
            "no-transform goes on to the client",
            [
                .get().answer("Cache-Control: max-age=600, no-transform")
                    .gets("Cache-Control: max-age=600, no-transform")
            ])

        t.section("9111 §5.2.2.9")
        t.optimal(
            "public alone makes nothing fresh, and nothing stale",
            [
                .get().answer("Cache-Control: public, max-age=600"),
                .get().isHit,
            ])
        t.note(
            "public without lifetime and validator is not reused",
            [
                .get().answer("Cache-Control: public"),
                .get().isForwarded,
            ])

        t.section("8246 §2")
        t.must(
            "What is immutable and stale is validated",
            [
                .get().answer("Cache-Control: max-age=1, immutable", "ETag: \"a\"", "Age: 20"),
                .get().isValidated(by: "If-None-Match: \"a\""),
            ])
        t.optimal(
            "What is immutable and fresh is reused",
            [
                .get().answer("Cache-Control: max-age=600, immutable", "ETag: \"a\""),
                .get().isHit,
            ])
        t.note(
            "A client that asks for a validation gets one, though it be immutable",
            [
                .get().answer("Cache-Control: max-age=600, immutable", "ETag: \"a\""),
                .get("Cache-Control: no-cache").isValidated(by: "If-None-Match: \"a\""),
            ])
        t.must(
            "immutable with a value is the same",
            [
                .get().answer("Cache-Control: max-age=1, immutable=yes", "Age: 20"),
                .get().isForwarded,
            ])
    }
}
