import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("A response that was read whole is handed over whole", .timeLimit(.minutes(10)))
struct WholeResponseTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var method = Method.get
        var text: String
        var isWhole: Bool
    }

    @Test(
        "where its length was announced and nothing follows it",
        arguments: [
            Case(
                testDescription: "a short body", text: "200 OK\r\nContent-Length: 5\r\n\r\nhello",
                isWhole: true),
            Case(
                testDescription: "an empty body", text: "200 OK\r\nContent-Length: 0\r\n\r\n",
                isWhole: true),
            Case(testDescription: "no body", text: "204 No Content\r\n\r\n", isWhole: true),
            Case(
                testDescription: "a HEAD", method: .head,
                text: "200 OK\r\nContent-Length: 5\r\n\r\n",
                isWhole: true),
            Case(
                testDescription: "chunked",
                text: "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                isWhole: false),
            Case(
                testDescription: "chunked, with a trailer",
                text: "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
                isWhole: false),
        ])
    func small(_ c: Case) async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil { connection.write("HTTP/1.1 \(c.text)") }
        }
        try await withUpstream { upstream in
            for takes in [true, false, true] {
                let recorder = Recorder(takesWholeResponses: takes)
                _ = upstream.fetch(origin.request(c.method), body: nil, receiver: recorder)
                let record = await recorder.end()
                #expect(record.failure == nil)
                #expect(record.violations == [])
                #expect(record.isWhole == (takes && c.isWhole))
                #expect(record.text == (c.text.contains("hello") ? "hello" : ""))
                #expect(record.trailers?.count == (c.text.contains("A: b") ? 1 : 0))
            }
        }
        #expect(origin.connectionCount == 1)
    }

    @Test("not where its beginning was told before its end came")
    func late() async throws {
        let gate = Gate()
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
            _ = gate.block()
            connection.write("llo")
        }
        try await withUpstream { upstream in
            let recorder = Recorder(takesWholeResponses: true)
            _ = upstream.fetch(origin.request(), body: nil, receiver: recorder)
            await recorder.wait { $0.head != nil }
            gate.open()
            let record = await recorder.end()
            #expect(!record.isWhole)
            #expect(record.text == "hello")
            #expect(record.violations == [])
        }
    }

    @Test("not where it was cut off")
    func cut() async throws {
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
        }
        try await withUpstream { upstream in
            let recorder = Recorder(takesWholeResponses: true)
            _ = upstream.fetch(origin.request(), body: nil, receiver: recorder)
            let record = await recorder.end()
            #expect(!record.isWhole)
            #expect(record.failure != nil)
        }
    }
}
