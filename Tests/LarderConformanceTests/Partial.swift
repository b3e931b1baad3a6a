extension Tables {
    /// Ranges answered from what is stored as a whole.
    static let ranges = Table.cases("9110 §14.2") { t in
        let text = "0123456789A"
        let stored = Step.get().answer("Cache-Control: max-age=600", "ETag: \"a\"", content: text)
        let parts: [(String, String, String)] = [
            ("bytes=0-1", "01", "bytes 0-1/11"), ("bytes=1-", "123456789A", "bytes 1-10/11"),
            ("bytes=-1", "A", "bytes 10-10/11"), ("bytes=-100", text, "bytes 0-10/11"),
            ("bytes=5-900", "56789A", "bytes 5-10/11"), ("bytes=10-10", "A", "bytes 10-10/11"),
            ("bytes=0-", text, "bytes 0-10/11"), ("Bytes=2-3", "23", "bytes 2-3/11"),
            ("bytes= 2-3 ", "23", "bytes 2-3/11"), ("bytes=002-03", "23", "bytes 2-3/11"),
        ]
        for (range, content, place) in parts {
            t.optimal(
                "\(range) of what is stored is 206",
                [
                    stored,
                    .get("Range: \(range)").isHit.status(206).gets(content: content)
                        .gets("Content-Range: \(place)"),
                ])
        }
        for range in ["bytes=11-", "bytes=99-100", "bytes=-0"] {
            t.must(
                "\(range) of what is stored is 416",
                [
                    stored,
                    .get("Range: \(range)").isHit.status(416).gets(content: "")
                        .gets("Content-Range: bytes */11"),
                ])
        }
        for range in ["bytes=3-1", "lines=1-2", "bytes=a-b", "bytes=", "bytes", "bytes=1-2-3"] {
            t.must(
                "\(range) is invalid or unknown: the whole comes",
                [
                    stored,
                    .get("Range: \(range)").isHit.status(200),
                ])
        }
        t.must(
            "A range for HEAD is passed over (§14.2)",
            [
                stored,
                .head("Range: bytes=0-1").isHit.status(200).lacks("Content-Range"),
            ])
        t.optimal(
            "Several ranges come as multipart/byteranges (§14.6)",
            [
                stored,
                .get("Range: bytes=0-1,5-6").isHit.status(206).lacks("Content-Range")
                    .gets(containing: "Content-Type: multipart/byteranges")
                    .gets(containing: "01").gets(containing: "Content-Range: bytes 5-6/11"),
            ])
        t.optimal(
            "Several ranges that overlap come as one or as the whole (§14.2)",
            [
                stored,
                .get("Range: bytes=0-4,3-6,2-9").isHit,
            ])
        t.must(
            "The fields of the stored response come with a part",
            [
                Step.get().answer("Cache-Control: max-age=600", "X-A: 1", content: text),
                .get("Range: bytes=0-1").isHit.status(206).gets(content: "01").gets("X-A: 1"),
            ])
        t.section("9110 §13.1.5")
        t.must(
            "If-Range with the tag gets the part",
            [
                stored,
                .get("Range: bytes=0-1", "If-Range: \"a\"").isHit.status(206).gets(content: "01"),
            ])
        t.must(
            "If-Range with another tag gets the whole",
            [
                stored,
                .get("Range: bytes=0-1", "If-Range: \"b\"").isHit.status(200),
            ])
        t.must(
            "A weak tag is none for If-Range",
            [
                Step.get().answer("Cache-Control: max-age=600", "ETag: W/\"a\"", content: text),
                .get("Range: bytes=0-1", "If-Range: W/\"a\"").isHit.status(200),
            ])
        t.must(
            "If-Range with an old date of modification gets the part",
            [
                Step.get().answer(
                    "Cache-Control: max-age=600", "Last-Modified: {now-9000}", content: text),
                .get("Range: bytes=0-1", "If-Range: {now-9000}").isHit.status(206)
                    .gets(content: "01"),
            ])
        t.must(
            "A later date is not the same: the whole",
            [
                Step.get().answer(
                    "Cache-Control: max-age=600", "Last-Modified: {now-9000}", content: text),
                .get("Range: bytes=0-1", "If-Range: {now-8000}").isHit.status(200),
            ])
        t.must(
            "A date that is no strong validator gets the whole (§8.8.2.2)",
            [
                Step.get().answer(
                    "Cache-Control: max-age=600", "Last-Modified: {now}", "Date: {now}",
                    content: text),
                .get("Range: bytes=0-1", "If-Range: {now}").isHit.status(200),
            ])
        t.must(
            "If-Range without Range is passed over",
            [
                stored,
                .get("If-Range: \"b\"").isHit.status(200),
            ])
        t.section("9110 §13.2.2")
        t.must(
            "If-None-Match is judged before Range",
            [
                stored,
                .get("Range: bytes=0-1", "If-None-Match: \"a\"").isHit.status(304),
            ])
        t.section("9110 §14.2")
        t.must(
            "A range of what is stored and stale is validated",
            [
                Step.get().answer(
                    "Cache-Control: max-age=1", "ETag: \"a\"", "Age: 20", content: text),
                .get("Range: bytes=0-1").answer("ETag: \"a\"", "Cache-Control: max-age=600")
                    .isValidated(by: "If-None-Match: \"a\"").status(206).gets(content: "01"),
            ])
        t.must(
            "A stored 404 has no ranges",
            [
                Step.get().answer(
                    "Cache-Control: max-age=600", status: "404 Not Found", content: text),
                .get("Range: bytes=0-1").isHit.status(404),
            ])
    }

    /// Parts that are stored, and what is made of them.
    static let partialContent = Table.cases("9111 §3.3") { t in
        let part = Step.get("Range: bytes=-5").answer(
            "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 5-9/10",
            status: "206 Partial Content", content: "56789"
        ).asks("Range: bytes=-5")
        t.optimal(
            "A part is stored and reused",
            [
                part,
                .get("Range: bytes=-5").eventually.isHit.status(206).gets(content: "56789")
                    .gets("Content-Range: bytes 5-9/10"),
            ])
        t.optimal(
            "A part without a validator, too",
            [
                .get("Range: bytes=-5").answer(
                    "Cache-Control: max-age=600", "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "56789"),
                .get("Range: bytes=-5").eventually.isHit.status(206).gets(content: "56789"),
            ])
        for (range, content) in [
            ("bytes=6-8", "678"), ("bytes=6-", "6789"), ("bytes=-1", "9"), ("bytes=5-900", "56789"),
        ] {
            t.optimal(
                "\(range) is answered from the part",
                [
                    part,
                    .get("Range: \(range)").eventually.isHit.status(206).gets(content: content),
                ])
        }
        t.must(
            "The whole is not made of a part",
            [
                part,
                .get().isForwarded.status(200).gets(content: "content of step 2"),
            ])
        t.must(
            "What lies outside the part is asked of the origin",
            [
                part,
                .get("Range: bytes=0-1").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 0-1/10",
                    status: "206 Partial Content", content: "01"
                ).isForwarded.status(206).gets(content: "01"),
            ])
        t.must(
            "A part whose lifetime is over is not reused",
            [
                .get("Range: bytes=-5").answer(
                    "Cache-Control: max-age=1", "Age: 20", "ETag: \"a\"",
                    "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "56789"),
                .get("Range: bytes=-5").answer(
                    "Cache-Control: max-age=600", "ETag: \"b\"", "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "vwxyz"
                ).isForwarded.status(206).gets(content: "vwxyz"),
            ])
        t.must(
            "A 206 with no-store is not stored",
            [
                .get("Range: bytes=-5").answer(
                    "Cache-Control: no-store", "ETag: \"a\"", "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "56789"),
                .get("Range: bytes=-5").answer(
                    "Content-Range: bytes 5-9/10", status: "206 Partial Content", content: "vwxyz"
                ).isForwarded.status(206).gets(content: "vwxyz"),
            ])
        t.must(
            "A Content-Range that does not fit its content is not stored",
            [
                .get("Range: bytes=-5").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "5678"),
                .get("Range: bytes=-5").answer(
                    "Content-Range: bytes 5-9/10", status: "206 Partial Content", content: "vwxyz"
                ).isForwarded.status(206).gets(content: "vwxyz"),
            ])

        t.section("9111 §3.4")
        t.optimal(
            "Only what lacks is fetched for the whole",
            [
                .get("Range: bytes=0-4").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 0-4/10",
                    status: "206 Partial Content", content: "01234"),
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "56789"
                ).status(200).gets(content: "0123456789").asks("Range: bytes=5-9")
                    .asks("If-Range: \"a\"").eventually,
                .get().eventually.status(200).gets(content: "0123456789").asks(times: 0),
            ])
        t.optimal(
            "Parts with one strong validator make a whole",
            [
                part,
                .get("Range: bytes=0-4").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 0-4/10",
                    status: "206 Partial Content", content: "01234"
                ).isForwarded.status(206),
                .get().eventually.status(200).gets(content: "0123456789").asks(times: 0),
            ])
        t.must(
            "Parts with different validators do not",
            [
                part,
                .get("Range: bytes=0-4").answer(
                    "Cache-Control: max-age=600", "ETag: \"b\"", "Content-Range: bytes 0-4/10",
                    status: "206 Partial Content", content: "abcde"
                ).isForwarded.status(206).gets(content: "abcde"),
                .get().isForwarded.status(200).gets(content: "content of step 3"),
            ])
        t.must(
            "Parts with weak validators do not",
            [
                .get("Range: bytes=-5").answer(
                    "Cache-Control: max-age=600", "ETag: W/\"a\"", "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "56789"),
                .get("Range: bytes=0-4").answer(
                    "Cache-Control: max-age=600", "ETag: W/\"a\"", "Content-Range: bytes 0-4/10",
                    status: "206 Partial Content", content: "01234"
                ).isForwarded.status(206),
                .get().isForwarded.status(200).gets(content: "content of step 3"),
            ])
        t.must(
            "A whole takes the place of its parts",
            [
                part,
                .get().answer("Cache-Control: max-age=600", "ETag: \"b\"", content: "abcdefghij")
                    .isForwarded.status(200),
                .get("Range: bytes=-5").isHit(from: 2).status(206).gets(content: "fghij"),
            ])
        t.optimal(
            "A whole that broke off is completed by a range",
            [
                .get().answer("Cache-Control: max-age=600", "ETag: \"a\"", content: "0123456789")
                    .breaksOff(after: 5).isCut,
                .get().answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 5-9/10",
                    status: "206 Partial Content", content: "56789"
                ).status(200).gets(content: "0123456789").asks("Range: bytes=5-9").eventually,
            ])
        t.must(
            "A 200 to the request for the rest replaces what there was",
            [
                .get("Range: bytes=0-4").answer(
                    "Cache-Control: max-age=600", "ETag: \"a\"", "Content-Range: bytes 0-4/10",
                    status: "206 Partial Content", content: "01234"),
                .get().answer("Cache-Control: max-age=600", "ETag: \"b\"", content: "abcdefghij")
                    .isForwarded.status(200).gets(content: "abcdefghij"),
            ])
        t.must(
            "An unsafe request invalidates parts, too",
            [
                part,
                .post().isForwarded,
                .get("Range: bytes=-5").answer(
                    "Content-Range: bytes 5-9/10", status: "206 Partial Content", content: "vwxyz"
                ).isForwarded.status(206).gets(content: "vwxyz"),
            ])
        t.must(
            "multipart/byteranges goes on as it is",
            [
                .get("Range: bytes=0-1,5-6").answer(
                    "Content-Type: multipart/byteranges; boundary=x", "ETag: \"a\"",
                    status: "206 Partial Content", content: "--x\r\n\r\n01\r\n--x--\r\n"
                ).isForwarded.status(206)
            ])
    }
}
