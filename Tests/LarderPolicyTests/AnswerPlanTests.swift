import LarderHTTP
import LarderPolicy
import Testing

/// What a plan says, in a word.
enum Planned: Equatable, Sendable {
    case stored(ClientOutcome)
    /// Asks for this first.
    case asks(UInt64, UInt64?)
    case uncovered

    init(_ plan: AnswerPlan) {
        switch plan {
        case .stored(let outcome): self = .stored(outcome)
        case .splice(let splice): self = .asks(splice.gap.first, splice.gap.end)
        case .uncovered: self = .uncovered
        }
    }
}

@Suite("Answers planned from partial content (RFC 9111 §3.3, RFC 9110 §14.2)")
struct AnswerPlanTests {
    struct Case: Sendable {
        let asked: String
        let method: Method
        let held: String
        let planned: Planned

        init(
            _ asked: String, method: Method = .get, held: String = "ETag: \"a\"",
            _ planned: Planned
        ) {
            self.asked = asked
            self.method = method
            self.held = held
            self.planned = planned
        }

        func check(_ extent: StoredExtent) {
            var head = stored(self.held)
            head.extent = extent
            let plan = AnswerPlan.make(
                request(self.asked, method: self.method), from: head, bodyLength: 0)
            #expect(Planned(plan) == self.planned)
        }
    }

    static let ofKnownLength: [Case] = [
        Case("Range: bytes=100-199", .stored(.partial(100..<200))),
        Case("Range: bytes=150-150", .stored(.partial(150..<151))),
        Case("Range: bytes=900-", .stored(.partial(900..<1000))),
        Case("Range: bytes=900-2000", .stored(.partial(900..<1000))),
        Case("Range: bytes=-100", .stored(.partial(900..<1000))),
        Case("Range: bytes=1000-", .stored(.rangeNotSatisfiable)),
        Case("Range: bytes=-0", .stored(.rangeNotSatisfiable)),
        Case("Range: bytes=100-119, 900-909", .stored(.parts([100..<120, 900..<910]))),
        Case("Range: bytes=100-119, 300-309", .uncovered),
        Case("Range: bytes=300-309", .uncovered),
        Case("Range: bytes=50-150", .asks(50, 100)),
        Case("Range: bytes=150-250", .asks(200, 251)),
        Case("Range: bytes=-150", .asks(850, 900)),
        Case("", .asks(0, 900)), Case("Range: lines=1-2", .asks(0, 900)),
        Case("", method: .head, .stored(.full)),
        Case("Range: bytes=0-9", method: .head, .stored(.full)),
        Case("If-None-Match: \"a\"", .stored(.notModified)),
        Case("If-None-Match: \"b\"", .asks(0, 900)),
        Case("Range: bytes=100-199 | If-Range: \"a\"", .stored(.partial(100..<200))),
        // The client has something else: it is to get the whole.
        Case("Range: bytes=100-199 | If-Range: \"b\"", .asks(0, 900)),
        // Nothing can be put together.
        Case("Range: bytes=50-150", held: "ETag: W/\"a\"", .uncovered),
        Case("", held: "", .uncovered),
        Case("Range: bytes=100-199", held: "", .stored(.partial(100..<200))),
        Case("", held: "Last-Modified: @-9 | Date: @0", .asks(0, 900)),
        Case("", held: "Last-Modified: @0 | Date: @0", .uncovered),
    ]

    @Test("of known length", arguments: ofKnownLength)
    func known(_ c: Case) {
        c.check(StoredExtent(completeLength: 1000, ranges: [100..<200, 900..<1000]))
    }

    static let ofUnknownLength: [Case] = [
        Case("Range: bytes=0-99", .stored(.partial(0..<100))),
        Case("Range: bytes=300-399", .stored(.partial(300..<400))),
        Case("Range: bytes=50-150", .asks(100, 151)),
        Case("Range: bytes=50-", .asks(100, nil)), Case("", .asks(100, nil)),
        Case("Range: bytes=100-150", .uncovered), Case("Range: bytes=-10", .uncovered),
        Case("Range: bytes=0-9, 20-29", .uncovered),
        Case("Range: bytes=5000-", .uncovered),
        Case("Range: bytes=0-18446744073709551615", .uncovered),
        Case("Range: bytes=18446744073709551615-", .uncovered),
        Case("", method: .head, .uncovered),
        Case("If-None-Match: \"a\"", .stored(.notModified)),
        Case("", held: "ETag: W/\"a\"", .uncovered),
    ]

