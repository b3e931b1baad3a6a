import LarderHTTP
import LarderPolicy
import SeededNumbers
import Testing

extension SplitMix64 {
    private static let names = [
        "Cache-Control", "CDN-Cache-Control", "Expires", "Date", "Age", "ETag", "Last-Modified",
        "Vary", "No-Vary-Search", "Cache-Groups", "Cache-Group-Invalidation", "Content-Range",
        "Content-Length", "Content-Location", "Location", "Connection", "Pragma", "If-None-Match",
        "If-Modified-Since", "If-Range", "Range", "Accept-Language", "Authorization", "Set-Cookie",
    ]
    private static let parts = [
        "max-age=", "s-maxage=", "no-cache", "no-store", "private=\"", "stale-if-error=", "public",
        "must-revalidate", "max-stale", "min-fresh=9", "params=(\"", "except=(", "key-order", "\"",
        ",", ";", "=", " ", "\\", "*", "W/\"a\"", "bytes=", "bytes 0-", "-", "/",
        "99999999999999999999",
        "0", "18446744073709551615", "-1", "Tue, 14 Nov 2023 22:13:20 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "q=0.", "%", "%f6", "?x=%",
        "#", "(", ")", ":", "@", "\u{FF}", "ü",
    ]

    /// A section with known names and values that are nearly something.
    mutating func section() -> Fields {
        var fields = Fields()
        for _ in 0..<Int.random(in: 0...8, using: &self) {
            let name = Self.names[Int.random(in: Self.names.indices, using: &self)]
            var value: [UInt8] = []
            for _ in 0..<Int.random(in: 0...6, using: &self) {
                if Bool.random(using: &self) {
                    value += Self.parts[Int.random(in: Self.parts.indices, using: &self)].utf8
                } else {
                    value.append(UInt8.random(in: 0...255, using: &self))
                }
            }
            fields.append(name, value)
        }
        return fields
    }
}

@Suite("Whatever comes in, the rules answer")
struct JunkTests {
    private static let methods = [Method.get, .head, .post, Method(rawValue: "FOO")]

