import Foundation
import Testing

@testable import LarderProcess

@Suite("larder cache export, import and verify", .timeLimit(.minutes(10)))
struct ArchiveTests {
    private struct Imported: Decodable {
        var stored: UInt64
        var refused: [String: UInt64]
        var skipped: [String: UInt64]
        var malformed: UInt64
        var isCutShort: Bool
    }

    private struct Verified: Decodable {
        var entries: UInt64?
        var damaged: UInt64?
        var repaired: UInt64?
        var entriesDropped: UInt64?
        var url: String?
    }

    private func imported(_ output: Program.Output) throws -> Imported {
        try JSONDecoder().decode(Imported.self, from: Data(output.out))
    }

    /// A home with a proxy, which nothing but its disk serves.
    private func home() throws -> Home {
        let home = try Home()
        try home.configure("sessions: {default: {cache: {memory: 0 B}}}")
        return home
    }

    private static let body = String(repeating: "0123456789abcdef", count: 20_000)

    private func origin() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.answering { request in
            if request.target == "/vary" {
                return response(
                    "200 OK", "Vary: Accept-Language", "ETag: \"v\"",
                    body: "in \(request["Accept-Language"] ?? "none")")
            }
            if request.target == "/large" { return response(body: Self.body) }
            return response("200 OK", "Set-Cookie: a=b", body: "body of \(request.target)")
        }
    }

    @Test("What is exported from a proxy under load serves from another cache, without the origin")
    func roundTrip() async throws {
        try await Scene.inTurn {
            let home = try self.home()
            let origin = try await self.origin()
            let proxy = try await home.serve()
            for path in ["/one", "/two", "/large"] {
                _ = try await proxy.getStored(origin.url(path))
            }
            for language in ["de", "en"] {
                _ = try await proxy.get(origin.url("/vary"), "Accept-Language: \(language)")
            }
            let load = Task {
                var count = 0
                while !Task.isCancelled {
                    _ = try await proxy.get(origin.url("/load/\(count)"))
                    count += 1
                }
            }
            let archive = home.path + "/archive.warc"
            let base = origin.url("")
            let exported = try await home.cache("export", archive)
            #expect(exported.status == 0, "\(exported.errText)")
            load.cancel()
            _ = try? await load.value
            let mode = try FileManager.default.attributesOfItem(atPath: archive)
            #expect(mode[.posixPermissions] as? Int == 0o600)
            let har = home.path + "/archive.har"
            let written = try await home.cache("export", "--har", har)
            #expect(written.status == 0, "\(written.errText)")
            try self.checkHAR(har, base)
            let again = try await home.cache("export", archive)
            #expect(again.status == 73)
            let verified = try await home.cache("verify")
            #expect(verified.status == 0, "\(verified.outText)")
            _ = try await proxy.stop()
            await origin.stop()
            try await self.serve(archive, from: base)
            try await self.serve(har, from: base)
        }
    }

    /// The members that HAR 1.2 requires, in every entry.
    private func checkHAR(_ path: String, _ base: String) throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let root = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
        let log = try #require(root["log"] as? [String: Any])
        #expect(log["version"] as? String == "1.2")
        #expect((log["creator"] as? [String: Any])?["name"] as? String == "larder")
        let entries = try #require(log["entries"] as? [[String: Any]])
        #expect(entries.count >= 5)
        let members = [
            "request": [
                "method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize",
                "bodySize",
            ],
            "response": [
                "status", "statusText", "httpVersion", "cookies", "headers", "content",
                "redirectURL", "headersSize", "bodySize",
            ],
            "timings": ["send", "wait", "receive"], "cache": [],
        ]
        for entry in entries {
            #expect(entry["startedDateTime"] is String && entry["time"] is NSNumber)
            for (name, required) in members {
                let part = try #require(entry[name] as? [String: Any], "\(name)")
                for member in required { #expect(part[member] != nil, "\(name).\(member)") }
            }
            let response = entry["response"] as? [String: Any]
            let content = try #require(response?["content"] as? [String: Any])
            #expect(content["size"] is NSNumber && content["mimeType"] is String)
            #expect(content["text"] is String)
        }
    }

    /// Imports an archive into a new cache, and asks for what it held.
    private func serve(_ archive: String, from base: String) async throws {
        let home = try self.home()
        let imported = try self.imported(try await home.cache("import", archive, "--json"))
        #expect(imported.stored >= 5)
        #expect(imported.refused == [:])
        #expect(imported.malformed == 0 && !imported.isCutShort)
        let proxy = try await home.serve()
        for path in ["/one", "/two", "/large"] {
            let response = try await proxy.get(base + path)
            #expect(response["Cache-Status"]?.hasPrefix("larder; hit") == true, "\(path)")
            #expect(
                response.text == (path == "/large" ? Self.body : "body of \(path)"), "\(path)")
        }
        for language in ["de", "en"] {
            let response = try await proxy.get(
                base + "/vary", "Accept-Language: \(language)")
            #expect(response.text == "in \(language)")
            #expect(response["Cache-Status"]?.hasPrefix("larder; hit") == true)
        }
        // By the running proxy this time: nothing is newer than what there is.
        let again = try self.imported(try await home.cache("import", archive, "--json"))
        #expect(again.stored == 0)
        #expect(again.refused == ["stored-already": imported.stored])
        let none = try await home.cache("import", "/nonexistent.warc")
        #expect(none.status == 66)
        #expect(none.errText.contains("cannot open /nonexistent.warc"))
        _ = try await proxy.stop()
    }

    /// A record of an archive that another program wrote.
    private func record(_ type: String, _ uri: String, _ block: String, date: String) -> String {
        "WARC/1.0\r\nWARC-Type: \(type)\r\nWARC-Target-URI: <\(uri)>\r\nWARC-Date: \(date)\r\n"
            + "Content-Type: application/http;msgtype=\(type)\r\n"
            + "Content-Length: \(block.utf8.count)\r\n\r\n\(block)\r\n\r\n"
    }

    private func pair(
        _ path: String, _ response: String, request: String = "", date: String,
        requestLast: Bool = false
    ) -> String {
        let uri = "http://archive.example\(path)"
        let asked = self.record(
            "request", uri, "GET \(path) HTTP/1.1\r\nHost: archive.example\r\n\(request)\r\n",
            date: date)
        let answer = self.record("response", uri, response, date: date)
        return requestLast ? answer + asked : asked + answer
    }

    @Test("A response whose record no import would read is left out, and those behind it are read")
    func largeTrailers() async throws {
        try await Scene.inTurn {
            let home = try self.home()
            // Less than limits.head, until each line has a name before it.
            let value = String(repeating: "v", count: 634)
            let trailers = (10..<110).map { "X-Trailer-\($0): \(value)\r\n" }.joined()
            let origin = try await ScriptedOrigin.answering { request in
                guard request.target == "/b" else { return response(body: "x") }
                return "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\(trailers)\r\n"
            }
            let proxy = try await home.serve()
            for path in ["/a", "/b", "/c"] { _ = try await proxy.getStored(origin.url(path)) }
            let archive = home.path + "/archive.warc"
            let exported = try await home.cache("export", "--json", archive)
            #expect(exported.status == 0, "\(exported.errText)")
            #expect(exported.outText.contains(#""head-too-large":1"#), "\(exported.outText)")
            // What says who wrote it, and two of each that is there.
            #expect(exported.outText.contains(#""records":5"#), "\(exported.outText)")
            #expect(try await home.cache("purge", "--all").status == 0)
            let read = try await home.cache("import", "--json", archive)
            #expect(read.status == 0, "\(read.errText)")
            #expect(try self.imported(read).stored == 2)
            #expect(try await proxy.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("Of a stranger's archive only what a shared cache may store is taken, as old as it is")
    func foreign() async throws {
        try await Scene.inTurn {
            let home = try self.home()
            let date = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -1_000))
            let plain = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n"
            let text =
                self.record("warcinfo", "urn:x", "software: x\r\n", date: date)
                + self.pair("/a", plain + "Content-Length: 5\r\n\r\nhello", date: date)
                + self.pair(
                    "/chunked",
                    plain
                        + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n4\r\n you\r\n0\r\n\r\n",
                    date: date, requestLast: true)
                + self.pair(
                    "/private",
                    "HTTP/1.1 200 OK\r\nCache-Control: private, max-age=60\r\n\r\nx", date: date)
                + self.pair(
                    "/secret", plain + "\r\nx", request: "Authorization: Basic eDp5\r\n",
                    date: date, requestLast: true)
                + self.pair("/short", plain + "Content-Length: 9\r\n\r\nhello", date: date)
                + self.record(
                    "response", "http://archive.example/alone", plain + "\r\nx", date: date)
                + "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 100\r\n\r\nhalf"
            try home.write(text, to: "foreign.warc")
            let output = try await home.cache("import", home.path + "/foreign.warc", "--json")
            #expect(output.status == 2)
            let imported = try self.imported(output)
            #expect(imported.stored == 2)
            #expect(
                imported.refused == [
                    "response-private": 1, "request-authorization": 1, "malformed": 1,
                    "no-request": 1,
                ])
            #expect(imported.skipped["warcinfo"] == 1)
            #expect(imported.isCutShort)
            #expect(output.errText.contains("the file ends within it"))
            let proxy = try await home.serve()
            let answer = try await proxy.get("http://archive.example/chunked")
            #expect(answer.text == "hello you")
            let age = Int(answer["Age"] ?? "") ?? -1
            #expect(age >= 999 && age < 1_200)
            _ = try await proxy.stop()
        }
    }

    @Test("verify of a file whose pages are noise ends with 2, and not as wrong input")
    func noise() async throws {
        try await Scene.inTurn {
            let home = try self.home()
            let origin = try await self.origin()
            let proxy = try await home.serve()
            _ = try await proxy.getStored(origin.url("/one"))
            _ = try await proxy.stop()
            let file = URL(fileURLWithPath: home.cache + "/cache.mdb")
            var data = try Data(contentsOf: file)
            for index in data.indices.dropFirst(8192) { data[index] = 0xA5 }
            try data.write(to: file)
            let found = try await home.cache("verify")
            #expect(found.status == 2, "\(found.outText)\(found.errText)")
            #expect(found.outText.contains("damaged pages"))
            await origin.stop()
        }
    }

    @Test("A changed byte is found, and taken out by the running proxy, and nothing else is")
    func damage() async throws {
        try await Scene.inTurn {
            let home = try self.home()
            let origin = try await self.origin()
            var proxy = try await home.serve()
            for path in ["/one", "/two"] { _ = try await proxy.getStored(origin.url(path)) }
            _ = try await proxy.stop()
            let file = URL(fileURLWithPath: home.cache + "/cache.mdb")
            var data = try Data(contentsOf: file)
            // Pages that were copied since hold it, too.
            let url = origin.url("/one")
            let other = origin.url("/two")
            var flips = 0
            while let place = data.range(of: Data("body of /one".utf8)) {
                data[place.lowerBound + 3] ^= 1
                flips += 1
            }
            #expect(flips > 0)
            try data.write(to: file)
            proxy = try await home.serve()
            let found = try await home.cache("verify", "--json")
            #expect(found.status == 2)
            let lines = try found.lines.map {
                try JSONDecoder().decode(Verified.self, from: Data($0.utf8))
            }
            #expect(lines.first?.url == url)
            #expect(lines.last?.damaged == 1)
            let repaired = try await home.cache("verify", "--repair")
            #expect(repaired.status == 0, "\(repaired.outText)\(repaired.errText)")
            #expect(repaired.outText.contains("entries dropped: 1"))
            let sound = try await home.cache("verify")
            #expect(sound.status == 0, "\(sound.outText)")
            await origin.stop()
            let left = try await proxy.get(other)
            #expect(left.text == "body of /two")
            #expect(left["Cache-Status"]?.hasPrefix("larder; hit") == true)
            let gone = try await proxy.get(url, "Cache-Control: only-if-cached")
            #expect(gone.status == 504)
            _ = try await proxy.stop()
        }
    }
}