    @Test("of unknown length", arguments: ofUnknownLength)
    func unknown(_ c: Case) {
        c.check(StoredExtent(completeLength: nil, ranges: [0..<100, 300..<400]))
    }

    @Test(
        "a part serves, is completed, or is as good as nothing (§4)",
        arguments: [
            ("Range: bytes=100-199", 0, .serve),
            ("Range: bytes=100-199", 10, .validate(.stale, .lifetimeOver)),
            ("", 0, .validate(.partial, .bytesMissing)),
            ("", 10, .validate(.partial, .bytesMissing)),
            ("Range: bytes=300-309", 0, .fetch(.partial, .bytesMissing)),
            ("Range: bytes=100-199 | Cache-Control: only-if-cached", 0, .serve),
            ("Cache-Control: only-if-cached", 0, .refuse(.onlyIfCached)),
            ("Range: bytes=300-309 | Cache-Control: only-if-cached", 0, .refuse(.onlyIfCached)),
            (
                "Range: bytes=100-199 | Cache-Control: only-if-cached, max-stale", 10,
                .serveStale(.requestMaxStale)
            ),
        ] as [(String, Int64, Said)])
    func reuse(_ asked: String, _ age: Int64, _ said: Said) {
        var head = stored("Cache-Control: max-age=10 | ETag: \"a\"")
        head.extent = StoredExtent(completeLength: 1000, ranges: [100..<200])
        let verdict = Reuse.decide(
            request: request(asked), candidates: [head], now: t0 + .seconds(age),
            configuration: .shared)
        #expect(Said(verdict) == said)
    }

    @Test("what a shared cache must not use it does not complete either (§5.2.2.7)")
    func privatePart() {
        var head = stored("Cache-Control: private, max-age=10 | ETag: \"a\"")
        head.extent = StoredExtent(completeLength: 1000, ranges: [100..<200])
        for asked in ["", "Range: bytes=100-199", "Range: bytes=150-250"] {
            let verdict = Reuse.decide(
                request: request(asked), candidates: [head], now: t0, configuration: .shared)
            #expect(Said(verdict) == .fetch(.miss, .responsePrivate))
        }
    }
}

@Suite("Splices of stored and missing bytes (RFC 9110 §14.2, §13.1.5)")
struct SpliceTests {
    private static let kibibytes64: UInt64 = 65_536

    private func extent(_ ranges: [Range<UInt64>], of length: UInt64?) -> StoredExtent {
        StoredExtent(completeLength: length, ranges: ranges)
    }

    private func splice(_ asked: String, _ extent: StoredExtent) -> Splice? {
        var head = stored("ETag: \"a\"")
        head.extent = extent
        guard
            case .splice(let splice) = AnswerPlan.make(request(asked), from: head, bodyLength: 0)
        else { return nil }
        return splice
    }

