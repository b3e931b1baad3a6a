extension Tables {
    /// Which fields are stored and sent on.
    static let storedFields = Table.cases("9111 §3.1") { t in
        let stored: [(String, String)] = [
            ("Test-Header", "one"), ("X-Test-Header", "one"), ("Content-Foo", "one"),
            ("X-Content-Foo", "one"), ("Content-Encoding", "x-odd"), ("Content-Location", "/a"),
            ("Content-MD5", "rL0Y20zC+Fzt72VPzMSk2A=="), ("Content-Language", "de"),
            ("Content-Security-Policy", "default-src 'self'"), ("Content-Type", "text/plain"),
            ("Clear-Site-Data", "cookies"), ("ETag", "\"a\""), ("Expires", "{now+900}"),
            ("Last-Modified", "{now-900}"), ("Public-Key-Pins", "one"), ("Set-Cookie", "a=b"),
            ("Set-Cookie2", "a=b"), ("Strict-Transport-Security", "max-age=1"),
            ("WWW-Authenticate", "Basic realm=\"a\""), ("X-Frame-Options", "deny"),
            ("X-XSS-Protection", "1"), ("Accept-Ranges", "bytes"), ("Link", "</a>; rel=b"),
            ("Allow", "GET, POST"), ("Retry-After", "20"), ("Server", "odd/1"),
            ("Cache-Groups", "\"a\""), ("No-Vary-Search", "params"),
            ("Content-Disposition", "inline"),
        ]
        for (name, value) in stored {
            t.must(
                "\(name) is stored and sent on",
                [
                    .get().answer("Cache-Control: max-age=600", "\(name): \(value)")
                        .gets("\(name): \(value)"),
                    .get().isHit.gets("\(name): \(value)"),
                ])
        }
        t.must(
            "Content-Length is stored and sent on",
            [
                .get().answer("Cache-Control: max-age=600", "Content-Length: 5", content: "12345"),
                .get().isHit.gets("Content-Length: 5"),
            ])
        let dropped: [(String, String)] = [
            ("Keep-Alive", "timeout=5"), ("Proxy-Authenticate", "Basic realm=\"a\""),
            ("Proxy-Authentication-Info", "a=b"), ("Proxy-Authorization", "Basic YTpi"),
            ("Proxy-Connection", "keep-alive"), ("TE", "trailers"), ("Upgrade", "odd/1"),
        ]
        for (name, value) in dropped {
            t.must(
                "\(name) is not stored",
                [
                    .get().answer("Cache-Control: max-age=600", "\(name): \(value)"),
                    .get().isHit.lacks(name),
                ])
        }
        t.must(
            "Nor Connection, and what it names",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "Connection: x-a, X-B", "X-A: 1", "X-B: 2",
                    "X-C: 3"
                ).gets("X-C: 3").lacks("X-A").lacks("X-B"),
                .get().isHit.gets("X-C: 3").lacks("X-A").lacks("X-B"),
            ])
        t.must(
            "Nor what a second line of it names",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "Connection: x-a", "Connection: x-b", "X-A: 1",
                    "X-B: 2"),
                .get().isHit.lacks("X-A").lacks("X-B"),
            ])
        t.must(
            "A Connection that names what a cache needs is not believed",
            [
                .get().answer(
                    "Connection: cache-control", "Cache-Control: no-store", "ETag: \"a\""),
                .get().isForwarded,
            ])
        t.must(
            "Fields keep their case, their order and their repeats",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "x-ODD-case: A", "X-Twice: 2", "X-Twice: 1",
                    "X-Twice: 2"),
                .get().isHit.gets(line: "x-ODD-case: A").gets("X-Twice: 2, 1, 2"),
            ])
        t.must(
            "A value keeps its inner space and its odd bytes",
            [
                .get().answer("Cache-Control: max-age=600", "X-Odd: a  b\tc ü\u{80} \\ \""),
                .get().isHit.gets(line: "X-Odd: a  b\tc ü\u{80} \\ \""),
            ])
        t.must(
            "A Date is added where the origin sent none (9110 §6.6.1)",
            [
                .get().answer("Cache-Control: max-age=600", "-Date").getsDate,
                .get().isHit,
            ])
        t.must(
            "A Warning of an old origin is no reason for anything (9111 §5.5)",
            [
                .get().answer("Cache-Control: max-age=600", "Warning: 110 a \"stale\""),
                .get().isHit,
            ])

        t.section("9111 §3")
        t.must(
            "A trailer comes with the stored response, or not at all (9110 §6.5)",
            [
                .get().answer("Cache-Control: max-age=600", "Trailer: X-T").trailers("X-T: 1")
                    .gets(trailer: "X-T: 1"),
                .get().isHit.lacks("X-T"),
            ])
        t.optimal(
            "A stored trailer is sent on",
            [
                .get().answer("Cache-Control: max-age=600", "Trailer: X-T").trailers("X-T: 1"),
                .get().isHit.gets(trailer: "X-T: 1"),
            ])
        t.must(
            "A trailer is no header field: it forbids nothing (9110 §6.5.1)",
            [
                .get().answer("Cache-Control: max-age=600", "Trailer: Cache-Control")
                    .trailers("Cache-Control: no-store"),
                .get().isHit,
            ])
        t.must(
            "Nor does it make anything fresh",
            [
                .get().answer("Trailer: Cache-Control").trailers("Cache-Control: max-age=600"),
                .get().isForwarded,
            ])
    }

    /// Interim responses.
    static let interim = Table.cases("9110 §15.2") { t in
        t.must(
            "A 103 goes on to the client, and the final response is stored",
            [
                .get().answer("Cache-Control: max-age=600")
                    .interim("103 Early Hints", "Link: </a>; rel=preload", "X-Hint: 1")
                    .gets(
                        interim: "HTTP/1.1 103 Early Hints", "Link: </a>; rel=preload", "X-Hint: 1"),
                .get().isHit.getsNoInterim.lacks("X-Hint"),
            ])
        t.must(
            "A 102 goes on to the client",
            [
                .get().answer("Cache-Control: max-age=600").interim("102 Processing")
                    .gets(interim: "HTTP/1.1 102 Processing"),
                .get().isHit,
            ])
        t.must(
            "Several go on, in order",
            [
                .get().answer("Cache-Control: max-age=600").interim("102 Processing")
                    .interim("103 Early Hints", "Link: </a>").interim(
                        "103 Early Hints", "Link: </b>"
                    )
                    .gets(
                        interim: "HTTP/1.1 102 Processing", "HTTP/1.1 103 Early Hints",
                        "Link: </a>",
                        "HTTP/1.1 103 Early Hints", "Link: </b>"),
                .get().isHit,
            ])
        t.must(
            "An unknown interim response goes on, too",
            [
                .get().answer().interim("142 Odd", "X-A: 1")
                    .gets(interim: "HTTP/1.1 142 Odd", "X-A: 1")
            ])
        t.must(
            "The fields of an interim response are not those of the final one",
            [
                .get().answer("X-Final: 1").interim(
                    "103 Early Hints", "Cache-Control: max-age=600"),
                .get().isForwarded,
            ])
        t.must(
            "A 103 before a 304 that validates goes on",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().interim("103 Early Hints", "Link: </a>").answer("ETag: \"a\"")
                    .isValidated(by: "If-None-Match: \"a\"")
                    .gets(interim: "HTTP/1.1 103 Early Hints", "Link: </a>"),
            ])
    }

    /// What an intermediary does with messages.
    static let forwarding = Table.cases("9110 §7.6") { t in
        t.must(
            "A request gets a Via (§7.6.3)",
            [
                .get("Via: 1.0 first").isForwarded.asks(containing: "Via: 1.0 first, 1.1 larder")
            ])
        t.must(
            "What Connection names is not forwarded (§7.6.1)",
            [
                .get("Connection: x-a", "X-A: 1", "X-B: 2").isForwarded.asks(without: "X-A")
                    .asks("X-B: 2")
            ])
        for (name, value) in [
            ("Proxy-Authorization", "Basic YTpi"), ("Proxy-Connection", "keep-alive"),
            ("Keep-Alive", "timeout=5"), ("TE", "trailers"), ("Upgrade", "odd/1"),
        ] {
            t.must(
                "\(name) of a client is not forwarded",
                [
                    .get("\(name): \(value)").isForwarded.asks(without: name)
                ])
        }
        t.must(
            "Max-Forwards of TRACE ends at zero (§7.6.2)",
            [
                .send("TRACE", "Max-Forwards: 0").status(200).asks(times: 0)
            ])
        t.must(
            "Max-Forwards of OPTIONS ends at zero (§7.6.2)",
            [
                .send("OPTIONS", "Max-Forwards: 0").status(200).asks(times: 0)
            ])
        t.must(
            "Above zero it becomes less",
            [
                .send("OPTIONS", "Max-Forwards: 5").isForwarded.asks("Max-Forwards: 4")
            ])
        t.must(
            "Other methods do not have it",
            [
                .get("Max-Forwards: 0").isForwarded
            ])
        t.must(
            "Unknown methods go on as they are",
            [
                .send("FROBNICATE", "X-A: 1").isForwarded.asks(method: "FROBNICATE")
            ])
        t.must(
            "Unknown fields go on as they are",
            [
                .get("X-ODD: a  b").isForwarded.asks("X-ODD: a  b")
            ])
        t.must(
            "Cookies and credentials go on",
            [
                .get("Cookie: a=b", "Authorization: Basic YTpi").isForwarded.asks("Cookie: a=b")
                    .asks("Authorization: Basic YTpi")
            ])
        t.must(
            "Range goes on where nothing is stored (§14.2)",
            [
                .get("Range: bytes=0-1").answer(
                    "Content-Range: bytes 0-1/10", status: "206 Partial Content", content: "01"
                ).isForwarded.asks("Range: bytes=0-1").status(206)
            ])
        t.must(
            "A relayed response has Via",
            [
                .get().isForwarded.gets(containing: "Via: 1.1 larder")
            ])
        t.must(
            "An unknown status goes on as it is (§15)",
            [
                .get().answer(status: "499 Odd").isForwarded.status(499)
            ])
        t.must(
            "A 205 has no content (§15.3.6)",
            [
                .get().answer("Content-Length: 0", status: "205 Reset Content", content: "")
                    .isForwarded
            ])

        t.section("9112 §6.3")
        t.must(
            "A response whose length does not come true is cut, not ended",
            [
                .get().answer(content: "0123456789").breaksOff(after: 3).isCut
            ])
        t.must(
            "Two lengths that differ are 502",
            [
                .get().answer("Content-Length: 3", "Content-Length: 4", content: "abc").status(502)
            ])
        t.must(
            "A length and chunks together are refused, and nothing is stored",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "Content-Length: 3", "Transfer-Encoding: chunked",
                    content: "3\r\nabc\r\n0\r\n\r\n"
                ).status(502),
                .get().answer("Cache-Control: max-age=600").isForwarded,
            ])
        t.section("9112 §5.2")
        t.must(
            "A folded line of a response is unfolded",
            [
                .get().answer("X-Folded: a\r\n b").isForwarded.gets(containing: "X-Folded: a  ")
            ])
        t.section("9112 §4")
        t.must(
            "A status line without a reason is one",
            [
                .get().answer("Cache-Control: max-age=600", status: "200 "),
                .get().isHit,
            ])
    }
}
