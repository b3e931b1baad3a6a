import Foundation
import Glibc
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProxy

@Suite("Answers that go past the channel")
struct SendingTests {
    /// What became of the number of a closed connection's socket.
    enum Outcome: Sendable {
        /// It was given to somebody else before this test could have it.
        case lost
        case tried(received: Int)
    }

    /// Has the connection's channel closed, takes the number of its socket, and sends an answer, in one
    /// turn of its loop: the connection has not heard of the end yet.
    private static func sendBehindTheEnd(_ loop: LoopState) -> Outcome {
        guard let connection = loop.connections.values.first, let socket = connection.socket else {
            return .lost
        }
        var pair: [Int32] = [-1, -1]
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
            return .lost
        }
        defer { for descriptor in pair { _ = close(descriptor) } }
        connection.context?.channel.close(promise: nil)
        let same = fcntl(pair[0], F_DUPFD, socket)
        guard same >= 0 else { return .lost }
        defer { _ = close(same) }
        guard same == socket else { return .lost }
        connection.sendWhole(ByteBuffer(string: "for another"))
        if let body = LentMemory.copy(of: ByteBuffer(repeating: 1, count: 100_000)) {
            connection.write(ByteBuffer(string: "for another"), before: body)
        }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe recv(pair[1], &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return .tried(received: count)
    }

    @Test("are nobody else's where the channel has been closed, and its number given away")
    func closed() async throws {
        try await Fixture.run(directory: OneSessionDirectory(StoringSession().session())) { proxy in
            var tries = 0
            for _ in 0..<200 where tries < 5 {
                let client = try await proxy.connect()
                try await client.send(get("/a"))
                try await client.received("</a>")
                for loop in proxy.server.loops {
                    let outcome = try await loop.eventLoop.submit {
                        Self.sendBehindTheEnd(loop.value)
                    }.get()
                    guard case .tried(let received) = outcome else { continue }
                    tries += 1
                    #expect(received == -1)
                }
                try await client.close()
            }
            #expect(tries > 0)
        }
    }

    /// Whether a connection has bytes that its socket did not take.
    private static func hasUnsent(_ proxy: Fixture) async throws -> Bool {
        for loop in proxy.server.loops {
            let isUnsent = try await loop.eventLoop.submit {
                loop.value.connections.values.contains { $0.unsentBytes > 0 }
            }.get()
            if isUnsent { return true }
        }
        return false
    }

    @Test("are whole where the socket takes a part of one", arguments: [700, 5_000, 8_000])
    func parts(_ count: Int) async throws {
        let origin = StoringSession { path in
            (0..<count).map { "\(path)\($0)" }.joined().prefix(count) + "."
        }
        try await Fixture.run(directory: OneSessionDirectory(origin.session())) { proxy in
            let client = try await proxy.connect(reads: false)
            var asked = 0
            // Each is answered before the next is asked for, past the channel.
            while try await !Self.hasUnsent(proxy) {
                try await client.send(get("/\(asked % 7)"))
                try await proxy.log.entry(asked)
                asked += 1
            }
            try await client.send(get("/0", "Connection: close\r\n"))
            try await client.resumeReading()
            let all = try await client.receivedAll()
            let bodies = all.components(separatedBy: "\r\n\r\n").dropFirst()
            #expect(bodies.count == asked + 1)
            for (number, body) in bodies.enumerated() {
                let path = "/\(number == asked ? 0 : number % 7)"
                let text = (0..<count).map { "\(path)\($0)" }.joined().prefix(count) + "."
                #expect(
                    body.hasPrefix(text)
                        && (body.count == text.count
                            || body.dropFirst(text.count).hasPrefix("HTTP/1.1 200 OK"))
                )
            }
            #expect(proxy.server.statistics().bytesOut == UInt64(all.utf8.count))
        }
    }

    @Test("come behind what is queued still, in one read or in several")
    func order() async throws {
        // Three kinds: given to the channel, lent to the socket, sent at once.
        let sizes = ["/a": 20_000, "/b": 300_000, "/c": 10]
        let origin = StoringSession { String(repeating: $0, count: sizes[$0] ?? 1) + "." }
        try await Fixture.run(directory: OneSessionDirectory(origin.session())) { proxy in
            let client = try await proxy.connect()
            var answers: [String: String] = [:]
            for path in sizes.keys.sorted() {
                for _ in 0..<3 {
                    client.seen.change { $0.bytes = [] }
                    try await client.send(get(path))
                    answers[path] = try await client.received("\(path).")
                }
            }
            for orders in ["acbcacabc", "cabacbcca", "bcacbacac"] {
                let paths = orders.map { "/\($0)" }
                let expected = paths.compactMap { answers[$0] }.joined()
                for isGlued in [true, false] {
                    client.seen.change { $0.bytes = [] }
                    if isGlued {
                        try await client.send(paths.map { get($0) }.joined())
                    } else {
                        for path in paths { try client.push(ByteBuffer(string: get(path))) }
                    }
                    let seen = try await client.seen.wait(for: "all answers") {
                        $0.bytes.count >= expected.utf8.count
                    }
                    #expect(String(decoding: seen.bytes, as: UTF8.self) == expected)
                }
            }
        }
    }
}

