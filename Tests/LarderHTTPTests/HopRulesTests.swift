@testable import LarderHTTP
import Testing

@Suite("Fields between hops (RFC 9110 §7.6)")
struct HopRulesTests {
    @Test("connection fields and what Connection names go, the rest stays as it was (§7.6.1)")
    func strip() {
        var fields: Fields = [
            "Host": "h", "Connection": "close, X-Hop", "x-hop": "1", "X-HOP": "2",
            "Keep-Alive": "5",
            "Proxy-Connection": "keep-alive", "TE": "trailers", "Trailer": "A", "Upgrade": "h2c",
            "Transfer-Encoding": "chunked", "Proxy-Authorization": "Basic eA==",
            "Proxy-Authenticate": "Basic", "HTTP2-Settings": "AA", "Via": "1.1 a",
            "X-Hop-2": "kept",
            "connection": "Via, Accept,, \"x\", b c", "Accept": "*/*",
            "Proxy-Authentication-Info": "",
        ]
        HopByHop.strip(&fields)
        #expect(fields == ["Host": "h", "Via": "1.1 a", "X-Hop-2": "kept"])
        let before = fields
        HopByHop.strip(&fields)
        #expect(fields == before)
    }

    @Test(
        "a 101 keeps the protocols that it switches to, and nothing else of the connection (§7.8)")
    func stripSwitching() {
        var fields: Fields = [
            "Connection": "Upgrade, X-Hop", "Upgrade": "websocket", "X-Hop": "1",
            "Keep-Alive": "5", "Sec-WebSocket-Accept": "a",
        ]
        HopByHop.strip(&fields, except: .upgrade)
        #expect(fields == ["Upgrade": "websocket", "Sec-WebSocket-Accept": "a"])
    }

    @Test("so do those of many, without one being compared with all")
    func stripMany() {
        let options = (0..<20_000).map { "x-\(100_000 + $0)" }
        var fields: Fields = ["Connection": options.joined(separator: ","), "Accept": "*/*"]
        for i in 0..<2_000 { fields.append("X-\(200_000 + i)", "1") }
        fields.append("X-100007", "1")
        let begun = ContinuousClock.now
        HopByHop.strip(&fields)
        // Forty million comparisons take many times as long.
        #expect(begun.duration(to: .now) < .seconds(3))
        #expect(fields.count == 2_001)
        #expect(!fields.contains("x-100007"))
    }

    @Test("connection options are tokens in lower case")
    func options() {
        let fields: Fields = [
            "Connection": " Close ,,X-a", "connection": "\"y\", b c, z", "Close": "",
        ]
        #expect(HopByHop.connectionOptions(fields) == ["close", "x-a", "z"])
        #expect(HopByHop.connectionOptions([:]).isEmpty)
    }

    @Test(
        "a connection lasts (RFC 9112 §9.3)",
        arguments: [
            ([:], .http11, true), (["Connection": "Close"], .http11, false),
            (["Connection": "x, close"], .http11, false),
            (["Connection": "x", "Connection": "close"], .http11, false),
            (["Connection": "closed"], .http11, true),
            (["Proxy-Connection": "close"], .http11, false),
            (["Connection": "keep-alive"], .http10, false), ([:], .http10, false),
            // No quoted string stands there, so that a mark hides nothing (RFC 9110 §7.6.1).
            (["Connection": "\"a, close"], .http11, false),
            (["Proxy-Connection": "\"a, close, b\""], .http11, false),
        ] as [(Fields, HTTPVersion, Bool)])
    func keepsAlive(_ fields: Fields, _ version: HTTPVersion, _ expected: Bool) {
        #expect(HopByHop.keepsAlive(fields, version: version) == expected)
    }

    @Test("what Connection names behind a quotation mark does not travel on (RFC 9110 §7.6.1)")
    func quotedConnection() {
        var fields: Fields = ["Connection": "\"a, X-Hop, b\"", "X-Hop": "1", "X-End": "2"]
        HopByHop.strip(&fields)
        #expect(fields == ["X-End": "2"])
    }

