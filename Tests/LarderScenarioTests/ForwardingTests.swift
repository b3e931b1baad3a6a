import Foundation
import Testing

@testable import LarderProcess

@Suite("What is forwarded, and how often (RFC 9110 §7, §9.2.2)", .timeLimit(.minutes(10)))
struct ForwardingTests {
    /// Answers the first request of a connection, and lets the connection die on the second.
    private static func dying(_ connection: OriginConnection, isReset: Bool) async throws {
        _ = try await connection.request()
        try await connection.send(response(body: "first", cache: "no-store"))
        // The second on the first connection gets no answer; on later ones it does.
        guard try await connection.request() != nil else { return }
        if isReset { try await connection.wire.reset() }
    }

    @Test("GET is sent again when a kept connection died under it, once", arguments: [false, true])
    func retried(_ isReset: Bool) async throws {
        try await Scene.scripted { connection in
            if connection.index == 0 { return try await Self.dying(connection, isReset: isReset) }
            while try await connection.request() != nil {
                try await connection.send(response(body: "again", cache: "no-store"))
            }
        } _: { scene in
            let first = try await scene.get("/a")
            #expect(first.text == "first")
            let second = try await scene.get("/b")
            #expect(second.text == "again")
            #expect(scene.origin.requests.value.map(\.target) == ["/a", "/b", "/b"])
        }
    }

    @Test("A line folded before any field is refused, and read as no part of an earlier response")
    func foldedFirst() async throws {
        // What is freed is overwritten: whoever reads it shows that.
        try await Scene.scripted(variables: ["MALLOC_CONF": "junk:true"]) { connection in
            while let request = try await connection.request() {
                guard request.target == "/folded" else {
                    try await connection.send(response(body: "fine", cache: "no-store"))
                    continue
                }
                try await connection.send(
                    "HTTP/1.1 200 OK\r\n folded: line\r\nContent-Length: 2\r\n\r\nno")
            }
        } _: { scene in
            for path in ["/a", "/folded", "/b", "/folded", "/c", "/folded", "/d"] {
                let answer = try await scene.get(path)
                #expect(answer.status == (path == "/folded" ? 502 : 200))
            }
        }
    }

    @Test("User and password in a target go to the origin as Authorization, and nowhere else")
    func userInformation() async throws {
        try await Scene.play { request in
            response(body: "\(request.target) \(request["authorization"] ?? "none")")
        } _: { scene in
            let base = scene.origin.authority
            for (target, login) in [
                ("http://u:p%40w@\(base)/a", "Basic dTpwQHc="),
                ("http://u@\(base)/a", "Basic dTo="),
                ("http://\(base)/a#part", "none"),
            ] {
                let client = try await scene.proxy.connect()
                try await client.send(
                    "GET \(target) HTTP/1.1\r\nHost: \(base)\r\nCache-Control: no-cache\r\n\r\n")
                let answer = try await client.message(to: "GET")
                #expect(answer.text == "/a \(login)")
            }
            // Nobody else gets what was for that login.
            let other = try await scene.get("/a")
            #expect(other.text == "/a none")
            let own = try await scene.proxy.connect()
            try await own.send(
                "GET http://u:p@\(base)/b HTTP/1.1\r\nHost: \(base)\r\n"
                    + "Authorization: Bearer t\r\n\r\n")
            #expect(try await own.message(to: "GET").text == "/b Bearer t")
            let bad = try await scene.proxy.connect()
            try await bad.send("GET http://u:%00@\(base)/b HTTP/1.1\r\nHost: \(base)\r\n\r\n")
            #expect(try await bad.message(to: "GET").status == 400)
            #expect(!scene.proxy.log.contains("p%40w"))
        }
    }

    @Test("A Host that names the proxy is no reason to refuse, and the origin gets its own")
    func hostOfProxy() async throws {
        try await Scene.play { request in
            response(body: request["host"] ?? "none", cache: "no-store")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(
                "GET http://\(scene.origin.authority)/ HTTP/1.1\r\n"
                    + "Host: proxy.example:\(scene.proxy.port)\r\n\r\n")
            #expect(try await client.message(to: "GET").text == scene.origin.authority)
        }
    }

