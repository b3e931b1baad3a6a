import LarderHTTP
import Testing

@Suite("Proxy-Status and Cache-Status (RFC 9209, RFC 9211)")
struct StatusMemberTests {
    @Test(
        "Proxy-Status holds what is known",
        arguments: [
            (ProxyStatus(), "larder"),
            (ProxyStatus(error: .dnsTimeout), "larder; error=dns_timeout"),
            (
                ProxyStatus(
                    error: .connectionRefused, nextHop: "a.example:80",
                    receivedStatus: .badGateway, details: "say \"no\" \\ é\r\nX: y"),
                "larder; error=connection_refused; next-hop=\"a.example:80\";"
                    + " received-status=502; details=\"say \\\"no\\\" \\\\ ???X: y\""
            ),
        ])
    func proxyStatus(_ status: ProxyStatus, _ expected: String) {
        #expect(status.member(named: "larder") == expected)
    }

    @Test(
        "an origin is named without its port, a parent with it (RFC 9209 §2.1.2)",
        arguments: [
            ("a.example:80", false, "a.example"), ("[::1]:80", false, "[::1]"),
            ("p.example:3128", true, "p.example:3128"), ("", false, ""),
        ])
    func nextHop(_ address: String, _ isParent: Bool, _ name: String) {
        #expect(NextHop(address: address, isParent: isParent).name == name)
    }

    @Test("a name that is no token is a string (RFC 9651 §3.3)")
    func names() {
        #expect(ProxyStatus().member(named: "my proxy") == "\"my proxy\"")
        #expect(CacheStatus(hit: true).member(named: "a, b") == "\"a, b\"; hit")
        #expect(StructuredField.isToken("*a:/b~"))
        for bad in ["", "1a", "a b", "a,", "é", "\"a\""] { #expect(!StructuredField.isToken(bad)) }
    }

    @Test("Cache-Status (RFC 9211 §2)")
    func cacheStatus() {
        let status = CacheStatus(
            forward: .uriMiss, forwardStatus: .ok, ttl: -5, stored: true, collapsed: true,
            detail: "no good")
        #expect(
            status.member(named: "larder")
                == "larder; fwd=uri-miss; fwd-status=200; ttl=-5; stored; collapsed;"
                + " detail=\"no good\"")
        #expect(
            CacheStatus(hit: true, detail: "fresh").member(named: "c") == "c; hit; detail=fresh")
        var keyed = CacheStatus(hit: true, ttl: 1, detail: "x")
        keyed.key = "GET http://a.example/\"b\""
        #expect(
            keyed.member(named: "c")
                == "c; hit; ttl=1; key=\"GET http://a.example/\\\"b\\\"\"; detail=x")
    }

    @Test(
        "ttl is in whole seconds, and negative as soon as the response is stale (RFC 9211 §2.4)",
        arguments: [
            (0, 0), (1, 0), (999, 0), (1000, 1), (1999, 1), (-1, -1), (-1000, -1), (-1001, -2),
        ])
    func ttl(_ milliseconds: Int64, _ ttl: Int64) {
        #expect(CacheStatus.ttl(of: .milliseconds(milliseconds)) == ttl)
    }

    @Test("an http_request_error tells the status that was made (RFC 9209 §2.3)")
    func generatedStatus() {
        let status = ProxyStatus(
            error: .httpRequestError, generatedStatus: StatusCode(431), details: "too large")
        #expect(
            status.member(named: "p")
                == "p; error=http_request_error; status-code=431; details=\"too large\"")
    }

    @Test(
        "an upstream's failures have registered types, their own but for a request's (RFC 9209 §2.3)",
        arguments: [
            (UpstreamFailure.Kind.dnsError, "dns_error"),
            (.destinationIPUnroutable, "destination_ip_unroutable"),
            (.requestBodyFailed, "http_request_error"),
            (.requestHeadTooLarge, "http_request_error"),
            (.httpRequestDenied, "http_request_denied"),
        ])
    func errorTypes(_ kind: UpstreamFailure.Kind, _ word: String) {
        #expect(kind.errorType.rawValue == word)
        let all = UpstreamFailure.Kind.allCases
        #expect(Set(all.map(\.errorType)).count == all.count - 1)
    }

    @Test(
        "error types recommend a status (RFC 9209 §2.3)",
        arguments: [
            (ProxyErrorType.dnsTimeout, 504), (.dnsError, 502), (.destinationNotFound, 500),
            (.destinationUnavailable, 503), (.destinationIPProhibited, 502),
            (.destinationIPUnroutable, 502), (.connectionRefused, 502),
            (.connectionTerminated, 502), (.connectionTimeout, 504),
            (.connectionReadTimeout, 504), (.connectionWriteTimeout, 504),
            (.connectionLimitReached, 503), (.tlsProtocolError, 502),
            (.tlsCertificateError, 502), (.tlsAlertReceived, 502), (.httpRequestDenied, 403),
            (.httpResponseIncomplete, 502), (.httpResponseHeaderSectionSize, 502),
            (.httpResponseBodySize, 502), (.httpResponseTimeout, 504), (.httpUpgradeFailed, 502),
            (.httpProtocolError, 502), (.proxyInternalError, 500),
            (.proxyConfigurationError, 500), (.proxyLoopDetected, 502),
        ] as [(ProxyErrorType, UInt16)])
    func statuses(_ type: ProxyErrorType, _ status: UInt16) {
        #expect(type.recommendedStatus == StatusCode(status))
    }
}

