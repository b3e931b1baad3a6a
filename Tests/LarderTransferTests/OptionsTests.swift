import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProcess
@testable import LarderTransfer

@Suite("What a request wants for itself", .timeLimit(.minutes(10)))
struct OptionsTests {
    /// What gzip(1) makes of a text.
    private static func gzip(_ text: String) async throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appending(
            path: "larder-\(UUID().uuidString)")
        try text.write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        let made = try await Program(
            "/usr/bin/gzip", ["-9", "-n", "-c", file.path], environment: [:]
        ).ended()
        try #require(made.status == 0, "\(made.errText)")
        return made.out
    }

    private func origin(_ fields: String, _ content: [UInt8], _ notes: Notes) throws
        -> ScriptedOrigin
    {
        try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(field("Accept-Encoding", in: head) ?? "none")
                connection.write(
                    "HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(content.count)\r\n\r\n")
                connection.write(content)
            }
        }
    }

    @Test(
        "codings are undone where it wants that, without a word of it to the origin (RFC 9110 §8.4)"
    )
    func decoding() async throws {
        let text = String(repeating: "hello, coded world\n", count: 1000)
        let coded = try await Self.gzip(text)
        let notes = Notes()
        let origin = try self.origin("Content-Encoding: gzip\r\n", coded, notes)
        try await withUpstream { upstream in
            let raw = await upstream.answer(to: origin.request())
            #expect(raw.body.readableBytes == coded.count)
            #expect(raw.length == .known(UInt64(coded.count)))
            let record = await upstream.answer(
                to: origin.request().observed { $0.decodesContent = true })
            #expect(record.text == text)
            #expect(record.length == .unknown)
            #expect(record.head?.fields.string(FieldName(.contentEncoding)) == "gzip")
            let own = await upstream.answer(
                to: origin.request(fields: ["Accept-Encoding": "br;q=0"]).observed {
                    $0.decodesContent = true
                })
            #expect(own.text == text)
        }
        #expect(notes.all == ["none", "none", "br;q=0"])
    }

    @Test("what is coded in an unknown way is handed over as it came; what is broken fails")
    func undecodable() async throws {
        let notes = Notes()
        let strange = try self.origin("Content-Encoding: x-strange, gzip\r\n", [1, 2, 3], notes)
        let broken = try self.origin("Content-Encoding: gzip\r\n", [1, 2, 3, 4], notes)
        try await withUpstream { upstream in
            let raw = await upstream.answer(
                to: strange.request().observed { $0.decodesContent = true })
            #expect(raw.length == .known(3))
            // Later versions have chosen by the time that the head is shown.
            if CurlLibrary.version < 0x08_00_00 {
                #expect(Array(raw.body.readableBytesView) == [1, 2, 3])
            } else {
                #expect(raw.failure?.cause == .badContentCoding)
            }
            let failed = await upstream.answer(
                to: broken.request().observed { $0.decodesContent = true })
            #expect(failed.failure?.cause == .badContentCoding)
            let head = await upstream.answer(
                to: broken.request(.head).observed { $0.decodesContent = true })
            #expect(head.failure == nil)
            #expect(head.length == BodyLength.none)
        }
    }

    @Test("a bomb stays within bounds before a receiver that takes nothing")
    func bomb() async throws {
        let coded = try await Self.gzip(String(repeating: "x", count: 16 << 20))
        let origin = try self.origin("Content-Encoding: gzip\r\n", coded, Notes())
        try await withUpstream { upstream in
            let recorder = Recorder(pausesAfter: 1)
            let fetch = upstream.fetch(
                origin.request().observed { $0.decodesContent = true }, body: nil,
                receiver: recorder)
            let record = await recorder.wait { $0.body.readableBytes > 0 }
            #expect(record.largestPiece <= Outbox.pieceSize)
            recorder.wantAll()
            fetch.resume()
            #expect(await recorder.end().body.readableBytes == 16 << 20)
        }
    }

    @Test("it waits for no longer than it says, in the place of what is configured")
    func timeouts() async throws {
        let silent = try ScriptedOrigin { _ = $0.waitForEnd() }
        let dripping = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            while connection.write([UInt8](repeating: 0x78, count: 1000)) {}
        }
        try await withUpstream { upstream in
            let idle = await upstream.answer(
                to: silent.request().observed { $0.idleTimeout = .milliseconds(50) })
            #expect(idle.failure?.cause == .idleTimeout)
            let resource = await upstream.answer(
                to: dripping.request().observed { $0.resourceTimeout = .seconds(2) })
            #expect(resource.failure?.cause == .resourceTimeout)
            #expect(resource.head != nil)
        }
    }

    @Test("those that wait for a connection get it by priority, then in order")
    func priority() async throws {
        let notes = Notes()
        let (arrived, leave) = (Gate(), Gate())
        let other = try ScriptedOrigin.answering("ok")
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let target = head.split(separator: " ").dropFirst().first.map(String.init) ?? ""
                notes.add(target)
                arrived.open()
                if target == "/first" { _ = leave.block() }
                connection.respond("200 OK")
            }
        }
        try await withUpstream({
            $0.sharesThreads = true
            $0.connectionsPerHost = 1
        }) { upstream in
            let first = Recorder()
            let begun = upstream.fetch(origin.request(.get, "/first"), body: nil, receiver: first)
            await arrived.passed()
            let recorders = [(0.25, "/low"), (0.5, "/a"), (1, "/high"), (0.5, "/b")].map {
                let recorder = Recorder()
                let priority = Float($0.0)
                _ = upstream.fetch(
                    origin.request(.get, $0.1).observed { $0.priority = priority }, body: nil,
                    receiver: recorder)
                return recorder
            }
            let gone = upstream.fetch(
                origin.request(.get, "/gone"), body: nil, receiver: Recorder())
            gone.cancel()
            // Begun after all of them on the same loop: now they wait.
            #expect(await upstream.answer(to: other.request()).text == "ok")
            leave.open()
            for recorder in recorders { #expect(await recorder.end().failure == nil) }
            withExtendedLifetime(begun) {}
        }
        #expect(notes.all == ["/first", "/high", "/a", "/b", "/low"])
        #expect(origin.connectionCount == 1)
    }

    @Test(
        "the weight of a stream is the middle's 16, and equal ratios from there (RFC 7540 §5.3.2)")
    func weights() {
        let weights = [0, 0.25, 0.5, 0.75, 1, 7, -7, .nan].map(EasyHandle.weight(of:))
        #expect(weights == [1, 4, 16, 64, 256, 256, 1, 16])
    }

    @Test("a socket has the traffic class of the request that is on it, as a DSCP (RFC 2474 §3)")
    func trafficClass() throws {
        let mailbox = try TransferMailbox()
        let poller = SocketPoller(
            try Epoll(waking: mailbox.descriptor), owner: 1, counters: TransferCounters())
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        for (value, expected) in [(10, 40), (nil, 0), (255, 252)] as [(UInt8?, Int32)] {
            poller.mark(socket, value)
            var tos: Int32 = -1
            var size = socklen_t(MemoryLayout<Int32>.size)
            #expect(unsafe getsockopt(socket, Int32(IPPROTO_IP), IP_TOS, &tos, &size) == 0)
            #expect(tos == expected)
        }
        #expect(poller.close(socket) == 0)
        #expect(!poller.hasClasses)
    }

    @Test("sent content is told in steps that grow to all of it, and what it took, once")
    func observer() async throws {
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                _ = connection.read(Int(field("Content-Length", in: head) ?? "") ?? 0)
                connection.respond("200 OK", "", "in")
            }
        }
        let count = 300_000
        let observer = RecordingObserver()
        try await withUpstream { upstream in
            let request = origin.request(.put, length: .known(UInt64(count)))
            let record = await upstream.answer(
                to: request.observed(by: observer),
                body: ScriptedContent(text: String(repeating: "x", count: count)))
            #expect(record.failure == nil)
            await observer.isMeasured.passed()
            let second = RecordingObserver()
            _ = await upstream.answer(to: origin.request().observed(by: second))
            await second.isMeasured.passed()
            let reused = try #require(second.heard.measurements.first)
            #expect(reused.isReusedConnection && reused.connectStarted == nil)
            #expect(reused.nameLookupEnded == nil && reused.requestStarted != nil)
        }
        let heard = observer.heard
        #expect(heard.sent.last == UInt64(count) && heard.sent == heard.sent.sorted())
        #expect(heard.measurements.count == 1)
        let measured = try #require(heard.measurements.first)
        #expect(measured.protocolName == "http/1.1")
        #expect(measured.requestBodyBytes == UInt64(count) && measured.responseBodyBytes == 2)
        #expect(measured.requestHeadBytes > 20 && measured.responseHeadBytes > 20)
        #expect(measured.remoteAddress == "127.0.0.1" && measured.remotePort == origin.port)
        #expect(measured.localAddress == "127.0.0.1" && measured.localPort != nil)
        #expect(!measured.isReusedConnection && !measured.isProxyConnection)
        let moments = [
            measured.nameLookupStarted, measured.connectStarted, measured.connectEnded,
            measured.requestStarted, measured.requestEnded, measured.responseStarted,
            measured.responseEnded,
        ]
        #expect(moments.allSatisfy { $0 != nil })
        #expect(moments.compactMap(\.self) == moments.compactMap(\.self).sorted())
        // libcurl counts the first byte that is sent of content as the answer's.
        let (sent, answered) = (measured.requestEnded, measured.responseStarted)
        #expect(try #require(sent) < #require(answered))
    }

    @Test("nothing is measured for who does not look, who is told of the end nevertheless")
    func unmeasured() async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil { connection.respond("200 OK", "", "in") }
        }
        let observer = RecordingObserver(measures: false)
        try await withUpstream { upstream in
            let record = await upstream.answer(to: origin.request().observed(by: observer))
            #expect(record.failure == nil)
            await observer.isMeasured.passed()
        }
        let told = try #require(observer.heard.measurements.first)
        #expect(observer.heard.measurements.count == 1)
        #expect(told == TransferMeasurement(begun: told.begun))
    }

    @Test("its measurement comes also when it fails, is cancelled, or never began")
    func measurements() async throws {
        let silent = try ScriptedOrigin { _ = $0.waitForEnd() }
        let (failed, cancelled, late) = (
            RecordingObserver(), RecordingObserver(), RecordingObserver()
        )
        let ended = try CurlUpstream(TransferConfiguration())
        _ = await ended.answer(
            to: silent.request().observed(by: failed) { $0.idleTimeout = .milliseconds(10) })
        let fetch = ended.fetch(
            silent.request().observed(by: cancelled), body: nil, receiver: Recorder())
        fetch.cancel()
        await cancelled.isMeasured.passed()
        await withCheckedContinuation { done in ended.shutdown { done.resume() } }
        _ = await ended.answer(to: silent.request().observed(by: late))
        await late.isMeasured.passed()
        for observer in [failed, cancelled, late] {
            #expect(observer.heard.measurements.count == 1)
            #expect(observer.heard.measurements.first?.responseEnded == nil)
        }
    }
}

