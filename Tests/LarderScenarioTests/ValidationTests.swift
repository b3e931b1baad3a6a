import Foundation
import Testing

@testable import LarderProcess

@Suite(
    "Validation and reuse through a whole proxy (RFC 9111 §4.3, RFC 9110 §13, §14)",
    .timeLimit(.minutes(10)))
struct ValidationTests {
    @Test("A stale response is validated, and a 304 freshens it")
    func notModified() async throws {
        try await Scene.play { request in
            if request["If-None-Match"] == "\"v1\"" {
                return
                    "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=600\r\nX-New: 1\r\n\r\n"
            }
            return response("200 OK", "ETag: \"v1\"", body: "one", cache: "max-age=0")
        } _: { scene in
            let first = try await scene.get("/a")
            #expect(first.text == "one")
            try await scene.stored("/a")
            let validated = try await scene.get("/a")
            #expect(validated.status == 200)
            #expect(validated.text == "one")
            #expect(validated["X-New"] == "1")
            #expect(
                validated["Cache-Status"]?.hasPrefix("larder; fwd=stale; fwd-status=304; ttl=")
                    == true)
            #expect(scene.origin.count == 2)
            #expect(try await scene.getStored("/a").text == "one")
            #expect(scene.origin.count == 2)
        }
    }

    @Test("A stale response that has changed is replaced")
    func changed() async throws {
        try await Scene.play { request in
            request.has("If-None-Match")
                ? response("200 OK", "ETag: \"v2\"", body: "two")
                : response("200 OK", "ETag: \"v1\"", body: "one", cache: "max-age=0")
        } _: { scene in
            let first = try await scene.get("/a")
            #expect(first.text == "one")
            try await scene.stored("/a")
            let changed = try await scene.get("/a")
            #expect(changed.text == "two")
            #expect(
                changed.cacheStatus
                    == "larder; fwd=stale; fwd-status=200; ttl; stored; detail=lifetime-over")
            let hit = try await scene.getStored("/a")
            #expect(hit.text == "two")
            #expect(hit["ETag"] == "\"v2\"")
            #expect(scene.origin.count == 2)
        }
    }

    @Test("Last-Modified alone validates, too")
    func lastModified() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        try await Scene.play { request in
            request["If-Modified-Since"] == date
                ? "HTTP/1.1 304 Not Modified\r\n\r\n"
                : response("200 OK", "Last-Modified: \(date)", body: "old", cache: "max-age=0")
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            for _ in 0..<2 {
                let answer = try await scene.get("/a")
                #expect(answer.text == "old")
            }
            let conditions = scene.origin.requests.value.compactMap { $0["If-Modified-Since"] }
            #expect(conditions == [date, date])
        }
    }

    @Test("Variants are kept apart by what Vary names")
    func vary() async throws {
        try await Scene.play { request in
            response("200 OK", "Vary: Accept-Language", body: request["Accept-Language"] ?? "none")
        } _: { scene in
            #expect(try await scene.get("/a", "Accept-Language: de").text == "de")
            let other = try await scene.get("/a", "Accept-Language: fr")
            #expect(other.text == "fr")
            #expect(
                other.cacheStatus
                    == "larder; fwd=vary-miss; fwd-status=200; ttl; stored; detail=no-matching-variant"
            )
            let plain = try await scene.get("/a")
            #expect(plain.text == "none")
            for language in ["de", "fr"] {
                try await scene.stored("/a", "Accept-Language: \(language)")
            }
            for language in ["de", "fr"] {
                let hit = try await scene.get("/a", "Accept-Language: \(language)")
                #expect(hit.text == language)
                #expect(hit["Cache-Status"]?.hasPrefix("larder; hit") == true)
            }
            #expect(scene.origin.count == 3)
        }
    }

    @Test("What an origin allows one site is not told another, whose answer is the same content")
    func sites() async throws {
        try await Scene.play { request in
            let site = "Access-Control-Allow-Origin: \(request["Origin"] ?? "none")"
            return request["If-None-Match"] == "\"v\""
                ? "HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\nVary: Origin\r\n"
                    + "Cache-Control: max-age=600\r\n\(site)\r\n\r\n"
                : response("200 OK", "Vary: Origin", "ETag: \"v\"", site, body: "font")
        } _: { scene in
            _ = try await scene.get("/a", "Origin: http://a")
            try await scene.stored("/a", "Origin: http://a")
            let other = try await scene.get("/a", "Origin: http://b")
            #expect(other.text == "font")
            #expect(other["Access-Control-Allow-Origin"] == "http://b")
            #expect(other.cacheStatus.hasPrefix("larder; fwd=vary-miss; fwd-status=304"))
            try await scene.stored("/a", "Origin: http://b")
            for site in ["http://a", "http://b"] {
                let hit = try await scene.get("/a", "Origin: \(site)")
                #expect(hit["Access-Control-Allow-Origin"] == site)
                #expect(hit.text == "font")
                #expect(hit["Cache-Status"]?.hasPrefix("larder; hit") == true)
            }
            #expect(scene.origin.count == 2)
        }
    }

    @Test("One client without codings does not take them from all others")
    func coded() async throws {
        // As nginx and Apache do it: conditions are judged before the content is coded.
        try await Scene.play { request in
            if request["If-None-Match"] == "\"v\"" {
                return "HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\n"
                    + "Cache-Control: max-age=600\r\n\r\n"
            }
            return request["Accept-Encoding"] == "gzip"
                ? response(
                    "200 OK", "Vary: Accept-Encoding", "ETag: W/\"v\"", "Content-Encoding: gzip",
                    body: "coded")
                : response("200 OK", "Vary: Accept-Encoding", "ETag: \"v\"", body: "as it is")
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            #expect(try await scene.get("/a", "Accept-Encoding: gzip").text == "coded")
            try await scene.stored("/a", "Accept-Encoding: gzip")
            #expect(try await scene.getStored("/a").text == "as it is")
            #expect(try await scene.get("/a", "Accept-Encoding: gzip").text == "coded")
            #expect(scene.origin.count == 2)
        }
    }

    @Test("A GET of no content that says so, as Java's does, is a GET; so is one for /é as typed")
    func announcedNothing() async throws {
        try await Scene.play { request in
            response(body: request.target)
        } _: { scene in
            _ = try await scene.get("/%C3%A9")
            try await scene.stored("/%C3%A9")
            let typed = try await scene.get("/é", "Content-Length: 0")
            #expect(typed.text == "/%C3%A9")
            #expect(typed["Cache-Status"]?.hasPrefix("larder; hit") == true)
            #expect(scene.origin.count == 1)
            #expect(!(scene.origin.requests.value.first?.has("Content-Length") ?? true))
        }
    }

    @Test("HEAD is answered from what GET stored, with its length and no content")
    func head() async throws {
        try await Scene.play { _ in
            response(body: "hello")
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("HEAD", "/a"))
            let head = try await client.message(to: "HEAD")
            #expect(head["Content-Length"] == "5")
            #expect(head["Cache-Status"]?.hasPrefix("larder; hit") == true)
            // The next answer begins right behind it.
            try await client.send(scene.request("GET", "/a"))
            #expect(try await client.message(to: "GET").text == "hello")
            #expect(scene.origin.count == 1)
        }
    }

    @Test("HEAD goes to the origin where nothing is stored")
    func forwardedHead() async throws {
        try await Scene.play { _ in
            "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
        } _: { scene in
            let client = try await scene.proxy.connect()
            for _ in 0..<2 {
                try await client.send(scene.request("HEAD", "/a"))
                let head = try await client.message(to: "HEAD")
                #expect(head.status == 200)
                #expect(head["Content-Length"] == "1000000")
            }
            #expect(scene.origin.requests.value.map(\.method) == ["HEAD", "HEAD"])
        }
    }

    struct Slice: Sendable {
        var range: String
        var status: Int
        var text: String
        var contentRange: String?
    }

    @Test(
        "Ranges are cut from the stored response (RFC 9110 §14)",
        arguments: [
            Slice(range: "bytes=0-0", status: 206, text: "0", contentRange: "bytes 0-0/10"),
            Slice(range: "bytes=2-4", status: 206, text: "234", contentRange: "bytes 2-4/10"),
            Slice(range: "bytes=7-", status: 206, text: "789", contentRange: "bytes 7-9/10"),
            Slice(range: "bytes=-2", status: 206, text: "89", contentRange: "bytes 8-9/10"),
            Slice(range: "bytes=5-99", status: 206, text: "56789", contentRange: "bytes 5-9/10"),
            Slice(range: "bytes=10-", status: 416, text: "", contentRange: "bytes */10"),
            Slice(range: "lines=1-2", status: 200, text: "0123456789", contentRange: nil),
            Slice(range: "bytes=4-2", status: 200, text: "0123456789", contentRange: nil),
        ])
    func range(_ slice: Slice) async throws {
        try await Scene.play { _ in
            response(body: "0123456789")
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            let part = try await scene.get("/a", "Range: \(slice.range)")
            #expect(part.status == slice.status)
            if slice.status != 416 { #expect(part.text == slice.text) }
            #expect(part["Content-Range"] == slice.contentRange)
            #expect(scene.origin.count == 1)
        }
    }

    @Test("A client's own condition is answered with 304 from the store")
    func clientCondition() async throws {
        try await Scene.play { _ in
            response("200 OK", "ETag: \"v1\"", body: "one")
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            let same = try await scene.get("/a", "If-None-Match: \"v0\", W/\"v1\"")
            #expect(same.status == 304)
            #expect(same["ETag"] == "\"v1\"")
            #expect(same.has("Age"))
            let other = try await scene.get("/a", "If-None-Match: \"v0\"")
            #expect(other.status == 200)
            #expect(other.text == "one")
            #expect(scene.origin.count == 1)
        }
    }

    @Test("An unsafe request that succeeds invalidates; one that fails does not (RFC 9111 §4.4)")
    func invalidation() async throws {
        try await Scene.play { request in
            switch request.method {
            case "POST":
                response("204 No Content", cache: nil).replacingOccurrences(
                    "Content-Length: 0\r\n", "")
            case "PUT": response("500 Internal Server Error", cache: nil)
            default: response(body: "x")
            }
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            #expect(try await scene.send("PUT", "/a", body: "new").status == 500)
            #expect(try await scene.get("/a")["Cache-Status"]?.contains("hit") == true)
            #expect(try await scene.send("POST", "/a", body: "new").status == 204)
            let after = try await scene.get("/a")
            #expect(after["Cache-Status"]?.contains("fwd=") == true)
            #expect(scene.origin.requests.value.map(\.method) == ["GET", "PUT", "POST", "GET"])
        }
    }

    @Test("only-if-cached is answered or refused here (RFC 9111 §5.2.1.7)")
    func onlyIfCached() async throws {
        try await Scene.play { _ in
            response(body: "x")
        } _: { scene in
            #expect(try await scene.get("/a", "Cache-Control: only-if-cached").status == 504)
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            let hit = try await scene.get("/a", "Cache-Control: only-if-cached")
            #expect(hit.text == "x")
            #expect(scene.origin.count == 1)
        }
    }
}

extension String {
    fileprivate func replacingOccurrences(_ text: String, _ other: String) -> String {
        guard let range = self.range(of: text) else { return self }
        return self.replacingCharacters(in: range, with: other)
    }
}
