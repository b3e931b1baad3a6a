import LarderHTTP
import NIOCore
import Synchronization
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

    @Test("before its handle is taken back: a receiver goes on, or leaves, from within the call")
    func chained() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        try await withUpstream { upstream in
            let chain = Chain(upstream, origin, count: 300)
            chain.goOn()
            await chain.ended.passed()
            #expect(chain.texts.withLock { $0 } == (1...300).map { "0 /\($0)" })
            #expect(upstream.statistics().openTransfers == 0)
        }
        #expect(origin.connectionCount == 1)
    }

    /// Begins the next fetch when it is told of one, and cancels that.
    private final class Chain: UpstreamReceiver {
        let texts = Mutex<[String]>([])
        let ended = Gate()
        private let upstream: CurlUpstream
        private let origin: ScriptedOrigin
        private let count: Int
        private let fetch = Mutex<(any UpstreamFetch)?>(nil)

        init(_ upstream: CurlUpstream, _ origin: ScriptedOrigin, count: Int) {
            self.upstream = upstream
            self.origin = origin
            self.count = count
        }

        func goOn() {
            let number = self.texts.withLock { $0.count } + 1
            guard number <= self.count else { return self.ended.open() }
            let next = self.upstream.fetch(
                self.origin.request(.get, "/\(number)"), body: nil, receiver: self)
            self.fetch.withLock { $0 = next }
        }

        var takesWholeResponses: Bool { true }

        func upstream(whole response: WholeResponse) {
            self.texts.withLock { $0.append(String(buffer: response.body)) }
            self.fetch.withLock { $0.take() }?.cancel()
            self.goOn()
        }

        func upstream(informational head: ResponseHead) {}

        func upstream(
            head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
        ) -> UpstreamDemand { .more }

        func upstream(piece: ByteBuffer) -> UpstreamDemand { .more }
        func upstream(finished trailers: Fields) { self.ended.open() }
        func upstream(failed failure: UpstreamFailure) { self.ended.open() }
    }
}