@Suite(
    "A parent's challenge that is for whoever asked (RFC 9110 §11.7.1)", .timeLimit(.minutes(10)))
struct ProxyChallengeTests {
    private func parent() throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                guard field("Proxy-Authorization", in: head) == "Basic YWxpY2U6b3BlbiBzZXNhbWU="
                else {
                    connection.respond(
                        "407 No",
                        "Proxy-Authenticate: Basic realm=\"r\"\r\nproxy-authenticate: Digest x=\"y\"\r\n",
                        "page")
                    continue
                }
                if head.hasPrefix("CONNECT ") { return connection.respond("502 No") }
                connection.respond("200 OK", "", "in")
            }
        }
    }

    private let login = ProxyAuthorization(scheme: .basic, user: "alice") {
        Array("open sesame".utf8)
    }

    @Test("is handed over as the response to the request, and answered by the request's own login")
    func relay() async throws {
        let parent = try self.parent()
        try await withUpstream({ $0.parents = .all(parent.parent()) }) { upstream in
            let asked = await upstream.answer(
                to: Request.example().observed { $0.receivesProxyChallenges = true })
            #expect(asked.head?.status.rawValue == 407 && asked.text == "page")
            let refused = await upstream.answer(to: .example())
            #expect(refused.failure?.cause == .proxyAuthenticationRequired)
            let login = self.login
            let answered = await upstream.answer(
                to: Request.example().observed {
                    $0.receivesProxyChallenges = true
                    $0.proxyAuthorization = login
                })
            #expect(answered.text == "in")
            #expect("\(login)" == "basic (secret)" && !String(reflecting: login).contains("alice"))
        }
    }

    @Test("to CONNECT is a failure that bears it, and nothing of it is the origin's")
    func tunnel() async throws {
        let parent = try self.parent()
        let request = Request(
            uri: TargetURI(scheme: .https, host: "o.example", port: 443, pathAndQuery: "/"))
        try await withUpstream({ $0.parents = .all(parent.parent()) }) { upstream in
            let asked = await upstream.answer(
                to: request.observed { $0.receivesProxyChallenges = true })
            #expect(asked.head == nil)
            #expect(asked.failure?.cause == .proxyAuthenticationRequired)
            #expect(asked.failure?.proxyChallenges == ["Basic realm=\"r\"", "Digest x=\"y\""])
            let quiet = await upstream.answer(to: request)
            #expect(quiet.failure?.proxyChallenges == [])
            let login = self.login
            let answered = await upstream.answer(
                to: request.observed {
                    $0.receivesProxyChallenges = true
                    $0.proxyAuthorization = login
                })
            #expect(answered.failure?.cause == .cannotConnect)
        }
    }
}
