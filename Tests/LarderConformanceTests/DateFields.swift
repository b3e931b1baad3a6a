extension Tables {
    /// `Age` as it is written.
    static let age = Table.cases("9111 §5.1") { t in
        for value in ["old", "-7200", "7200.0", "", "7e3", "+7200", "0x2000"] {
            t.note(
                "Age: \(value) is invalid, and passed over",
                [
                    .get().answer("Cache-Control: max-age=600", "Age: \(value)"),
                    .get().isHit.gets(age: 0...30),
                ])
        }
        for value in ["7200;a=b", "7200;a=1", "7200 s"] {
            t.note(
                "Age: \(value) is invalid, and passed over",
                [
                    .get().answer("Cache-Control: max-age=600", "Age: \(value)"),
                    .get().isHit,
                ])
        }
        for value in ["2147483647", "2147483648", "2147483649", "99999999999999999999999"] {
            t.must(
                "Age: \(value) is very old",
                [
                    .get().answer("Cache-Control: max-age=600", "Age: \(value)"),
                    .get().isForwarded,
                ])
        }
        t.optimal(
            "Age: 0 is young",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 0"),
                .get().isHit,
            ])
        t.optimal(
            "Leading zeros do not change it",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 0030"),
                .get().isHit.gets(age: 30...60),
            ])
        t.must(
            "The first member of a list counts: old",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 7200, 0"),
                .get().isForwarded,
            ])
        t.must(
            "The first line counts: old",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 7200", "Age: 0"),
                .get().isForwarded,
            ])
        t.optimal(
            "The first member of a list counts: young",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 0, 7200"),
                .get().isHit,
            ])
        t.optimal(
            "The first line counts: young",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 0", "Age: 7200"),
                .get().isHit,
            ])
        t.optimal(
            "The same twice in a list",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 0, 0"),
                .get().isHit,
            ])
        t.optimal(
            "The same twice in two lines",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 300", "Age: 300"),
                .get().isHit.gets(age: 300...330),
            ])
        t.must(
            "A reused response has one Age line",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 10", "Age: 20"),
                .get().isHit.gets(age: 10...40),
            ])
        t.note(
            "What is relayed keeps the origin's Age",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 30").isForwarded.gets(
                    age: 30...60)
            ])
    }

    /// `Expires` as it is written, and the three forms of dates.
    static let expires = Table.cases("9110 §5.6.7") { t in
        let valid: [(String, String)] = [
            ("beyond 2038", "Tue, 19 Jan 2038 14:14:08 GMT"),
            ("far away", "Sun, 21 Nov 2286 04:46:39 GMT"),
            ("in the obsolete form of RFC 850", "Thursday, 18-Aug-50 02:01:18 GMT"),
            ("in the form of asctime", "Thu Aug  8 02:01:18 2050"),
            ("in the form of asctime with two digits", "Thu Aug 18 02:01:18 2050"),
            ("with an unusual weekday", "THU, 18 Aug 2050 02:01:18 GMT"),
            ("with an unusual month", "Thu, 18 AUG 2050 02:01:18 GMT"),
            ("with an unusual zone", "Thu, 18 Aug 2050 02:01:18 gMT"),
            ("on a leap day", "Tue, 29 Feb 2056 00:00:00 GMT"),
            ("in a leap second", "Thu, 30 Jun 2050 23:59:60 GMT"),
        ]
        for (what, date) in valid {
            t.optimal(
                "A date \(what) is understood",
                [
                    .get().answer("Expires: \(date)"),
                    .get().isHit,
                ])
        }
        t.must(
            "A two-digit year more than 50 years ahead is of the past",
            [
                .get().answer("Expires: Friday, 18-Aug-89 02:01:18 GMT"),
                .get().isForwarded,
            ])
        t.optimal(
            "A date in another form holds as a number of seconds from Date",
            [
                .get().answer("Expires: {rfc850+600}", "Date: {asctime}"),
                .get().isHit,
            ])

        t.section("9111 §5.3")
        let invalid: [(String, String)] = [
            ("a number", "0"), ("a number of seconds", "600"), ("empty", ""),
            ("a word", "never"), ("in another zone", "Thu, 18 Aug 2050 02:01:18 UTC"),
            ("in a zone far away", "Thu, 18 Aug 2050 02:01:18 AEST"),
            ("with an offset", "Thu, 18 Aug 2050 02:01:18 +0000"),
            ("without a zone", "Thu, 18 Aug 2050 02:01:18"),
            ("with a year of two digits", "Thu, 18 Aug 50 02:01:18 GMT"),
            ("without the comma", "Thu 18 Aug 2050 02:01:18 GMT"),
            ("with several spaces", "Thu, 18  Aug  2050 02:01:18 GMT"),
            ("with dashes", "Thu, 18-Aug-2050 02:01:18 GMT"),
            ("with points in the time", "Thu, 18 Aug 2050 02.01.18 GMT"),
            ("with an hour of one digit", "Thu, 18 Aug 2050 2:01:18 GMT"),
            ("without seconds", "Thu, 18 Aug 2050 02:01 GMT"),
            ("on an impossible day", "Thu, 31 Feb 2050 02:01:18 GMT"),
            ("on a leap day of no leap year", "Tue, 29 Feb 2050 02:01:18 GMT"),
            ("at an impossible hour", "Thu, 18 Aug 2050 24:01:18 GMT"),
            ("in ISO 8601", "2050-08-18T02:01:18Z"),
            ("in two lines", "Thu, 18 Aug 2050 2:01:18 GMT\r\nExpires: x"),
        ]
        for (what, date) in invalid {
            t.must(
                "A date \(what) is invalid: stale",
                [
                    .get().answer("Expires: \(date)", "Last-Modified: {now-100000}"),
                    .get().isForwarded,
                ])
        }
        t.note(
            "Of two lines the earlier date counts (9111 §4.2.1): behind",
            [
                .get().answer("Expires: {now+600}", "Expires: {now-900}"),
                .get().isForwarded,
            ])
        t.note(
            "Of two lines the earlier date counts (9111 §4.2.1): before",
            [
                .get().answer("Expires: {now-900}", "Expires: {now+600}"),
                .get().isForwarded,
            ])
    }

    /// `Pragma` as far as it is still known.
    static let pragma = Table.cases("9111 §5.4") { t in
        t.note(
            "In a request without Cache-Control, Pragma: no-cache is taken for no-cache",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Pragma: no-cache").isForwarded,
            ])
        t.note(
            "Beside a Cache-Control it means nothing",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Pragma: no-cache", "Cache-Control: max-age=100").isHit,
            ])
        t.note(
            "Another Pragma means nothing",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Pragma: anything").isHit,
            ])
        t.note(
            "In a response it never meant anything",
            [
                .get().answer("Cache-Control: max-age=600", "Pragma: no-cache"),
                .get().isHit,
            ])
        t.note(
            "Nor for the heuristic",
            [
                .get().answer("Last-Modified: {now-10000}", "Pragma: no-cache"),
                .get().isHit,
            ])
        t.optimal(
            "A Pragma that is not known changes nothing",
            [
                .get().answer("Cache-Control: max-age=600", "Pragma: anything"),
                .get().isHit,
            ])
        t.must(
            "Pragma goes on to the origin",
            [
                .get("Pragma: no-cache").isForwarded.asks("Pragma: no-cache")
            ])
    }
}
