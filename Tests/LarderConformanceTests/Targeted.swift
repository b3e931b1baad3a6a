extension Tables {
    /// Fields for one kind of cache, in place of `Cache-Control`.
    static let targeted = Table.cases("9213 §2.2") { t in
        let name = "CDN-Cache-Control"
        t.note(
            "By default no targeted field is listed, so it is passed on and means nothing",
            [
                .get().answer("Cache-Control: max-age=600", "\(name): no-store")
                    .gets("\(name): no-store"),
                .get().isHit,
            ])
        t.settings("sessions: {default: {freshness: {targeted-fields: [\(name), Other-CC]}}}")
        for value in [
            "max-age=600", "max-age=2147483648", "max-age=99999999999", "foobar, max-age=600",
            "max-age=600;a=b",
        ] {
            t.optimal(
                "\(value) makes a response fresh",
                [
                    .get().answer("\(name): \(value)"),
                    .get().isHit,
                ])
        }
        t.must(
            "It is stale by its age",
            [
                .get().answer("\(name): max-age=600", "Age: 1200"),
                .get().isForwarded,
            ])
        t.must(
            "max-age=0 is stale",
            [
                .get().answer("\(name): max-age=0"),
                .get().isForwarded,
            ])
        t.optimal(
            "An Expires of the past does not matter",
            [
                .get().answer("\(name): max-age=600", "Expires: {now-10000}"),
                .get().isHit,
            ])
        t.optimal(
            "An invalid Expires does not matter",
            [
                .get().answer("\(name): max-age=600", "Expires: 0"),
                .get().isHit,
            ])
        t.must(
            "An Expires to come does not matter",
            [
                .get().answer("\(name): max-age=0", "Expires: {now+10000}"),
                .get().isForwarded,
            ])
        t.optimal(
            "It holds, not a short Cache-Control",
            [
                .get().answer("Cache-Control: max-age=1", "\(name): max-age=600", "Age: 20"),
                .get().isHit,
            ])
        t.must(
            "It holds, not a long Cache-Control",
            [
                .get().answer("Cache-Control: max-age=600", "\(name): max-age=1", "Age: 20"),
                .get().isForwarded,
            ])
        for directive in ["private", "no-cache", "no-store"] {
            t.must(
                "\(directive) holds against a Cache-Control and an Expires",
                [
                    .get().answer(
                        "Cache-Control: max-age=600", "\(name): \(directive)", "Expires: {now+600}"),
                    .get().isForwarded,
                ])
        }
        t.optimal(
            "It holds, not a no-store of Cache-Control",
            [
                .get().answer("Cache-Control: no-store", "\(name): max-age=600"),
                .get().isHit,
            ])
        t.optimal(
            "The first of the list that is there holds",
            [
                .get().answer("Other-CC: no-store", "\(name): max-age=600"),
                .get().isHit,
            ])
        t.must(
            "Where the first is missing, the second does",
            [
                .get().answer("Cache-Control: max-age=600", "Other-CC: no-store"),
                .get().isForwarded,
            ])

        t.section("9213 §2.1")
        for value in ["max-age=600, &&&&", "max-age=\"600\"", "max-age=600.0", "max-age", ""] {
            t.must(
                "What is no structured field is passed over: \(value)",
                [
                    .get().answer("Cache-Control: no-store", "\(name): \(value)"),
                    .get().isForwarded,
                ])
        }
        t.note(
            "Space before the equals sign is no structured field",
            [
                .get().answer("Cache-Control: max-age=1", "\(name): max-age =600", "Age: 20"),
                .get().isForwarded,
            ])
        t.note(
            "Space behind it is none, either",
            [
                .get().answer("Cache-Control: max-age=1", "\(name): max-age= 600", "Age: 20"),
                .get().isForwarded,
            ])
        t.note(
            "Keys of structured fields are in lower case",
            [
                .get().answer("Cache-Control: no-store", "\(name): MaX-aGe=600"),
                .get().isForwarded,
            ])
        t.must(
            "The last of two equal keys holds (RFC 9651 §3.2)",
            [
                .get().answer("Cache-Control: no-store", "\(name): max-age=600, max-age=0"),
                .get().isForwarded,
            ])
        t.section("9213 §2.2")
        t.note(
            "The field goes on to clients",
            [
                .get().answer("Cache-Control: max-age=600", "\(name): max-age=100")
                    .gets("\(name): max-age=100"),
                .get().isHit.gets("\(name): max-age=100"),
            ])
        t.must(
            "Without the field Cache-Control holds",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get().isHit,
            ])
    }
}