    @Test("A client that holds all connections to an origin it can leaves some to others")
    func shareOfConnections() async throws {
        let isOpen = Event(false)
        let settings = "sessions: {default: {connections-per-host: 8}}"
        try await Scene.play(settings) { request in
            if request.target.hasPrefix("/held") { try await isOpen.wait(for: "the end") { $0 } }
            return response(body: request.target, cache: "no-store")
        } _: { scene in
            var holding: [Wire] = []
            for number in 0..<8 {
                let wire = try await scene.proxy.connect()
                try await wire.send(scene.request("GET", "/held/\(number)"))
                holding.append(wire)
            }
            try await scene.origin.requests.wait(for: "its share") { $0.count == 6 }
            let other = try await scene.proxy.connect(source: "127.0.0.2")
            try await other.send(scene.request("GET", "/other"))
            #expect(try await other.message(to: "GET").text == "/other")
            #expect(scene.origin.requests.value.count == 7)
            isOpen.change { $0 = true }
            for wire in holding { #expect(try await wire.message(to: "GET").status == 200) }
        }
    }

    @Test("POST is not", arguments: [false, true])
    func notRetried(_ isReset: Bool) async throws {
        try await Scene.scripted { connection in
            if connection.index == 0 { return try await Self.dying(connection, isReset: isReset) }
            while try await connection.request() != nil {
                try await connection.send(response(body: "again", cache: "no-store"))
            }
        } _: { scene in
            #expect(try await scene.get("/a").text == "first")
            let posted = try await scene.send("POST", "/b", body: "once")
            // Either the kept connection died under it, or a new one was made for it; never both.
            #expect(posted.status == 502 || posted.text == "again")
            let posts = scene.origin.requests.value.filter { $0.method == "POST" }
            #expect(posts.count == 1)
            #expect(posts.first?.text == "once")
        }
    }

    @Test("A POST whose new connection dies unanswered reaches the origin once")
    func postOnce() async throws {
        try await Scene.scripted { connection in
            _ = try await connection.request()
        } _: { scene in
            let posted = try await scene.send("POST", "/b", body: "once")
            #expect(posted.status == 502)
            #expect(scene.origin.count == 1)
        }
    }

    @Test(
        "Unknown methods travel as they are",
        arguments: [
            "BREW", "PROPFIND", "M-SEARCH", "get", "DELETE", "PATCH", "QUERY",
        ])
    func methods(_ method: String) async throws {
        try await Scene.play {
            response(body: $0.line, cache: nil)
        } _: { scene in
            let answer = try await scene.send(method, "/pot?x=1")
            #expect(answer.text == "\(method) /pot?x=1 HTTP/1.1")
            #expect(scene.origin.count == 1)
        }
    }

    @Test("Unknown statuses travel as they are", arguments: [299, 418, 451, 599, 600, 999])
    func statuses(_ status: Int) async throws {
        try await Scene.play { _ in
            "HTTP/1.1 \(status) Peculiar Indeed\r\nX: y\r\nContent-Length: 2\r\n\r\nhi"
        } _: { scene in
            let answer = try await scene.get("/a")
            #expect(answer.status == status)
            #expect(answer.line == "HTTP/1.1 \(status) Peculiar Indeed")
            #expect(answer["X"] == "y")
            #expect(answer.text == "hi")
        }
    }

    @Test("1xx responses are relayed before the final one (RFC 9110 §15.2)")
    func informational() async throws {
        try await Scene.play { _ in
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x\r\n\r\n"
                + "HTTP/1.1 102 Processing\r\n\r\n" + response(body: "done")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/a"))
            let hints = try await client.message(to: "GET")
            #expect(hints.status == 103)
            #expect(hints["Link"] == "</a.css>; rel=preload")
            #expect(!hints.has("Connection"))
            #expect(try await client.message(to: "GET").status == 102)
            #expect(try await client.message(to: "GET").text == "done")
        }
    }

    @Test("Trailers are relayed, and stored with what they belong to (RFC 9110 §6.5)")
    func trailers() async throws {
        try await Scene.play { _ in
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTrailer: X-Sum\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"
        } _: { scene in
            let first = try await scene.get("/a")
            #expect(first.text == "hello")
            #expect(first.trailers == ["X-Sum: 42"])
            let stored = try await scene.getStored("/a")
            #expect(stored.text == "hello")
            #expect(stored.trailers == ["X-Sum: 42"])
            #expect(scene.origin.count == 1)
        }
    }

    @Test("Coded content passes byte for byte, also from the store")
    func coded() async throws {
        // gzip of "hello", and bytes that are no gzip at all.
        let gzip: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 7, 0, 0x86, 0xA6,
            0x10, 0x36, 5, 0, 0, 0,
        ]
        for body in [gzip, Array(0...255)] {
            try await Scene.scripted { connection in
                while try await connection.request() != nil {
                    try await connection.send(
                        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Encoding: gzip\r\n"
                            + "Vary: Accept-Encoding\r\nContent-Length: \(body.count)\r\n\r\n")
                    try await connection.wire.send(body)
                }
            } _: { scene in
                for _ in 0..<2 {
                    let answer = try await scene.get("/a", "Accept-Encoding: gzip")
                    #expect(answer.body == body)
                    #expect(answer["Content-Encoding"] == "gzip")
                }
                #expect(scene.origin.count == 1)
                let sent = scene.origin.requests.value.first
                #expect(sent?["Accept-Encoding"] == "gzip")
            }
        }
    }

