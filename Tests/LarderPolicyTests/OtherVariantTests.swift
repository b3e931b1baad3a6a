import LarderHTTP
import LarderPolicy
import Testing

@Suite("Validating other variants (RFC 9111 §4.1, §4.3.1)")
struct OtherVariantTests {
    @Test(
        "sends their strong entity tags alone",
        arguments: [
            (["ETag: \"a\""], [], "If-None-Match: \"a\""),
            (["ETag: W/\"a\""], [], nil), (["Last-Modified: @-9"], [], nil),
            (["ETag: \"a\"", "ETag: W/\"b\"", "ETag: \"c\""], [], "If-None-Match: \"a\", \"c\""),
            (["ETag: \"a\"", "ETag: W/\"b\""], [1], "If-None-Match: W/\"b\", \"a\""),
            (
                ["ETag: \"a\" | Last-Modified: @-9", "ETag: \"b\" | Last-Modified: @-8"], [1],
                "If-None-Match: \"b\", \"a\" | If-Modified-Since: @-8"
            ),
            (["ETag: \"a\""], [7], "If-None-Match: \"a\""),
            // What another client's cookies came with is not for this one.
            (["ETag: \"a\" | Set-Cookie: s=1"], [], nil),
            (["ETag: \"a\" | Set-Cookie: s=1"], [0], "If-None-Match: \"a\""),
        ] as [([String], [Int], String?)])
    func tags(_ held: [String], _ matching: [Int], _ expected: String?) {
        let conditional = Validation.conditionalRequest(
            request(), validating: held.map { stored($0) }, matching: matching)
        #expect(conditional?.fields == expected.map { fields($0) })
    }

    private static let gzip = "Vary: Accept-Encoding | Content-Encoding: gzip"

    @Test(
        "offers nothing that is not coded to who takes codings, nor what is coded to who does not",
        arguments: [
            // Stored: head, and what its request had; the request; whether its tag is sent.
            ("Vary: Accept-Encoding", "", "Accept-Encoding: gzip", false),
            ("Vary: Accept-Encoding", "Accept-Encoding: identity", "Accept-Encoding: gzip", false),
            ("Vary: Accept-Encoding", "Accept-Encoding: gzip;q=0", "Accept-Encoding: br", false),
            // It was not coded for one who takes codings: it never is.
            ("Vary: Accept-Encoding", "Accept-Encoding: br", "Accept-Encoding: gzip", true),
            ("Vary: Accept-Encoding", "", "Accept-Encoding: identity, gzip;q=0", true),
            ("Vary: Accept-Encoding", "Accept-Encoding: gzip", "", true),
            ("Vary: Accept-Encoding | Content-Encoding: gzip", "", "Accept-Encoding: gzip", true),
            (
                "Vary: Accept-Encoding, Origin", "Accept-Encoding: gzip | Origin: a",
                "Accept-Encoding: gzip | Origin: b", true
            ),
            ("Vary: Origin", "Origin: a", "Accept-Encoding: gzip | Origin: b", true),
            (Self.gzip, "Accept-Encoding: gzip", "", false),
            (Self.gzip, "Accept-Encoding: gzip", "Accept-Encoding: identity", false),
            (Self.gzip, "Accept-Encoding: gzip", "Accept-Encoding: br", false),
            (Self.gzip, "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0, *", false),
            (Self.gzip, "Accept-Encoding: gzip", "Accept-Encoding: *;q=0", false),
            (Self.gzip, "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=x", false),
            (Self.gzip, "Accept-Encoding: gzip", "Accept-Encoding: *", true),
            (Self.gzip, "Accept-Encoding: gzip", "Accept-Encoding: br, X-GZIP;q=0.1", true),
            ("\(Self.gzip), br", "Accept-Encoding: gzip", "Accept-Encoding: gzip, zstd", false),
            ("\(Self.gzip), br", "Accept-Encoding: gzip", "Accept-Encoding: br, zstd, gzip", true),
            // That it is coded chooses nothing where it always is.
            (
                "Vary: Origin | Content-Encoding: gzip", "Origin: a | Accept-Encoding: gzip",
                "Origin: b", true
            ),
        ])
    func coding(_ head: String, _ first: String, _ second: String, _ isSent: Bool) {
        let held = stored("ETag: \"a\" | \(head)", varying: first)
        let conditional = Validation.conditionalRequest(
            request(second), validating: [held], matching: [])
        #expect((conditional?.fields.string("If-None-Match") == "\"a\"") == isSent)
        // It is asked about as ever where the request selects it.
        let own = Validation.conditionalRequest(
            request(second), validating: [held], matching: [0])
        #expect(own?.fields.string("If-None-Match") == "\"a\"")
    }