    @Test("and none of them traps", arguments: [1, 2, 3, 4] as [UInt64])
    func anything(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var configuration = PolicyConfiguration(targetedFields: [FieldName(.cdnCacheControl)])
        for round in 0..<1500 {
            configuration.kind = round % 3 == 0 ? .private : .shared
            let method = Self.methods[round % Self.methods.count]
            let asked = Request(method: method, uri: uri("/p?a=%"), fields: random.section())
            let status = StatusCode(UInt16.random(in: 100...999, using: &random))
            let answer = ResponseHead(
                status: round % 2 == 0 ? .ok : status, fields: random.section())
            let now = Timestamp(microseconds: Int64.random(in: .min ... .max, using: &random))
            let head = StoredHead(
                storing: answer, to: asked, requestTime: t0, responseTime: now,
                configuration: configuration)
            let other = StoredHead(
                storing: ResponseHead(status: .ok, fields: random.section()), to: asked,
                requestTime: now, responseTime: t0, configuration: configuration)
            let freshness = Freshness.of(head, at: t0, configuration: configuration)
            #expect(freshness.lifetime >= .zero && freshness.currentAge >= .zero)
            let verdict = Storability.judge(
                request: asked, response: answer, bodyLength: .known(3), now: t0,
                configuration: configuration)
            if verdict == .notStorable(.interimResponse) { #expect(answer.status.rawValue < 200) }
            _ = Reuse.decide(
                request: asked, candidates: [head, other], now: t0, configuration: configuration)
            _ = StaleOnError.permits(head, request: asked, now: now, configuration: configuration)
            _ = Validation.conditionalRequest(asked, validating: [head, other], matching: [1])
            _ = Validation.effect(ofHead: answer, on: other, bodyLength: 3)
            for index in Validation.selected(by: answer, among: [head, other]) {
                #expect(index == 0 || index == 1)
                _ = Validation.freshen(
                    other, with: answer, requestTime: t0, responseTime: now,
                    configuration: configuration)
            }
            _ = ClientCondition.evaluate(asked, against: head, bodyLength: 3)
            _ = Invalidation.uris(request: asked, response: answer)
            _ = CacheGroups.invalidated(by: answer, to: asked)
            #expect(CacheGroups.of(head).count <= CacheGroups.limit)
            let place = Storability.place(head, for: asked, configuration: configuration)
            if place.head.pathAndQuery != nil { #expect(place.head.answers(asked.uri)) }
            _ = Variance.replaced(by: head, among: [other], configuration: configuration)
        }
    }
}

@Suite("Ways of writing that mean the same are judged the same (RFC 9110 §5.2, §5.3, §5.6.1)")
struct EquivalentWritingTests {
    static let responses = [
        "max-age=60, public", "no-store, max-age=60", "private=\"x-a, x-b\", max-age=60",
        "s-maxage=5, max-age=60, must-revalidate", "max-age=0, stale-while-revalidate=9",
        "no-cache=\"x-a\", max-age=60", "immutable, max-age=60", "max-age=60, max-age=5",
        "must-understand, no-store, max-age=60", "stale-if-error=9, max-age=1", "proxy-revalidate",
    ]

    /// The same directives on lines of their own, the other way round, with white space and empty
    /// members, in capitals.
    static func writings(_ value: String) -> [Fields] {
        let members = ListMembers(Array(value.utf8)[...])
            .map { String(decoding: $0, as: UTF8.self) }
        func section(_ lines: [String]) -> Fields {
            var fields: Fields = ["Date": HTTPDate.format(t0), "ETag": "\"a\""]
            for line in lines { fields.append("cache-control", line) }
            return fields
        }
        return [
            section([value]), section(members), section(members.reversed()),
            section([members.joined(separator: ",")]),
            section([",, \t" + members.joined(separator: " ,\t ,") + " ,"]),
            section(["", members.reversed().joined(separator: ",  "), ""]),
            section([value.uppercased()]),
        ]
    }

    @Test("storing, freshness and reuse", arguments: Self.responses)
    func judged(_ value: String) {
        for kind in CacheKind.allCases {
            let configuration = PolicyConfiguration(kind: kind)
            for method in [Method.get, .post] {
                let verdicts = Self.writings(value).map {
                    Storability.judge(
                        request: request(method: method),
                        response: ResponseHead(status: .ok, fields: $0), bodyLength: .known(3),
                        now: t0, configuration: configuration)
                }
                #expect(verdicts.allSatisfy { $0 == verdicts[0] })
            }
            for age in [0, 3, 7, 61, 70] as [Int64] {
                let verdicts = Self.writings(value).map { fields in
                    let head = StoredHead(
                        storing: ResponseHead(status: .ok, fields: fields), to: request(),
                        requestTime: t0, responseTime: t0, configuration: configuration)
                    return Reuse.decide(
                        request: request(), candidates: [head], now: t0 + .seconds(age),
                        configuration: configuration)
                }
                #expect(verdicts.allSatisfy { $0 == verdicts[0] })
            }
        }
    }
}

@Suite("Freshness only wanes (RFC 9111 §4.2.3)")
struct MonotonyTests {
    @Test(
        "with time, until it is validated",
        arguments: [
            "Cache-Control: max-age=10", "Expires: @10", "Last-Modified: @-100",
            "Cache-Control: max-age=10 | Age: 3", "Date: @-4 | Cache-Control: max-age=10",
            "Date: @9 | Expires: @12", "Cache-Control: max-age=10, stale-while-revalidate=5",
            "Cache-Control: max-age=0, stale-if-error=5", "ETag: \"a\"",
        ])
    func wanes(_ text: String) {
        let head = stored(text, delay: 1.5)
        var last: Freshness?
        var wasStale = false
        for tenth in Int64(-50)...200 {
            let now = t0 + .milliseconds(100 * tenth)
            let freshness = Freshness.of(head, at: now, configuration: .shared)
            if let last {
                #expect(freshness.lifetime == last.lifetime)
                #expect(freshness.currentAge >= last.currentAge)
                #expect(freshness.remaining <= last.remaining)
            }
            #expect(!(wasStale && freshness.isFresh))
            wasStale = !freshness.isFresh
            last = freshness
            // A clock set back makes nothing younger than it came.
            #expect(freshness.currentAge >= .milliseconds(1500))
        }
    }
}
