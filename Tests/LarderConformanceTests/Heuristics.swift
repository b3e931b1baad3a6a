extension Tables {
    /// Lifetimes that a response does not tell.
    static let heuristics = Table.cases("9111 §4.2.2") { t in
        let reusable = [
            "200 OK", "203 Non-Authoritative Information", "204 No Content",
            "300 Multiple Choices", "301 Moved Permanently", "308 Permanent Redirect",
            "404 Not Found", "405 Method Not Allowed", "410 Gone", "414 URI Too Long",
            "501 Not Implemented",
        ]
        for status in reusable {
            t.optimal(
                "A \(status) that was modified a day ago is fresh for a while",
                [
                    .get().answer("Last-Modified: {now-86400}", status: status),
                    .get().isHit,
                ])
        }
        let others = [
            "201 Created", "202 Accepted", "302 Found", "303 See Other", "307 Temporary Redirect",
            "400 Bad Request", "403 Forbidden", "500 Internal Server Error", "502 Bad Gateway",
            "503 Service Unavailable", "504 Gateway Timeout", "599 Odd",
        ]
        for status in others {
            t.must(
                "A \(status) is not fresh by heuristic",
                [
                    .get().answer("Last-Modified: {now-86400}", status: status),
                    .get().answer(status: status).isForwarded,
                ])
        }
        t.optimal(
            "With public, any final status may be fresh by heuristic",
            [
                .get().answer(
                    "Last-Modified: {now-86400}", "Cache-Control: public", status: "599 Odd"),
                .get().isHit,
            ])
        t.must(
            "The heuristic gives way to an explicit lifetime",
            [
                .get().answer("Last-Modified: {now-86400}", "Cache-Control: max-age=0"),
                .get().isForwarded,
            ])
        t.must(
            "It gives way to an Expires of the past, too",
            [
                .get().answer("Last-Modified: {now-86400}", "Expires: {now-10}"),
                .get().isForwarded,
            ])
        t.must(
            "It gives way to an invalid Expires",
            [
                .get().answer("Last-Modified: {now-86400}", "Expires: 0"),
                .get().isForwarded,
            ])
        for (seconds, isFresh) in [
            (5, false), (60, true), (300, true), (600, true), (1200, true), (1800, true),
            (3600, true), (43_200, true), (86_400, true),
        ] {
            t.note(
                "What was modified \(seconds) s before is \(isFresh ? "fresh" : "stale") after 1 s",
                [
                    .get().answer("Last-Modified: {now-\(seconds)}", "Date: {now}", "Age: 1"),
                    isFresh ? .get().isHit : .get().isForwarded,
                ])
        }
        t.note(
            "A tenth of the time since the modification is the lifetime: younger",
            [
                .get().answer("Last-Modified: {now-10000}", "Date: {now}", "Age: 900"),
                .get().isHit,
            ])
        t.note(
            "A tenth of the time since the modification is the lifetime: older",
            [
                .get().answer("Last-Modified: {now-10000}", "Date: {now}", "Age: 1100"),
                .get().isForwarded,
            ])
        t.note(
            "A day is the longest heuristic lifetime",
            [
                .get().answer("Last-Modified: {now-99999999}", "Date: {now}", "Age: 90000"),
                .get().isForwarded,
            ])
        t.note(
            "A Last-Modified to come makes nothing fresh",
            [
                .get().answer("Last-Modified: {now+86400}", "Date: {now}"),
                .get().isForwarded,
            ])
        t.note(
            "An invalid Last-Modified makes nothing fresh",
            [
                .get().answer("Last-Modified: yesterday"),
                .get().isForwarded,
            ])
        t.note(
            "A query does not forbid the heuristic",
            [
                .get(at: "?a=1").answer("Last-Modified: {now-86400}"),
                .get(at: "?a=1").isHit,
            ])
        t.note(
            "An attachment is fresh by heuristic like anything else",
            [
                .get().answer(
                    "Last-Modified: {now-100000}", "Content-Disposition: attachment; filename=a.txt"
                ),
                .get().isHit,
            ])
    }

    /// Status codes with an explicit lifetime.
    static let statusCodes = Table.cases("9111 §3") { t in
        let codes = [
            "200 OK", "201 Created", "202 Accepted", "203 Non-Authoritative Information",
            "204 No Content", "205 Reset Content", "226 IM Used", "299 Odd",
            "300 Multiple Choices", "301 Moved Permanently", "302 Found", "303 See Other",
            "307 Temporary Redirect", "308 Permanent Redirect", "400 Bad Request",
            "403 Forbidden", "404 Not Found", "405 Method Not Allowed", "406 Not Acceptable",
            "410 Gone", "414 URI Too Long", "418 Odd",
            "451 Unavailable For Legal Reasons", "499 Odd", "500 Internal Server Error",
            "501 Not Implemented", "502 Bad Gateway", "503 Service Unavailable",
            "504 Gateway Timeout", "599 Odd",
        ]
        for status in ["408 Request Timeout", "421 Misdirected Request"] {
            t.note(
                "A \(status) is about a connection, and not stored",
                [
                    .get().answer("Cache-Control: max-age=600", status: status),
                    .get().isForwarded,
                ])
        }
        for status in codes {
            let content = status.hasPrefix("20") && "45".contains(status.dropFirst(2).prefix(1))
            t.optimal(
                "A \(status) with a lifetime is reused",
                [
                    .get().answer(
                        "Cache-Control: max-age=600", status: status, content: content ? "" : nil),
                    .get().isHit,
                ])
            t.must(
                "A \(status) whose lifetime is over is not",
                [
                    .get().answer(
                        "Expires: {now-5000}", "Last-Modified: {now-100000}", status: status,
                        content: content ? "" : nil),
                    .get().answer(status: status, content: content ? "" : nil).isForwarded,
                ])
        }
        t.must(
            "A 304 that nobody asked for is not stored",
            [
                .get("If-None-Match: \"a\"").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", status: "304 Not Modified"),
                .get().isForwarded,
            ])

        t.section("9111 §5.2.2.3")
        t.must(
            "must-understand keeps out a status that is not understood",
            [
                .get().answer("Cache-Control: max-age=600, must-understand", status: "599 Odd"),
                .get().isForwarded,
            ])
        t.must(
            "Beside no-store, too",
            [
                .get().answer(
                    "Cache-Control: max-age=600, no-store, must-understand", status: "599 Odd"),
                .get().isForwarded,
            ])
        t.optimal(
            "Where the status is understood, no-store beside it is passed over",
            [
                .get().answer("Cache-Control: max-age=600, no-store, must-understand"),
                .get().isHit,
            ])
        t.optimal(
            "A 404 is understood",
            [
                .get().answer(
                    "Cache-Control: must-understand, no-store, max-age=600", status: "404 Not Found"
                ),
                .get().isHit,
            ])
    }
}