    @Test("is not answered by what is coded for who does not take that, whose tag the client sent")
    func codingOfTheClient() {
        let held = stored("ETag: \"a\" | \(Self.gzip)", varying: "Accept-Encoding: gzip")
        for (codings, selects) in [("", false), ("Accept-Encoding: gzip, br", true)] {
            let asked = request("If-None-Match: \"a\" | \(codings)")
            let selected = Validation.selected(
                by: response("ETag: \"a\"", status: 304), among: [held], matching: [],
                answering: asked)
            #expect(selected == (selects ? [0] : []))
        }
    }

    @Test("sends the most recent ones where all would make a line that origins refuse")
    func many() {
        let held = (0..<64 as Range<Int64>).map { number in
            stored(
                "ETag: \"\(number)-\(String(repeating: "x", count: 140))\"",
                received: number % 2 == 0 ? number : -number)
        }
        let asked = request("If-None-Match: \"\(String(repeating: "z", count: 140))\"")
        for (matching, first, second) in [([], "62-", "60-"), ([1], "1-", "62-")] {
            let fields = Validation.conditionalRequest(
                asked, validating: held, matching: matching)?.fields
            let line = fields?.string("If-None-Match") ?? ""
            #expect(line.utf8.count <= Validation.longestTags)
            #expect(line.utf8.count > Validation.longestTags - 160)
            let tags = line.split(separator: ", ")
            #expect(tags.first?.hasPrefix("\"" + first) == true)
            #expect(tags.dropFirst().first?.hasPrefix("\"" + second) == true)
        }
        let alone = stored("ETag: \"\(String(repeating: "x", count: 5_000))\"")
        #expect(Validation.conditionalRequest(request(), validating: [alone]) == nil)
    }

    @Test("leaves partial content out, and the client's tags where a part is validated (§4.3.2)")
    func parts() {
        var part = stored("ETag: \"a\"")
        part.extent = StoredExtent(completeLength: 9, ranges: [0..<3])
        let whole = stored("ETag: \"b\"")
        let asked = request("If-None-Match: \"z\"")
        let tags = { (matching: [Int]) in
            Validation.conditionalRequest(asked, validating: [part, whole], matching: matching)?
                .fields
        }
        #expect(tags([1]) == fields("If-None-Match: \"b\", \"z\""))
        #expect(tags([0]) == fields("If-None-Match: \"a\", \"b\""))
        #expect(tags([]) == fields("If-None-Match: \"b\", \"z\""))
    }

