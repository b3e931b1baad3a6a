extension Tables {
    /// How a stored response is validated, and what a 304 changes of it.
    static let validation = Table.cases("9111 §4.3.1") { t in
        t.optimal(
            "What is stale is validated by its entity tag",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().isValidated(by: "If-None-Match: \"a\""),
            ])
        t.optimal(
            "A weak tag is sent as it is",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: W/\"a\"", "Age: 20"),
                .get().isValidated(by: "If-None-Match: W/\"a\""),
            ])
        t.optimal(
            "It is validated by its date of modification",
            [
                .get().answer("Cache-Control: max-age=1", "Last-Modified: {now-3000}", "Age: 20"),
                .get().isValidated(by: "If-Modified-Since: {now-3000}"),
            ])
        t.optimal(
            "It is validated by both",
            [
                .get().answer(
                    "Cache-Control: max-age=1", "ETag: \"a\"", "Last-Modified: {now-3000}",
                    "Age: 20"),
                .get().isValidated(by: "If-None-Match: \"a\"")
                    .asks("If-Modified-Since: {now-3000}"),
            ])
        t.must(
            "The date goes as the origin wrote it",
            [
                .get().answer(
                    "Cache-Control: max-age=1", "Last-Modified: {rfc850-3000}", "Age: 20"),
                .get().isValidated(by: "If-Modified-Since: {rfc850-3000}"),
            ])
        t.note(
            "What is no entity tag is not sent as one",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: a", "Age: 20"),
                .get().isForwarded.asks(without: "If-None-Match"),
            ])
        t.note(
            "A tag with bytes beyond ASCII is sent as it is",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"ü\"", "Age: 20"),
                .get().isValidated(by: "If-None-Match: \"ü\""),
            ])
        t.must(
            "The fields that Vary names go with it",
            [
                .get("X-Kind: 1").answer(
                    "Cache-Control: max-age=1", "ETag: \"a\"", "Vary: X-Kind", "Age: 20"),
                .get("X-Kind: 1").isValidated(by: "If-None-Match: \"a\"").asks("X-Kind: 1"),
            ])
        t.optimal(
            "Where none matches the request, all variants' tags are asked about",
            [
                .get("X-Kind: 1").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Vary: X-Kind"),
                .get("X-Kind: 2").isForwarded.asks("If-None-Match: \"a\""),
            ])
        t.optimal(
            "A 304 then selects one of them",
            [
                .get("X-Kind: 1").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Vary: X-Kind"),
                .get("X-Kind: 2").answer("ETag: \"a\"").isValidated(by: "If-None-Match: \"a\""),
            ])

        t.section("9111 §4.3.3")
        t.must(
            "A 200 in place of a 304 replaces what is stored",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer("Cache-Control: max-age=600", "ETag: \"b\"").isForwarded,
                .get().isHit(from: 2).gets("ETag: \"b\""),
            ])
        t.must(
            "A 404 in place of a 304 goes to the client",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer(status: "404 Not Found").isForwarded,
            ])
        for status in [
            "500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable",
            "504 Gateway Timeout",
        ] {
            t.must(
                "A \(status) goes to the client where nothing allows what is stale",
                [
                    .get().answer(
                        "Cache-Control: max-age=1, must-revalidate", "ETag: \"a\"", "Age: 20"),
                    .get().answer(status: status).isForwarded,
                ])
            t.optimal(
                "What is stored stays after a \(status)",
                [
                    .get().answer(
                        "Cache-Control: max-age=1, must-revalidate", "ETag: \"a\"", "Age: 20"),
                    .get().answer(status: status).isForwarded,
                    .get().isValidated(by: "If-None-Match: \"a\""),
                ])
        }
        t.must(
            "A 304 that selects nothing stored is not relayed to whom asked for the whole",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer("ETag: \"other\"", status: "304 Not Modified").status(304).asks(
                    times: 2),
            ])
        t.must(
            "A HEAD validates, too",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .head().isValidated(by: "If-None-Match: \"a\"").asks(method: "HEAD"),
            ])

        t.section("9111 §4.3.4")
        t.must(
            "A 304 makes what is stored fresh again",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"")
                    .isValidated(by: "If-None-Match: \"a\""),
                .get().isHit.gets("Cache-Control: max-age=600"),
            ])
        t.must(
            "A 304 without lifetime leaves the stored one, from now on",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "Age: 700"),
                .get().answer("ETag: \"a\"").isValidated(by: "If-None-Match: \"a\""),
                .get().isHit.gets(age: 0...30).gets("Cache-Control: max-age=600"),
            ])
        t.must(
            "A 304 without a validator freshens the only response stored",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "Age: 700"),
                .get().answer("X-New: 1").isValidated(by: "If-None-Match: \"a\""),
                .get().isHit.gets("X-New: 1"),
            ])
        t.must(
            "Fields that a 304 does not have stay",
            [
                .get().answer(
                    "Cache-Control: max-age=1", "Last-Modified: {now-3000}", "X-Kept: 1", "Age: 20"),
                .get().answer("Last-Modified: {now-3000}")
                    .isValidated(by: "If-Modified-Since: {now-3000}").gets("X-Kept: 1"),
            ])
        t.must(
            "Date becomes that of the 304",
            [
                .get().answer(
                    "Cache-Control: max-age=100", "ETag: \"a\"", "Date: {now-3000}"),
                .get().answer("ETag: \"a\"", "Date: {now-1}").isValidated(
                    by: "If-None-Match: \"a\""
                )
                .gets("Date: {now-1}"),
                .get().isHit.gets("Date: {now-1}"),
            ])
        t.must(
            "An Age of the 304 counts, that of the stored response does no more",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "Age: 700"),
                .get().answer("ETag: \"a\"", "Age: 100").isValidated(by: "If-None-Match: \"a\""),
                .get().isHit.gets(age: 100...130),
            ])
        t.must(
            "A 304 with no-store is used and freshens nothing for good",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer("Cache-Control: no-store", "ETag: \"a\"")
                    .isValidated(by: "If-None-Match: \"a\""),
                .get().isForwarded,
            ])
    }

    /// Which fields of a 304 replace those stored (RFC 9111 §3.2).
    static let updating = Table.cases("9111 §3.2") { t in
        let replaced: [(String, String, String)] = [
            ("Test-Header", "one", "two"), ("X-Test-Header", "one", "two"),
            ("Content-Foo", "one", "two"), ("X-Content-Foo", "one", "two"),
            ("Content-Location", "/one", "/two"), ("Content-Language", "de", "en"),
            ("Content-MD5", "rL0Y20zC+Fzt72VPzMSk2A==", "N7UdGUp1E+RbVvZSTy1R8g=="),
            ("Content-Security-Policy", "default-src 'self'", "default-src 'none'"),
            ("Content-Type", "text/plain", "text/plain;charset=utf-8"),
            ("Clear-Site-Data", "cache", "cookies"),
            ("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
            ("Public-Key-Pins", "one", "two"),
            ("Set-Cookie2", "a=b", "a=c"), ("X-Frame-Options", "deny", "sameorigin"),
            ("X-XSS-Protection", "1", "1; mode=block"), ("Link", "</a>", "</b>"),
        ]
        for (name, old, new) in replaced {
            t.must(
                "\(name) of a 304 replaces the stored one",
                [
                    .get().answer(
                        "Cache-Control: max-age=1", "ETag: \"a\"", "\(name): \(old)", "Age: 20"),
                    .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "\(name): \(new)")
                        .isValidated(by: "If-None-Match: \"a\"").gets("\(name): \(new)"),
                    .get().isHit.gets("\(name): \(new)"),
                ])
        }
        t.must(
            "All lines of a field are replaced by all of the 304",
            [
                .get().answer(
                    "Cache-Control: max-age=1", "ETag: \"a\"", "X-A: 1", "X-A: 2", "X-A: 3",
                    "Age: 20"),
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "X-A: 4", "X-A: 5")
                    .isValidated(by: "If-None-Match: \"a\"").gets("X-A: 4, 5"),
                .get().isHit.gets("X-A: 4, 5"),
            ])
        t.note(
            "Vary never comes to name less, and names more where the 304 does",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Vary: X-One", "Age: 20"),
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "Vary: X-One, X-Two")
                    .isValidated(by: "If-None-Match: \"a\"")
                    .gets("Vary: X-One, X-Two"),
            ])
        t.must(
            "Content-Length stays",
            [
                .get().answer(
                    "Cache-Control: max-age=1", "ETag: \"a\"", "Content-Length: 5", "Age: 20",
                    content: "12345"),
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "Content-Length: 10")
                    .isValidated(by: "If-None-Match: \"a\"").gets("Content-Length: 5"),
                .get().isHit.gets("Content-Length: 5"),
            ])
        for (name, old, new) in [
            ("Content-Encoding", "gzip", "br"), ("Content-Range", "one", "bytes 0-1/2"),
        ] {
            t.note(
                "\(name) stays, for it tells how the content is stored",
                [
                    .get().answer(
                        "Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20",
                        name == "Content-Range" ? "X-No: 1" : "\(name): \(old)"),
                    name == "Content-Range"
                        ? .get().answer(
                            "Cache-Control: max-age=600", "ETag: \"a\"", "\(name): \(new)"
                        )
                        .isValidated(by: "If-None-Match: \"a\"").lacks(name)
                        : .get().answer(
                            "Cache-Control: max-age=600", "ETag: \"a\"", "\(name): \(new)"
                        )
                        .isValidated(by: "If-None-Match: \"a\"").gets("\(name): \(old)"),
                ])
        }
        for name in ["Connection", "Keep-Alive", "Upgrade", "Proxy-Authenticate", "TE"] {
            t.must(
                "\(name) of a 304 is not stored",
                [
                    .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                    .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", "\(name): x-none")
                        .isValidated(by: "If-None-Match: \"a\""),
                    .get().isHit.lacks(name == "Connection" ? "X-None" : name),
                ])
        }
        t.must(
            "A new ETag of a 200 replaces the old one",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer("Cache-Control: max-age=1", "ETag: \"b\"", "Age: 20").isForwarded,
                .get().isValidated(by: "If-None-Match: \"b\"", from: 2),
            ])
    }

    /// HEAD, and what its answer does to what a GET stored.
    static let headMethod = Table.cases("9111 §4.3.5") { t in
        t.optimal(
            "A HEAD is answered from what a GET stored",
            [
                .get().answer("Cache-Control: max-age=600", "X-A: 1"),
                .head().isHit.gets("X-A: 1"),
            ])
        t.must(
            "With the length that a GET would have (9110 §9.3.2)",
            [
                .get().answer("Cache-Control: max-age=600", "Content-Length: 5", content: "12345"),
                .head().isHit.gets("Content-Length: 5"),
            ])
        t.must(
            "A HEAD stores nothing that a GET could get",
            [
                .head().answer("Cache-Control: max-age=600"),
                .get().isForwarded,
            ])
        t.note(
            "A HEAD is asked as HEAD where what is stored is stale",
            [
                .get().answer("Cache-Control: max-age=1", "Age: 20", "ETag: \"a\""),
                .head().answer(status: "200 OK").isForwarded.asks(method: "HEAD"),
            ])
        t.optimal(
            "Its 200 freshens what is stored, if validators and length are the same",
            [
                .get().answer(
                    "Cache-Control: max-age=1", "Age: 20", "ETag: \"a\"", "Content-Length: 5",
                    content: "12345"),
                .head().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Length: 5", "X-New: 1",
                    content: "12345"
                ).isForwarded,
                .get().isHit.gets("X-New: 1").gets(content: "12345"),
            ])
        t.must(
            "Another length invalidates what is stored",
            [
                .get().answer("Cache-Control: max-age=600", "Content-Length: 5", content: "12345"),
                .head("Cache-Control: no-cache").answer(
                    "Cache-Control: max-age=600", "Content-Length: 7", content: "1234567"
                ).isForwarded,
                .get().isForwarded,
            ])
        t.must(
            "Another entity tag invalidates what is stored",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\""),
                .head("Cache-Control: no-cache").answer("Cache-Control: max-age=600", "ETag: \"b\"")
                    .isForwarded,
                .get().isForwarded,
            ])
        t.note(
            "Fields that the HEAD's answer does not have stay",
            [
                .get().answer("Cache-Control: max-age=1", "Age: 20", "ETag: \"a\"", "X-Kept: 1"),
                .head().answer("Cache-Control: max-age=600", "ETag: \"a\"").isForwarded,
                .get().isHit.gets("X-Kept: 1"),
            ])
        t.note(
            "A 410 to a HEAD is not a new head for what is stored",
            [
                .get().answer("Cache-Control: max-age=1", "Age: 20", "ETag: \"a\"", "X-A: 1"),
                .head().answer("Cache-Control: max-age=600", "X-A: 2", status: "410 Gone")
                    .isForwarded,
                .get().isForwarded,
            ])
    }
}