    @Test("gaps with little between them are one, and so are too many")
    func gaps() {
        let step = Self.kibibytes64
        let apart = self.extent([step..<2 * step, 3 * step..<4 * step], of: 5 * step)
        #expect(
            Splice.segments(of: 0..<5 * step, in: apart) == [
                .missing(0..<step), .stored(step..<2 * step), .missing(2 * step..<3 * step),
                .stored(3 * step..<4 * step), .missing(4 * step..<5 * step),
            ])
        let close = self.extent([step..<2 * step - 1, 3 * step..<4 * step], of: 5 * step)
        #expect(
            Splice.segments(of: 0..<5 * step, in: close) == [
                .missing(0..<3 * step), .stored(3 * step..<4 * step),
                .missing(4 * step..<5 * step),
            ])
        let stretches = (0..<9).map { UInt64($0) * 2 * step..<(UInt64($0) * 2 + 1) * step }
        let many = self.extent(stretches, of: 19 * step)
        #expect(
            Splice.segments(of: 0..<19 * step, in: many) == [
                .stored(0..<step), .missing(step..<19 * step),
            ])
        let eight = self.extent(Array(stretches.prefix(8)), of: 16 * step)
        #expect(Splice.segments(of: 0..<16 * step, in: eight).count == 16)
    }

    @Test("segments make up the range, without hole or overlap, whatever is stored")
    func segments() {
        var state: UInt64 = 7
        func random(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        for _ in 0..<2_000 {
            let length = random(1 << 22) + 1
            var ranges: [Range<UInt64>] = []
            for _ in 0..<random(12) {
                let start = random(length)
                ranges.append(start..<start + random(length / 4 + 1))
            }
            let extent = self.extent(ranges, of: length)
            let start = random(length)
            let range = start..<start + random(length - start) + 1
            let segments = Splice.segments(of: range, in: extent)
            var position = range.lowerBound
            for segment in segments {
                #expect(segment.range.lowerBound == position)
                #expect(!segment.range.isEmpty)
                if case .stored(let stored) = segment { #expect(extent.contains(stored)) }
                position = segment.range.upperBound
            }
            #expect(position == range.upperBound)
            let missing = segments.filter { if case .missing = $0 { true } else { false } }
            #expect(missing.count <= Splice.mostGaps)
        }
    }

    @Test("the request asks for the gap under If-Range, and keeps the client's conditions")
    func asking() throws {
        let splice = try #require(
            self.splice(
                "Range: bytes=50-150 | If-Range: \"a\" | If-None-Match: \"c\" | X-A: 1",
                self.extent([100..<200], of: 1000)))
        let asking = splice.request(
            request(
                "Range: bytes=50-150 | If-Range: \"a\" | If-None-Match: \"c\" | X-A: 1"))
        #expect(asking.fields.string("Range") == "bytes=50-99")
        #expect(asking.fields.string("If-Range") == "\"a\"")
        #expect(asking.fields.string("If-None-Match") == "\"c\"")
        #expect(asking.fields.string("X-A") == "1")
        let open = try #require(self.splice("", self.extent([0..<100], of: nil)))
        #expect(open.request(request()).fields.string("Range") == "bytes=100-")
    }

    struct Case: Sendable {
        let asked: String
        let length: UInt64?
        let told: String
        let tag: String
        let answer: Splice.Answer?

        init(
            _ asked: String, of length: UInt64?, told: String, tag: String = "\"a\"",
            _ answer: Splice.Answer?
        ) {
            self.asked = asked
            self.length = length
            self.told = told
            self.tag = tag
            self.answer = answer
        }
    }

    private static func part(
        _ range: Range<UInt64>, of length: UInt64?, _ segments: Splice.Segment...
    ) -> Splice.Answer {
        Splice.Answer(isWhole: false, range: range, completeLength: length, segments: segments)
    }

    static let cases: [Case] = [
        // 0..<100 is stored.
        Case(
            "Range: bytes=50-149", of: 1000, told: "100-149/1000",
            part(50..<150, of: 1000, .stored(50..<100), .arriving(100..<150))),
        Case(
            "Range: bytes=50-149", of: 1000, told: "100-149/*",
            part(50..<150, of: 1000, .stored(50..<100), .arriving(100..<150))),
        // Less than was asked for: the rest is still missing.
        Case(
            "Range: bytes=50-149", of: 1000, told: "100-119/1000",
            part(
                50..<150, of: 1000, .stored(50..<100), .arriving(100..<120),
                .missing(120..<150))),
        Case("Range: bytes=50-149", of: 1000, told: "100-149/1000", tag: "\"b\"", nil),
        Case("Range: bytes=50-149", of: 1000, told: "100-149/1000", tag: "W/\"a\"", nil),
        Case("Range: bytes=50-149", of: 1000, told: "100-149/999", nil),
        Case("Range: bytes=50-149", of: 1000, told: "99-149/1000", nil),
        Case("Range: bytes=50-149", of: 1000, told: "101-149/1000", nil),
        Case("Range: bytes=50-149", of: 1000, told: "100-150/1000", nil),
        Case("Range: bytes=50-149", of: 1000, told: "149-100/1000", nil),
        Case("Range: bytes=50-149", of: 1000, told: "*/1000", nil),
        Case(
            "", of: nil, told: "100-999/1000",
            Splice.Answer(
                isWhole: true, range: 0..<1000, completeLength: 1000,
                segments: [.stored(0..<100), .arriving(100..<1000)])),
        Case(
            "Range: bytes=50-", of: nil, told: "100-119/1000",
            part(
                50..<1000, of: 1000, .stored(50..<100), .arriving(100..<120),
                .missing(120..<1000))),
        Case(
            "Range: bytes=50-2000", of: nil, told: "100-999/1000",
            part(50..<1000, of: 1000, .stored(50..<100), .arriving(100..<1000))),
        // Nobody says where it ends.
        Case("", of: nil, told: "100-999/*", nil),
        Case("Range: bytes=50-149", of: nil, told: "100-119/*", nil),
        Case(
            "Range: bytes=50-149", of: nil, told: "100-149/*",
            part(50..<150, of: nil, .stored(50..<100), .arriving(100..<150))),
    ]

    @Test("an answer is settled by the first part that arrives, or not at all", arguments: cases)
    func answer(_ c: Case) throws {
        let splice = try #require(
            self.splice(c.asked, self.extent([0..<100], of: c.length)))
        let head = response(
            "ETag: \(c.tag) | Content-Range: bytes \(c.told)", status: 206)
        let answer = splice.answer(
            head, bodyLength: .unknown, to: request(c.asked))
        #expect(answer?.0 == c.answer)
    }

    @Test("a part that ends before what is stored contradicts it")
    func shorterThanStored() throws {
        let splice = try #require(
            self.splice("", self.extent([0..<100, 300..<400], of: nil)))
        let head = response(
            "ETag: \"a\" | Content-Range: bytes 100-349/350", status: 206)
        #expect(
            splice.answer(head, bodyLength: .unknown, to: request()) == nil)
    }
}