@Suite("Problem documents (RFC 9457)")
struct ProblemDocumentTests {
    @Test("in JSON, escaped (§3, RFC 8259 §7)")
    func json() {
        let plain = ProblemDocument(status: .badGateway)
        #expect(
            plain.json() == "{\"type\":\"about:blank\",\"title\":\"Bad Gateway\",\"status\":502}\n")
        let full = ProblemDocument(
            status: StatusCode(400), title: "a\"b", detail: "\\ \n\u{1}</script>&\u{2028}é",
            type: "t", instance: "urn:x")
        #expect(
            full.json()
                == "{\"type\":\"t\",\"title\":\"a\\\"b\",\"status\":400,\"detail\":"
                + "\"\\\\ \\n\\u0001\\u003c/script\\u003e\\u0026\\u2028é\",\"instance\":\"urn:x\"}\n"
        )
        #expect(full.rendered(as: .json) == Array(full.json().utf8))
    }

    @Test("as a page, escaped")
    func html() {
        let page = ProblemDocument(
            status: StatusCode(400), title: "<b>", detail: "<script>'\"&\u{0}", instance: "<i>"
        ).html()
        #expect(page.contains("<h1>400 &lt;b&gt;</h1>"))
        #expect(page.contains("<p>&lt;script&gt;&#39;&quot;&amp; </p>"))
        #expect(page.contains("<code>&lt;i&gt;</code>"))
        #expect(!page.contains("<script") && !page.contains("\u{0}"))
        #expect(!ProblemDocument(status: .ok).html().contains("<p>"))
    }

    @Test(
        "in the form that the client prefers (RFC 9110 §12.5.1)",
        arguments: [
            ("*/*", .json), ("", .json), ("text/html", .html), ("TEXT/HTML;q=0.1", .html),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", .html),
            ("application/json", .json), ("application/problem+json, text/html;q=0.9", .json),
            ("text/html;q=0.9, application/json", .json), ("text/html, */*", .html),
            ("text/*, application/json", .json), ("text/*", .html), ("text/html;q=0", .json),
            ("text/html;q=0, */*", .json), ("text/html;q=0.5, application/*;q=0.4", .html),
            ("text/html; q=0.30, application/*;q=0.4", .json), ("text/html;q=2", .json),
            ("text/html;q=x", .json), ("text/html;q=", .json), ("text/html;q=1.000", .html),
            ("text/html;level=1;q=0.5, */*;q=0.6", .json), (";,q=1;,", .json),
        ] as [(String, ProblemDocument.Format)])
    func format(_ accept: String, _ expected: ProblemDocument.Format) {
        #expect(ProblemDocument.Format(acceptedBy: ["Accept": accept]) == expected)
    }

    @Test("JSON for who accepts nothing in particular")
    func noAccept() {
        #expect(ProblemDocument.Format(acceptedBy: [:]) == .json)
        #expect(ProblemDocument.Format.html.contentType == "text/html; charset=utf-8")
        #expect(ProblemDocument.Format.json.contentType == "application/problem+json")
    }

    @Test("every status has a phrase that may stand in a status line")
    func phrases() {
        for code in UInt16(100)...999 {
            let phrase = StatusCode(code).reasonPhrase
            #expect(!phrase.isEmpty && phrase.utf8.allSatisfy(ASCII.isFieldValue))
        }
        #expect(StatusCode(431).reasonPhrase == "Request Header Fields Too Large")
        #expect(StatusCode(299).reasonPhrase == "Successful")
        #expect(StatusCode(150).reasonPhrase == "Informational")
        #expect(StatusCode(399).reasonPhrase == "Redirection")
        #expect(StatusCode(499).reasonPhrase == "Client Error")
        #expect(StatusCode(700).reasonPhrase == "Server Error")
    }
}