    @Test(
        "takes them by a strong entity tag alone",
        arguments: [
            // Whose the allowance is the 304 has to say.
            (
                "ETag: \"a\"",
                ["ETag: \"a\" | Vary: Origin | Access-Control-Allow-Origin: http://a"], [], []
            ),
            (
                "ETag: \"a\" | Access-Control-Allow-Origin: http://b",
                ["ETag: \"a\" | Vary: Origin | Access-Control-Allow-Origin: http://a"], [], [0]
            ),
            (
                "ETag: \"a\"",
                ["ETag: \"a\" | Vary: Origin | Access-Control-Allow-Origin: http://a"], [0], [0]
            ),
            (
                "ETag: \"a\"", ["ETag: \"a\" | Vary: Cookie | Access-Control-Allow-Origin: *"], [],
                [0]
            ),
            ("ETag: \"a\"", ["ETag: \"a\""], [], [0]),
            ("ETag: W/\"a\"", ["ETag: \"a\""], [], []),
            ("ETag: W/\"a\"", ["ETag: W/\"a\""], [], []),
            ("", ["ETag: \"a\""], [], []),
            ("ETag: \"a\"", ["ETag: \"a\" | Set-Cookie: s=1"], [], []),
            ("ETag: \"a\"", ["ETag: \"a\" | Set-Cookie: s=1"], [0], [0]),
            ("Date: @0 | Last-Modified: @-9", ["Last-Modified: @-9"], [], []),
            (
                "Date: @0 | Last-Modified: @-9", ["Last-Modified: @-9", "Last-Modified: @-9"], [1],
                [1]
            ),
            ("ETag: W/\"a\"", ["ETag: W/\"a\"", "ETag: W/\"a\""], [0], [0]),
            ("", ["ETag: \"a\"", "ETag: \"b\""], [1], [1]),
        ] as [(String, [String], [Int], [Int])])
    func selection(_ news: String, _ held: [String], _ matching: [Int], _ selected: [Int]) {
        let found = Validation.selected(
            by: response(news, status: 304), among: held.map { stored($0) }, matching: matching)
        #expect(found == selected)
    }

    @Test(
        "and a tag that only the client sent speaks of nothing stored (§4.3.2)",
        arguments: [
            ("If-None-Match: \"b\"", []), ("If-None-Match: W/\"b\"", []),
            ("If-None-Match: \"a\"", [0]), ("", [0]),
        ] as [(String, [Int])])
    func clientsOwn(_ asked: String, _ selected: [Int]) {
        let found = Validation.selected(
            by: response("Date: @0 | ETag: \"b\" | Last-Modified: @-9", status: 304),
            among: [stored("Last-Modified: @-9")], answering: request(asked))
        #expect(found == selected)
    }

    @Test(
        "and one without validators may speak of what only the client has",
        arguments: [
            ("", "ETag: \"a\"", false, [0]), ("If-None-Match: \"b\"", "ETag: \"a\"", false, []),
            ("If-None-Match: W/\"b\"", "Last-Modified: @-9", false, []),
            ("If-None-Match: \"a\", \"b\"", "ETag: \"a\"", false, []),
            ("If-None-Match: \"a\"", "ETag: \"a\"", false, [0]),
            ("If-None-Match: W/\"a\"", "ETag: \"a\"", false, [0]),
            ("If-None-Match: *", "ETag: \"a\"", false, [0]),
            // With a part of ours the client's were not sent.
            ("If-None-Match: \"b\"", "ETag: \"a\"", true, [0]),
        ] as [(String, String, Bool, [Int])])
    func bare(_ asked: String, _ held: String, _ isPart: Bool, _ selected: [Int]) {
        var head = stored(held)
        if isPart { head.extent = StoredExtent(completeLength: 9, ranges: [0..<3]) }
        let found = Validation.selected(
            by: response("Date: @0", status: 304), among: [head], answering: request(asked))
        #expect(found == selected)
    }

    @Test(
        "knows a 304 that speaks of what the client has (§4.3.2)",
        arguments: [
            ("ETag: \"z\"", "If-None-Match: \"z\"", true),
            ("ETag: W/\"z\"", "If-None-Match: \"y\", \"z\"", true),
            ("ETag: \"z\"", "If-None-Match: \"y\"", false), ("ETag: \"z\"", "", false),
            ("", "If-None-Match: \"z\"", false), ("ETag: \"z\"", "If-None-Match: *", false),
        ])
    func clients(_ news: String, _ asked: String, _ isForClient: Bool) {
        #expect(
            Validation.isForClient(response(news, status: 304), of: request(asked)) == isForClient)
    }
}