    @Test("Hop-by-hop fields end here, both ways (RFC 9110 §7.6.1)")
    func hopByHop() async throws {
        try await Scene.play { _ in
            response(
                "200 OK", "Connection: X-Private, close", "X-Private: 1", "Keep-Alive: timeout=5",
                "Proxy-Authenticate: Basic", "X-Kept: yes", body: "x", cache: nil)
        } _: { scene in
            let answer = try await scene.get(
                "/a", "Connection: X-Secret", "X-Secret: 1", "Proxy-Authorization: Basic eA==",
                "Proxy-Connection: keep-alive", "TE: trailers", "X-Kept: yes", "User-Agent: test/1")
            let request = try #require(scene.origin.requests.value.first)
            for name in ["X-Secret", "Proxy-Authorization", "Proxy-Connection", "TE"] {
                #expect(!request.has(name), "\(name)")
            }
            #expect(request["X-Kept"] == "yes")
            #expect(request["User-Agent"] == "test/1")
            #expect(request["Host"] == scene.origin.authority)
            #expect(request["Via"]?.hasPrefix("1.1 larder-") == true)
            #expect(!request.has("Accept"))
            #expect(!request.has("Accept-Encoding"))
            for name in ["X-Private", "Keep-Alive", "Proxy-Authenticate"] {
                #expect(!answer.has(name), "\(name)")
            }
            #expect(answer["X-Kept"] == "yes")
        }
    }

    @Test("A request that comes back is 508, and not sent round again")
    func loop() async throws {
        try await Scene.play {
            response(body: $0["Via"] ?? "")
        } _: { scene in
            let via = try await scene.get("/a").text
            let looped = try await scene.get("/b", "Via: \(via)")
            #expect(looped.status == 508)
            #expect(scene.origin.count == 1)
        }
    }

    @Test("Forwarded tells the client's address where the setting says so (RFC 7239)")
    func forwarded() async throws {
        try await Scene.play("forwarded: true") {
            response(body: $0.list("Forwarded"))
        } _: { scene in
            let answer = try await scene.get("/a", "Forwarded: for=192.0.2.1")
            #expect(answer.text.hasPrefix("for=192.0.2.1, "))
            #expect(answer.text.hasSuffix(";for=127.0.0.1;proto=http"))
        }
    }
}
