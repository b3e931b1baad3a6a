extension Tables {
    /// What may be stored, and what kept out.
    static let storing = Table.cases("9111 §3.5") { t in
        t.must(
            "The answer to a request with Authorization is not reused",
            [
                .get("Authorization: Basic YTpi").answer("Cache-Control: max-age=600")
                    .asks("Authorization: Basic YTpi"),
                .get().isForwarded,
            ])
        t.must(
            "Nor is it where it has an Expires",
            [
                .get("Authorization: Basic YTpi").answer("Expires: {now+600}"),
                .get().isForwarded,
            ])
        t.must(
            "Nor for one with the same credentials",
            [
                .get("Authorization: Basic YTpi").answer("Cache-Control: max-age=600"),
                .get("Authorization: Basic YTpi").isForwarded,
            ])
        for directives in ["public, max-age=600", "must-revalidate, max-age=600", "s-maxage=600"] {
            t.optimal(
                "It is, where the response says \(directives)",
                [
                    .get("Authorization: Basic YTpi").answer("Cache-Control: \(directives)"),
                    .get().isHit,
                ])
            t.optimal(
                "It is for others with credentials, if it says \(directives)",
                [
                    .get("Authorization: Basic YTpi").answer("Cache-Control: \(directives)"),
                    .get("Authorization: Basic eDp5").isHit,
                ])
        }
        t.must(
            "proxy-revalidate does not allow it",
            [
                .get("Authorization: Basic YTpi").answer(
                    "Cache-Control: proxy-revalidate, max-age=600"),
                .get().isForwarded,
            ])

        t.section("9111 §5.2.2.5")
        t.must(
            "no-store keeps a response out",
            [
                .get().answer("Cache-Control: no-store", "ETag: \"a\""),
                .get().isForwarded.asks(without: "If-None-Match"),
            ])
        t.must(
            "Whatever else it says",
            [
                .get().answer("Cache-Control: max-age=600, no-store", "Expires: {now+600}"),
                .get().isForwarded,
            ])
        t.note(
            "An older stored response is asked for again when a newer one says no-store",
            [
                .get().answer("Cache-Control: max-age=600", "X-Turn: 1"),
                .get("Cache-Control: no-cache").answer("Cache-Control: no-store", "X-Turn: 2")
                    .isForwarded,
                .get().isForwarded,
            ])
        t.note(
            "The same when the newer says max-age=0 beside it",
            [
                .get().answer("Cache-Control: max-age=600", "X-Turn: 1"),
                .get("Cache-Control: no-cache").answer(
                    "Cache-Control: no-store, max-age=0", "X-Turn: 2"
                ).isForwarded,
                .get().isForwarded,
            ])

        t.section("9111 §5.2.2.7")
        t.must(
            "private keeps a response out of a shared cache",
            [
                .get().answer("Cache-Control: private, max-age=600"),
                .get().isForwarded,
            ])
        t.must(
            "s-maxage beside it changes nothing",
            [
                .get().answer("Cache-Control: private, s-maxage=600"),
                .get().isForwarded,
            ])
        t.optimal(
            "private with fields keeps out only those",
            [
                .get().answer(
                    "Cache-Control: private=\"x-name\", max-age=600", "X-Name: me", "X-Other: 1"),
                .get().isHit.lacks("X-Name").gets("X-Other: 1"),
            ])
        t.must(
            "The fields that private names are not reused",
            [
                .get().answer(
                    "Cache-Control: max-age=600, private=\"x-name, X-Mail\"", "X-Name: me",
                    "X-Mail: a@b"),
                .get().lacks("X-Name").lacks("X-Mail").asks(times: 0),
            ])
        t.must(
            "The first client gets them all the same",
            [
                .get().answer("Cache-Control: private=\"x-name\", max-age=600", "X-Name: me")
                    .gets("X-Name: me")
            ])

        t.section("9111 §5.2.1.5")
        t.must(
            "The answer to a request with no-store is not stored",
            [
                .get("Cache-Control: no-store").answer("Cache-Control: max-age=600"),
                .get().isForwarded,
            ])

        t.section("9111 §3")
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"] {
            t.must(
                "An answer to \(method) is not reused",
                [
                    .send(method).answer("Cache-Control: max-age=600"),
                    .send(method).isForwarded,
                ])
            t.must(
                "Nor for a GET",
                [
                    .send(method).answer("Cache-Control: max-age=600"),
                    .get().isForwarded,
                ])
        }
        t.must(
            "An answer to POST without Content-Location is not reused for a GET",
            [
                .post().answer("Cache-Control: max-age=600"),
                .get().isForwarded,
            ])
        t.settings("sessions: {default: {cache: {store-post: true}}}")
        t.optimal(
            "One with an explicit lifetime and the target as Content-Location is (9110 §9.3.3)",
            [
                .post().answer("Expires: {now+600}", "Content-Location: {path}"),
                .get().isHit,
            ])
        t.optimal(
            "Content-Location may be absolute",
            [
                .post().answer("Cache-Control: max-age=600", "Content-Location: {base}"),
                .get().isHit,
            ])
        t.must(
            "One with another Content-Location is not",
            [
                .post().answer("Cache-Control: max-age=600", "Content-Location: {path}/other"),
                .get().isForwarded,
            ])
        t.must(
            "A POST itself is never answered from the cache",
            [
                .post().answer("Cache-Control: max-age=600", "Content-Location: {path}"),
                .post().isForwarded,
            ])
        t.settings("")
        t.must(
            "A GET with content is not answered from the cache",
            [
                .get().answer("Cache-Control: max-age=600"),
                .send("GET", content: "q").isForwarded,
            ])
        t.must(
            "A response that broke off is not stored as if it were whole (9111 §3.3)",
            [
                .get().answer("Cache-Control: max-age=600", content: "0123456789")
                    .breaksOff(after: 5).isCut,
                .get().answer("Cache-Control: max-age=600").isForwarded,
            ])

        t.section("9111 §7.3")
        t.optimal(
            "A response with Set-Cookie is stored like any other",
            [
                .get().answer("Cache-Control: max-age=600", "Set-Cookie: a=b"),
                .get().isHit.gets("Set-Cookie: a=b"),
            ])
        t.optimal(
            "A request with Cookie is answered like any other",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get("Cookie: a=b").isHit,
            ])
        t.must(
            "Cookie goes on to the origin",
            [
                .get("Cookie: a=b; c=d").isForwarded.asks("Cookie: a=b; c=d")
            ])
        t.note(
            "An attachment with a lifetime is reused",
            [
                .get().answer(
                    "Cache-Control: max-age=600", "Content-Disposition: attachment; filename=a.txt"),
                .get().isHit,
            ])
    }
}