@Suite("Bodies gone on with (RFC 9110 §14.2)")
struct ResumptionRuleTests {
    @Test(
        "need a strong validator, a known length, and a request that may be repeated",
        arguments: [
            ("ETag: \"a\"", 200, "GET", .known(100), 0..<100),
            ("Last-Modified: @-9 | Date: @0", 200, "GET", .known(100), 0..<100),
            ("ETag: \"a\"", 200, "GET", .unknown, nil), ("ETag: \"a\"", 200, "GET", .known(0), nil),
            ("ETag: W/\"a\"", 200, "GET", .known(100), nil),
            ("", 200, "GET", .known(100), nil), ("ETag: \"a\"", 404, "GET", .known(100), nil),
            ("ETag: \"a\"", 200, "POST", .known(100), nil),
            ("ETag: \"a\"", 200, "HEAD", .none, nil),
            ("ETag: \"a\" | Content-Range: bytes 5-9/20", 206, "GET", .known(5), 5..<10),
            ("ETag: \"a\" | Content-Range: bytes 5-9/20", 206, "GET", .unknown, 5..<10),
            ("ETag: \"a\" | Content-Range: bytes 5-9/20", 200, "GET", .known(5), nil),
        ] as [(String, UInt16, String, BodyLength, Range<UInt64>?)])
    func begins(
        _ text: String, _ status: UInt16, _ method: String, _ length: BodyLength,
        _ range: Range<UInt64>?
    ) {
        let resumption = Resumption(
            response(text, status: status), bodyLength: length,
            to: request("Range: bytes=0-", method: Method(rawValue: method)))
        #expect(resumption?.range == range)
    }

    @Test(
        "go on only with exactly what is missing",
        arguments: [
            ("ETag: \"a\" | Content-Range: bytes 30-99/100", .known(70), true),
            ("ETag: \"a\" | Content-Range: bytes 30-99/100", .unknown, true),
            ("ETag: \"a\" | Content-Range: bytes 30-99/*", .known(70), true),
            ("ETag: \"a\" | Content-Range: bytes 30-98/100", .known(69), false),
            ("ETag: \"a\" | Content-Range: bytes 30-99/101", .known(70), false),
            ("ETag: \"a\" | Content-Range: bytes 29-99/100", .known(71), false),
            ("ETag: \"a\" | Content-Range: bytes 31-99/100", .known(69), false),
            ("ETag: \"b\" | Content-Range: bytes 30-99/100", .known(70), false),
            ("Content-Range: bytes 30-99/100", .known(70), false),
            ("ETag: \"a\"", .known(70), false),
        ] as [(String, BodyLength, Bool)])
    func goesOn(_ text: String, _ length: BodyLength, _ continues: Bool) throws {
        let resumption = try #require(
            Resumption(response("ETag: \"a\""), bodyLength: .known(100), to: request("X-A: 1")))
        let asking = try #require(
            resumption.request(request("X-A: 1 | If-None-Match: \"c\""), after: 30))
        #expect(asking.fields.string("Range") == "bytes=30-99")
        #expect(asking.fields.string("If-Range") == "\"a\"")
        #expect(asking.fields.string("If-None-Match") == nil)
        #expect(asking.fields.string("X-A") == "1")
        #expect(
            resumption.isContinued(
                by: response(text, status: 206), bodyLength: length, to: asking, after: 30)
                == continues)
        #expect(resumption.request(request(), after: 100) == nil)
    }
}
