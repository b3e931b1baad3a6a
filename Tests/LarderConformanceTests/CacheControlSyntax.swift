extension Tables {
    /// How `Cache-Control` is read: lists, lines, case, quoting, and what is no number.
    static let cacheControlSyntax = Table.cases("9111 §5.2") { t in
        t.optimal(
            "The name of a directive is compared without regard to case",
            [
                .get().answer("Cache-Control: Max-AGE=600"),
                .get().isHit,
            ])
        t.must(
            "The same holds for what forbids",
            [
                .get().answer("Cache-Control: NO-Store, max-age=600"),
                .get().isForwarded,
            ])
        t.optimal(
            "An unknown directive is passed over",
            [
                .get().answer("Cache-Control: surprise, max-age=600"),
                .get().isHit,
            ])
        t.optimal(
            "So is one with a value, and what stands after it counts",
            [
                .get().answer("Cache-Control: surprise=7, other=\"a b\", max-age=600"),
                .get().isHit,
            ])
        t.must(
            "What a quoted value holds is no directive, if the real one follows",
            [
                .get().answer("Cache-Control: note=\"max-age=600\", max-age=1", "Age: 5"),
                .get().isForwarded,
            ])
        t.must(
            "What a quoted value holds is no directive, if the real one precedes",
            [
                .get().answer("Cache-Control: max-age=1, note=\"max-age=600\"", "Age: 5"),
                .get().isForwarded,
            ])
        t.optimal(
            "A quoted no-store forbids nothing",
            [
                .get().answer("Cache-Control: note=\"a, no-store, b\", max-age=600"),
                .get().isHit,
            ])
        t.optimal(
            "An escaped quotation mark does not end a quoted value",
            [
                .get().answer("Cache-Control: note=\"a\\\", no-store, \\\"b\", max-age=600"),
                .get().isHit,
            ])
        t.must(
            "A no-store behind a quoted value with escapes is seen",
            [
                .get().answer("Cache-Control: note=\"a\\\"b\", no-store, max-age=600"),
                .get().isForwarded,
            ])
        t.optimal(
            "Several lines are one list",
            [
                .get().answer("Cache-Control: public", "Cache-Control: max-age=600"),
                .get().isHit,
            ])
        t.must(
            "A directive in a second line counts",
            [
                .get().answer("Cache-Control: max-age=600", "Cache-Control: no-store"),
                .get().isForwarded,
            ])
        t.optimal(
            "Empty members of the list are passed over (9110 §5.6.1)",
            [
                .get().answer("Cache-Control: , ,, max-age=600,"),
                .get().isHit,
            ])
        t.optimal(
            "Space and tabs around members are passed over",
            [
                .get().answer("Cache-Control:  \t public\t ,\t max-age=600 \t"),
                .get().isHit,
            ])
        t.must(
            "An unbalanced quotation mark hides no prohibition that stands before it",
            [
                .get().answer("Cache-Control: no-store, note=\"never closed, max-age=600"),
                .get().isForwarded,
            ])

        t.section("9111 §1.2.2")
        t.optimal(
            "Leading zeros are part of a number of seconds",
            [
                .get().answer("Cache-Control: max-age=000600"),
                .get().isHit,
            ])
        for seconds in ["2147483647", "2147483648", "2147483649", "4294967296", "99999999999"] {
            t.optimal(
                "\(seconds) seconds are a very long time",
                [
                    .get().answer("Cache-Control: max-age=\(seconds)"),
                    .get().isHit,
                ])
        }
        t.optimal(
            "More seconds than 64 bits hold are a very long time",
            [
                .get().answer("Cache-Control: max-age=99999999999999999999999999"),
                .get().isHit,
            ])
        t.must(
            "A negative number of seconds makes nothing fresh",
            [
                .get().answer("Cache-Control: max-age=-600"),
                .get().isForwarded,
            ])
        t.must(
            "A number in apostrophes is none",
            [
                .get().answer("Cache-Control: max-age='600'"),
                .get().isForwarded,
            ])
        for value in ["a600", "600a", "600s", "0x600", "+600", "6e2", "600 700"] {
            t.note(
                "\(value) is no number of seconds: stale",
                [
                    .get().answer("Cache-Control: max-age=\(value)"),
                    .get().isForwarded,
                ])
        }
        for value in ["600.0", "600.5"] {
            t.note(
                "A fraction, \(value), is no number of seconds: stale",
                [
                    .get().answer("Cache-Control: max-age=\(value)"),
                    .get().isForwarded,
                ])
        }
        t.note(
            "A max-age without value is invalid: stale",
            [
                .get().answer("Cache-Control: max-age"),
                .get().isForwarded,
            ])
        t.note(
            "An empty value is invalid: stale",
            [
                .get().answer("Cache-Control: max-age="),
                .get().isForwarded,
            ])
        t.note(
            "An invalid max-age is stale even beside an Expires to come",
            [
                .get().answer("Cache-Control: max-age=soon", "Expires: {now+600}"),
                .get().isForwarded,
            ])

        t.section("9111 §5.2.2.1")
        t.note(
            "The quoted form of max-age is understood, too",
            [
                .get().answer("Cache-Control: max-age=\"600\""),
                .get().isHit,
            ])
        t.note(
            "Space before the equals sign makes it another directive",
            [
                .get().answer("Cache-Control: max-age =600"),
                .get().isForwarded,
            ])
        t.note(
            "Space behind the equals sign makes the value invalid",
            [
                .get().answer("Cache-Control: max-age= 600"),
                .get().isForwarded,
            ])

        t.section("9111 §5.2.2.4")
        for (name, value) in [
            ("Content-Encoding", "x-odd"), ("Content-Type", "text/odd"), ("Vary", "X-A"),
        ] {
            t.must(
                "What no-cache names is sent after validation alone, and not left out: \(name)",
                [
                    .get().answer(
                        "Cache-Control: max-age=600, no-cache=\"\(name)\"", "ETag: \"a\"",
                        "\(name): \(value)"),
                    .get().isValidated(by: "If-None-Match: \"a\"").gets("\(name): \(value)"),
                ])
        }
        t.optimal(
            "Where it names what the rest does without, the rest is sent",
            [
                .get().answer("Cache-Control: max-age=600, no-cache=\"x-a\"", "X-A: 1"),
                .get().isHit.lacks("X-A"),
            ])

        t.section("9111 §4.2.1")
        let conflicts = [
            ["Cache-Control: max-age=600, max-age=1"], ["Cache-Control: max-age=1, max-age=600"],
            ["Cache-Control: max-age=600", "Cache-Control: max-age=1"],
            ["Cache-Control: max-age=1", "Cache-Control: max-age=600"],
        ]
        for lines in conflicts {
            var step = Step.get()
            step.answer.fields = lines + ["Age: 5"]
            let words = lines.map { $0.dropFirst(15) }.joined(separator: " / ")
            t.note("Of two lifetimes the shorter holds: \(words)", [step, .get().isForwarded])
        }
        t.note(
            "The same lifetime twice is no conflict",
            [
                .get().answer("Cache-Control: max-age=600, max-age=600"),
                .get().isHit,
            ])
        t.must(
            "Of contradicting directives the most restrictive holds",
            [
                .get().answer("Cache-Control: public, private, max-age=600"),
                .get().isForwarded,
            ])
    }
}
