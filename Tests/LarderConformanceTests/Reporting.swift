extension Tables {
    /// `Cache-Status`, member by member.
    static let cacheStatus = Table.cases("9211 §2.1") { t in
        t.optimal(
            "A hit says hit, and how long it is fresh",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 100"),
                .get().isHit.says("hit").says(containing: "ttl=4").lacks("X-None"),
            ])
        t.must(
            "A hit says no fwd",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get().isHit.says("hit").saysNo("fwd"),
            ])
        t.section("9211 §2.2")
        t.optimal(
            "Nothing stored is fwd=uri-miss",
            [
                .get().isForwarded.says("fwd=uri-miss")
            ])
        t.optimal(
            "No variant that matches is fwd=vary-miss",
            [
                .get("X-A: 1").answer("Cache-Control: max-age=600", "Vary: X-A"),
                .get("X-A: 2").isForwarded.says("fwd=vary-miss"),
            ])
        t.optimal(
            "Something stale is fwd=stale",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().isForwarded.says("fwd=stale"),
            ])
        t.optimal(
            "A request that asks for it is fwd=request",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cache-Control: no-cache").isForwarded.says("fwd=request"),
            ])
        t.optimal(
            "Another method is fwd=method",
            [
                .post().isForwarded.says("fwd=method")
            ])
        t.section("9211 §2.3")
        t.optimal(
            "The origin's status is told where another goes to the client",
            [
                .get().answer("Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20"),
                .get().answer("ETag: \"a\"").isValidated(by: "If-None-Match: \"a\"").says(
                    "fwd-status=304"),
            ])
        t.optimal(
            "And where it is the client's",
            [
                .get().answer(status: "404 Not Found").isForwarded.says("fwd-status=404")
            ])
        t.section("9211 §2.4")
        t.optimal(
            "What is used stale has a negative ttl",
            [
                .get().answer("Cache-Control: max-age=1, stale-if-error=600", "Age: 200"),
                .get().isRefused.isStored().says(containing: "ttl=-"),
            ])
        t.section("9211 §2.5")
        t.optimal(
            "What is being stored says stored",
            [
                .get().answer("Cache-Control: max-age=600").isForwarded.says("stored")
            ])
        t.must(
            "What is not does not",
            [
                .get().answer("Cache-Control: no-store").isForwarded.saysNo("stored")
            ])
        t.section("9211 §2.6")
        t.optimal(
            "Requests that come while an answer is on its way are collapsed",
            [
                .get().answer("Cache-Control: max-age=600").sharedBy(3).asks(times: 1),
                .get().isHit,
            ])
        t.must(
            "Not where the answer may not be shared: each gets its own",
            [
                .get().answer("Cache-Control: private, max-age=600").isForwarded,
                .get().isForwarded,
            ])
        t.section("9211 §2.8")
        t.optimal(
            "Why a response is not stored is told in detail",
            [
                .get().answer("Cache-Control: no-store").isForwarded.says(
                    "detail=response-no-store")
            ])
        t.section("9211 §2")
        t.must(
            "An earlier cache's member stays, and Larder's comes behind it",
            [
                .get().answer("Cache-Status: first; hit").isForwarded
                    .gets(containing: "Cache-Status: first; hit, larder")
            ])
        t.must(
            "A reused response has the member of this request alone",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get().isHit.says("hit").saysNo("stored"),
            ])
    }

    /// `Proxy-Status`, where Larder answers for an origin.
    static let proxyStatus = Table.cases("9209 §2.3") { t in
        t.optimal(
            "An origin that ends the connection is told as such",
            [
                .get().isRefused.status(502).gets(containing: "Proxy-Status: larder; error=")
            ])
        t.optimal(
            "A response that cannot be read is told as such",
            [
                .get().answer("Content-Length: 3", "Content-Length: 4", content: "abc").status(502)
                    .gets(containing: "Proxy-Status: larder; error=http_protocol_error")
            ])
        t.must(
            "A response of the origin says no error of Larder",
            [
                .get().answer(status: "502 Bad Gateway").isForwarded.lacks("Proxy-Status")
            ])
        t.must(
            "An earlier proxy's member stays",
            [
                .get().answer("Proxy-Status: first; error=dns_error", status: "502 Bad Gateway")
                    .isForwarded.gets(containing: "Proxy-Status: first; error=dns_error")
            ])
        t.optimal(
            "A 504 for only-if-cached tells who made it",
            [
                .get("Cache-Control: only-if-cached").status(504).asks(times: 0)
                    .gets(containing: "Cache-Status: larder")
            ])
    }
}
