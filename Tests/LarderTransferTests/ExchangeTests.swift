import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("A fetch (RFC 9110 §3.4)", .timeLimit(.minutes(10)))
struct ExchangeTests {
    @Test("sends exactly the request it was given, and nothing of libcurl's own")
    func exactRequest() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            notes.add(connection.readHead() ?? "")
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Odd:  a b \r\n\r\nhello")
            _ = connection.waitForEnd()
        }
        var fields = Fields()
        fields.append("X-Empty", "")
        fields.append("accept-ENCODING", "gzip")
        fields.append("Cookie", "a=b")
        fields.append("Cookie", "c=d")
        fields.append("Connection", "close")
        let target = "/a/../b//c%2F?x=\"1\"&y={z}"
        let record = try await withUpstream { upstream in
            await upstream.answer(to: origin.request(.get, target, fields: fields))
        }
        #expect(
            notes.all == [
                "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\nX-Empty:\r\n"
                    + "accept-ENCODING: gzip\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n"
            ])
        #expect(record.head?.status == .ok)
        #expect(record.head?.reason == "OK")
        #expect(record.head?.fields == ["Content-Length": "5", "X-Odd": "a b"])
        #expect(record.length == .known(5))
        #expect(record.text == "hello")
        #expect(record.facts?.remoteAddress == "127.0.0.1:\(origin.port)")
        #expect(record.facts?.reused == false)
        #expect(record.trailers?.isEmpty == true)
        #expect(record.violations.isEmpty)
    }

    @Test(
        "relays any method and status",
        arguments: [
            ("GET", 299), ("OPTIONS", 599), ("PROPFIND", 999), ("FROBNICATE", 200),
            ("get", 404), ("DELETE", 503), ("TRACE", 200), ("PURGE", 417),
        ])
    func methodsAndStatuses(_ name: String, _ status: Int) async throws {
        let origin = try ScriptedOrigin { connection in
            let line = connection.readHead()?.prefix { $0 != "\r\n" } ?? ""
            connection.write(
                "HTTP/1.1 \(status) Odd One\r\nContent-Length: \(line.utf8.count)\r\n\r\n\(line)")
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream { upstream in
            await upstream.answer(to: origin.request(Method(rawValue: name), "/x"))
        }
        #expect(record.head?.status == StatusCode(UInt16(status)))
        #expect(record.head?.reason == "Odd One")
        #expect(record.text == "\(name) /x HTTP/1.1")
        #expect(record.violations.isEmpty)
    }

    @Test("takes a HEAD response to have no content, whatever it announces (RFC 9112 §6.3)")
    func head() async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
            }
        }
        try await withUpstream { upstream in
            for reused in [false, true] {
                let record = await upstream.answer(to: origin.request(.head))
                #expect(record.head?.fields.string("content-length") == "5000")
                #expect(record.length == BodyLength.none)
                #expect(record.body.readableBytes == 0)
                #expect(record.failure == nil)
                #expect(record.facts?.reused == reused)
            }
        }
    }

    @Test("sends a server-wide OPTIONS as *")
    func asterisk() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            notes.add(String(connection.readHead()?.prefix(19) ?? ""))
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream { await $0.answer(to: origin.request(.options, "*")) }
        #expect(notes.all == ["OPTIONS * HTTP/1.1\r\n"])
        #expect(record.length == BodyLength.none)
        #expect(record.trailers != nil)
    }

    @Test("relays 1xx responses other than 100, then the final head (RFC 9110 §15.2)")
    func informational() async throws {
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 100 Continue\r\n\r\n")
            connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            connection.write("HTTP/1.1 102 Processing\r\n\r\n")
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream { await $0.answer(to: origin.request()) }
        #expect(record.informational.map(\.status.rawValue) == [103, 102])
        #expect(record.informational.first?.fields.string("link") == "</a>")
        #expect(record.text == "ok")
        #expect(record.violations.isEmpty)
    }

    @Test("removes the chunked coding and hands on the trailers (RFC 9112 §7.1)")
    func chunkedWithTrailers() async throws {
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.write("5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 11\r\nX-Two:\r\n\r\n")
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream { await $0.answer(to: origin.request()) }
        #expect(record.length == .unknown)
        #expect(record.head?.fields.string("transfer-encoding") == "chunked")
        #expect(record.text == "hello world")
        #expect(record.trailers == ["X-Sum": "11", "X-Two": ""])
    }

    @Test("takes the close of the connection as the end where nothing else says it")
    func untilClose() async throws {
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.0 200 OK\r\n\r\nall of it")
            connection.close()
        }
        let record = try await withUpstream { await $0.answer(to: origin.request()) }
        #expect(record.length == .unknown)
        #expect(record.head?.version == .http10)
        #expect(record.facts?.version == .http10)
        #expect(record.text == "all of it")
        #expect(record.failure == nil)
    }

    @Test("leaves a content coding alone: the bytes are the representation (RFC 9110 §8.4)")
    func contentCoding() async throws {
        let coded: [UInt8] = [0x1F, 0x8B, 8, 0, 1, 2, 3, 0xFF, 0, 0x0A]
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n")
            connection.write(coded)
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream { await $0.answer(to: origin.request()) }
        #expect(Array(record.body.readableBytesView) == coded)
        #expect(record.head?.fields.string("content-encoding") == "gzip")
    }

    @Test("does not follow, does not remember cookies")
    func noCleverness() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(head)
                connection.write(
                    "HTTP/1.1 302 Found\r\nLocation: /next\r\nSet-Cookie: a=b\r\n"
                        + "WWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n")
            }
        }
        try await withUpstream { upstream in
            for _ in 0..<2 {
                let record = await upstream.answer(to: origin.request())
                #expect(record.head?.status == StatusCode(302))
                #expect(record.trailers != nil)
            }
        }
        #expect(notes.count == 2)
        #expect(notes.all.allSatisfy { !$0.contains("Cookie") && $0.hasPrefix("GET / ") })
    }

    @Test("runs many at a time, each answered with its own")
    func many() async throws {
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let target = head.split(separator: " ")[1]
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(target.utf8.count)\r\n\r\n")
                connection.write(String(target))
            }
        }
        try await withUpstream({
            $0.connectionsPerHost = 16
            $0.threads = 2
        }) { upstream in
            await withTaskGroup(of: (Int, Recorder.Record).self) { group in
                for i in 0..<400 {
                    group.addTask { (i, await upstream.answer(to: origin.request(.get, "/\(i)"))) }
                }
                for await (i, record) in group {
                    #expect(record.text == "/\(i)")
                    #expect(record.violations.isEmpty)
                }
            }
            let statistics = upstream.statistics()
            #expect(statistics.transfersStarted == 400)
            #expect(statistics.openTransfers == 0)
            #expect(statistics.connectionsOpened <= 16)
        }
        #expect(origin.connectionCount <= 16)
    }
}