@Suite("The requests that a loop keeps")
struct KeptRequestsTests {
    /// A request of which one loop knows.
    private static func known(_ proxy: Fixture) async throws -> AnsweredRequest {
        _ = try await Self.ask(proxy, get("/a"))
        guard let known = try await Self.find(proxy, get("/a")) else {
            throw TimedOut(description: "no loop knows it")
        }
        return known
    }

    /// Asks until a loop that may know the request does, and gives back the last answer.
    private static func ask(_ proxy: Fixture, _ request: String) async throws -> String {
        let client = try await proxy.connect()
        for _ in 0..<2 { _ = try await client.answer(to: request) }
        return try await client.answer(to: request)
    }

    private static func find(_ proxy: Fixture, _ request: String) async throws -> AnsweredRequest? {
        let bytes = ByteBuffer(string: request)
        for loop in proxy.server.loops {
            let box = try await loop.eventLoop.submit {
                let known = loop.value.known
                    .find(bytes).request
                return known.map { NIOLoopBound($0, eventLoop: loop.eventLoop) }
            }.get()
            guard let box else { continue }
            return try await loop.eventLoop.submit { UnsafeHandOver(box.value) }.get().value
        }
        return nil
    }

    /// No loop touches it any more while the test does.
    private struct UnsafeHandOver: @unchecked Sendable {
        let value: AnsweredRequest
        init(_ value: AnsweredRequest) { self.value = value }
    }

    private static func copy(
        of known: AnsweredRequest, _ text: String, hash: UInt64
    ) -> AnsweredRequest {
        AnsweredRequest(
            bytes: ByteBuffer(string: text), hash: hash, isGist: false, method: known.method,
            uri: TargetURI(scheme: .http, host: "a.example", pathAndQuery: "/a"),
            standing: known.standing, entry: known.pattern.entry, answerHead: known.answerHead)
    }

    private static func find(
        _ text: String, hash: UInt64, in requests: KnownRequests<AnsweredRequest>
    ) -> AnsweredRequest? {
        requests.find(ByteBuffer(string: text), hash: hash)
    }

    @Test("are told apart by their bytes, whatever their hashes are")
    func bytes() async throws {
        try await Fixture.run(directory: OneSessionDirectory(StoringSession().session())) { proxy in
            let known = try await Self.known(proxy)
            let requests = KnownRequests<AnsweredRequest>()
            requests.keep(Self.copy(of: known, "one", hash: 7))
            func isFound(_ text: String, hash: UInt64) -> Bool {
                Self.find(text, hash: hash, in: requests) != nil
            }
            #expect(isFound("one", hash: 7))
            #expect(!isFound("two", hash: 7))
            #expect(!isFound("one.", hash: 7))
            #expect(!isFound("on", hash: 7))
            #expect(!isFound("one", hash: 8))
            // The place of its former self, for what has the same hash.
            requests.keep(Self.copy(of: known, "two", hash: 7))
            #expect(isFound("two", hash: 7) && !isFound("one", hash: 7))
        }
    }

    @Test("are none with credentials, which would lie in memory with them")
    func credentials() async throws {
        try await Fixture.run(directory: OneSessionDirectory(StoringSession().session())) { proxy in
            for (fields, isKnown) in [
                ("X-Own: 1\r\n", true), ("Authorization: Basic c2U6Y3I=\r\n", false),
            ] {
                let request = get("/a", fields)
                let answer = try await Self.ask(proxy, request)
                #expect(answer.contains("; hit"))
                let known = try await Self.find(proxy, request)
                #expect((known != nil) == isKnown)
            }
        }
    }

    @Test("are counted with what they hold, and all forgotten where that is too much")
    func bound() async throws {
        try await Fixture.run(directory: OneSessionDirectory(StoringSession().session())) { proxy in
            let known = try await Self.known(proxy)
            let requests = KnownRequests<AnsweredRequest>()
            let text = String(repeating: "x", count: KnownRequest.longestHead)
            let one = Self.copy(of: known, text, hash: 7)
            #expect(one.cost >= 3 * text.utf8.count)
            for _ in 0..<3 { requests.keep(Self.copy(of: known, text, hash: 7)) }
            #expect(requests.bytes == one.cost)
            guard let kept = Self.find(text, hash: 7, in: requests) else {
                Issue.record("is not kept")
                return
            }
            requests.forget(one)
            #expect(requests.bytes == one.cost)
            requests.forget(kept)
            #expect(requests.bytes == 0)
            var most = 0
            let limit = KnownRequests<AnsweredRequest>.byteLimit
            for number in 0..<3_000 as Range<UInt64> {
                requests.keep(Self.copy(of: known, text, hash: number))
                most = max(most, requests.bytes)
            }
            #expect(most <= limit && most > limit / 2)
        }
    }
}