    @Test("Via names each hop, and finds a circle (§7.6.3)")
    func via() {
        var fields: Fields = ["Via": "1.0 fred, 1.1 p.example.net (a, 1.1 larder)"]
        #expect(Via.contains(pseudonym: "fred", in: fields))
        #expect(!Via.contains(pseudonym: "larder", in: fields))
        #expect(!Via.contains(pseudonym: "fre", in: fields))
        #expect(!Via.contains(pseudonym: "1.0", in: fields))
        Via.append(to: &fields, version: .http11, pseudonym: "Larder")
        Via.append(to: &fields, version: .http2, pseudonym: "x\r\ny, z")
        #expect(Via.contains(pseudonym: "larder", in: fields))
        #expect(
            fields.values("Via").map { String(decoding: $0, as: UTF8.self) }.suffix(2)
                == ["1.1 Larder", "2 x--y--z"])
        #expect(Via.contains(pseudonym: "a", in: ["Via": "HTTP/1.1\t a(comment \\) x) , 1.1 b"]))
        #expect(!Via.contains(pseudonym: "a", in: ["Via": "a"]))
        // Nothing that another hop wrote hides what stands behind it.
        for text in ["\", 1.1 a", "1.1 b (open, 1.1 a", "1.1 b (\", 1.1 a", "(\\), 1.1 a"] {
            #expect(Via.contains(pseudonym: "a", in: ["Via": text]), "\(text)")
        }
        #expect(!Via.contains(pseudonym: "a", in: ["Via": "1.1 b (\", 1.1 a)"]))
    }

    @Test(
        "Max-Forwards is counted down for TRACE and OPTIONS only (§7.6.2)",
        arguments: [
            (.trace, ["Max-Forwards": "0"], .respond),
            (.options, ["Max-Forwards": "1"], .forward(remaining: 0)),
            (.options, ["Max-Forwards": "007"], .forward(remaining: 6)),
            (.get, ["Max-Forwards": "0"], .unlimited), (.options, [:], .unlimited),
            (.trace, ["Max-Forwards": "-1"], .unlimited),
            (.trace, ["Max-Forwards": ""], .unlimited),
            (.trace, ["Max-Forwards": "1", "max-forwards": "1"], .unlimited),
            (.trace, ["Max-Forwards": "99999999999999999999999"], .forward(remaining: .max - 1)),
        ] as [(Method, Fields, MaxForwards.Verdict)])
    func maxForwards(_ method: Method, _ fields: Fields, _ expected: MaxForwards.Verdict) {
        #expect(MaxForwards.judge(method: method, fields: fields) == expected)
    }

    @Test(
        "Expect (§10.1.1)",
        arguments: [
            (["Expect": "100-Continue"], .http11, .continue), ([:], .http11, .none),
            (["Expect": "100-continue"], .http10, .none), (["Expect": "x=1"], .http11, .unknown),
            (["Expect": "100-continue, x"], .http11, .unknown), (["Expect": ""], .http11, .none),
        ] as [(Fields, HTTPVersion, Expect)])
    func expect(_ fields: Fields, _ version: HTTPVersion, _ expected: Expect) {
        #expect(Expect(fields, version: version) == expected)
    }

    @Test(
        "Upgrade (§7.8)",
        arguments: [
            (
                ["Connection": "Upgrade", "Upgrade": "WebSocket, h2c, a/1, a/1/2, /, \"x\""],
                .http11,
                ["WebSocket", "h2c", "a/1"]
            ),
            (["Upgrade": "websocket"], .http11, []),
            (["Connection": "upgrade", "Upgrade": "websocket"], .http10, []),
        ] as [(Fields, HTTPVersion, [String])])
    func upgrade(_ fields: Fields, _ version: HTTPVersion, _ expected: [String]) {
        #expect(Upgrade.protocols(in: fields, version: version) == expected)
    }

    @Test(
        "Forwarded (RFC 7239 §4, §6)",
        arguments: [
            (ForwardedElement(client: .address("192.0.2.43", port: nil)), "for=192.0.2.43"),
            (
                ForwardedElement(client: .address("192.0.2.43", port: 47011)),
                "for=\"192.0.2.43:47011\""
            ),
            (
                ForwardedElement(client: .address("2001:db8::17", port: nil)),
                "for=\"[2001:db8::17]\""
            ),
            (
                ForwardedElement(
                    client: .unknown, by: .obfuscated("se cret"), host: "h:80", proto: .http),
                "by=_se-cret;for=unknown;host=\"h:80\";proto=http"
            ),
            (ForwardedElement(host: "a\"\\\r\nb"), "host=\"a\\\"\\\\  b\""),
            (ForwardedElement(), ""),
        ])
    func forwarded(_ element: ForwardedElement, _ expected: String) {
        #expect(element.text == expected)
        var fields: Fields = ["Forwarded": "for=a"]
        element.append(to: &fields)
        #expect(fields.count == (expected.isEmpty ? 1 : 2))
    }

    @Test(
        "Forwarded stays readable behind whatever a client has written into it (RFC 7239 §4)",
        arguments: [
            ("for=a", true), ("for=\"a\", for=b", true), ("for=\"a\\\"\"", true),
            ("for=a, for=\"", false), ("for=\"a\\\"", false), ("\"\"\"", false),
        ])
    func unreadableForwarded(_ sent: String, _ isKept: Bool) {
        var fields: Fields = ["Forwarded": sent, "Foo": "\""]
        ForwardedElement(client: .unknown).append(to: &fields)
        #expect(fields.string("Forwarded") == (isKept ? "\(sent), for=unknown" : "for=unknown"))
        #expect(fields.string("Foo") == "\"")
    }

    @Test(
        "lists without quoted strings are split at every comma (§5.6.1)",
        arguments: [
            ("a, b", ["a", "b"]), (",, a ,\t,", ["a"]), ("", []),
            ("\"a,b\", c", ["\"a", "b\"", "c"]), ("\"open, a", ["\"open", "a"]),
            ("a\\, b", ["a\\", "b"]),
        ])
    func plainMembers(_ text: String, _ expected: [String]) {
        let found = (["X-List": text] as Fields).plainMembers("X-List")
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == expected)
    }

    @Test(
        "parameters are split outside quotes (§5.6.6)",
        arguments: [
            ("a;b", ["a", "b"]), (";; a ;\t;", ["a"]), ("", []),
            ("a; b=\"c;d\"; e", ["a", "b=\"c;d\"", "e"]),
            ("\"a\\\";b\";c", ["\"a\\\";b\"", "c"]), ("\"open; a", ["\"open; a"]),
        ])
    func parameters(_ text: String, _ expected: [String]) {
        let found = Array(text.utf8)[...].parametersSplit()
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == expected)
    }
}
