import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import NIOEmbedded
import SeededNumbers
import Synchronization
import Testing

@testable import LarderProxy

@Suite("Requests that came before, and that the store does not answer")
struct UnderstoodRequestTests {
    /// A connection of one loop, the session behind it, and the client before it.
    private final class Door {
        let session = ScriptedSession { _ in }
        let log = LogRecorder()
        let loop = EmbeddedEventLoop()
        let connection: ClientConnection
        let channel: EmbeddedChannel

        /// - Parameter beside: another door to the same loop.
        init(
            access: any AccessPolicy = LocalClients(), addsForwarded: Bool = false,
            client: ClientAddress = .unix(nil), own port: UInt16? = nil,
            options: ListenerOptions = ListenerOptions(), beside other: Door? = nil
        ) throws {
            var configuration = ProxyConfiguration()
            configuration.addsForwarded = addsForwarded
            configuration.pseudonym = "pantry"
            let shared = ProxyShared(
                configuration: configuration, access: access, log: self.log,
                connections: ConnectionCount(maximum: 1), clock: { Fixture.now })
            let address = try #require(IPAddress("127.0.0.1"))
            self.connection = ClientConnection(
                loop: other?.connection.loop
                    ?? LoopState(shared: shared, counters: LoopCounters(), index: 0, count: 1),
                directory: OneSessionDirectory(self.session), client: client,
                own: OwnAuthorities(
                    listeners: [], local: port.map { .init(address: address, port: $0) }),
                listener: options)
            self.channel = EmbeddedChannel(handler: self.connection, loop: self.loop)
            try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        /// Sends bytes; gives back what the session was asked for by them.
        func send(_ text: String) throws -> [ScriptedExchange] {
            let count = self.session.exchanges.value.count
            try self.channel.writeInbound(ByteBuffer(string: text))
            return Array(self.session.exchanges.value.dropFirst(count))
        }

        /// What the client got since it was last asked.
        func received() throws -> String {
            self.loop.run()
            var text = ""
            while let bytes = try self.channel.readOutbound(as: ByteBuffer.self) {
                text += String(buffer: bytes)
            }
            return text
        }

        /// Has a request asked and answered; gives back what the session was told of it, as text.
        func ask(_ request: String) throws -> (told: String, answer: String) {
            let told = try self.send(request).map { exchange in
                exchange.answer()
                let (request, options) = (exchange.request, exchange.options)
                let fields = String(decoding: request.fields.serialized(), as: UTF8.self)
                return "\(request.method) \(request.uri) \(request.bodyLength) \(fields)"
                    + " \(request.expectsContinue) \(options.cachePolicy as Any)\n"
            }
            return (told.joined(), try self.received())
        }

        func knows(_ request: String) -> Bool {
            let loop = self.connection.loop
            let bytes = ByteBuffer(string: request)
            return loop.understood.find(bytes, hash: loop.known.find(bytes).hash) != nil
        }
    }

    /// A head of the most bytes that are kept.
    private static let longest = get(
        "/" + String(repeating: "a", count: KnownRequest.longestHead - get().utf8.count))
    private static let local = "GET http://127.0.0.1:81/a HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n"

    @Test(
        "travel on and are logged as at first, kept or not",
        arguments: [
            (get(), true), ("\r\n" + get("/a%20b?c"), true), (Self.longest, true),
            (get("/a", "Cookie: a=1\r\n"), false),
            ("GET ftp://me:secret@a.example/a HTTP/1.1\r\nHost: a.example\r\n\r\n", false),
            (get("/a", "X-Own: 1\r\nConnection: x-own\r\n"), true), (Self.local, true),
            (get("/a", "Cache-Control: no-cache\r\nX: 1\r\nx: 2\r\n"), true),
            (get().replacing("GET", with: "HEAD"), true),
            (get().replacing("GET", with: "DELETE"), true),
            (get("/a", "Authorization: Basic c2U6Y3I=\r\n"), false),
            (get("/a", "Proxy-Authorization: Basic c2U6Y3I=\r\n"), false),
            (get("/a", "Via: 1.1 another\r\n"), false), (get("/a", "Max-Forwards: 3\r\n"), false),
            (get("/a", "Content-Length: 0\r\n"), true),
            (post("Content-Length: 2\r\n", "ab"), false),
            (get("/a", "Larder-Cache-Policy: reload-ignoring-local\r\n"), false),
            (get("/a", "Larder-Session: another\r\n"), false),
            (get("/a", "Expect: 100-continue\r\n"), false),
            (get("/a", "Connection: upgrade\r\nUpgrade: TLS/1.2\r\n"), false),
            (Self.longest.replacing("/aa", with: "/aaa"), false),
        ])
    func same(_ request: String, _ isKept: Bool) throws {
        let door = try Door()
        let first = try door.ask(request)
        for count in 2...5 {
            let next = try door.ask(request)
            #expect(next == first)
            #expect(door.knows(request) == isKept, "\(count)")
        }
        let entries = door.log.entries.value
        #expect(entries.count == 5)
        #expect(entries.allSatisfy { $0.request == entries[0].request && $0.uri == entries[0].uri })
        #expect(Set(entries.map(\.exchange)).count == 5)
        // What was not parsed again are the very fields.
        let last = entries.suffix(2).compactMap(\.request?.fields)
        let sent = door.session.exchanges.value.suffix(2).map(\.request.fields)
        try #require(last.count == 2 && sent.count == 2)
        #expect(last[0].isIdentical(to: last[1]) == isKept)
        #expect(sent[0].isIdentical(to: sent[1]) == isKept)
        _ = try door.channel.finish()
    }

    @Test("are those with the same bytes, alone in their read")
    func bytes() throws {
        let door = try Door()
        for _ in 0..<3 { _ = try door.ask(get("/a")) }
        #expect(door.knows(get("/a")))
        #expect(!door.knows(get("/b")) && !door.knows(get("/a", "X: 1\r\n")))
        // Glued together, and torn apart at every byte, as often as makes a request known.
        let glued = get("/a") + get("/b") + get("/a")
        for _ in 0..<4 {
            #expect(try door.send(glued).map(\.request.uri.pathAndQuery) == ["/a"])
            for path in ["/a", "/b", "/a"] {
                let exchange = try #require(door.session.exchanges.value.last)
                #expect(exchange.request.uri.pathAndQuery == path)
                exchange.answer()
                #expect(try door.received().hasPrefix("HTTP/1.1 200 "))
            }
        }
        let text = Array(get("/a").utf8)
        for count in 1..<text.count {
            let halves = [text[..<count], text[count...]]
                .map { String(decoding: $0, as: UTF8.self) }
            for _ in 0..<4 {
                #expect(try door.send(halves[0]).isEmpty)
                let exchange = try #require(try door.send(halves[1]).first)
                #expect(exchange.request.uri.pathAndQuery == "/a")
                exchange.answer()
                #expect(try door.received().hasPrefix("HTTP/1.1 200 "))
            }
            #expect(halves.allSatisfy { !door.knows($0) })
        }
        #expect(!door.knows(glued))
        _ = try door.channel.finish()
    }

    /// Requests of which most are kept, and others that differ from them by little.
    private static func requests(_ count: Int, _ numbers: inout SplitMix64) -> [String] {
        let fields = [
            "X-A: 1", "X-A: 2", "Cookie: a=1", "Cache-Control: no-cache", "Via: 1.1 b",
            "Authorization: Basic YQ==", "Max-Forwards: 0", "Max-Forwards: 2", "Connection: x-a",
            "Connection: close", "Expect: 100-continue", "Range: bytes=0-3", "Forwarded: for=a",
            "Larder-Session: a", "Content-Length: 0", "Host: b.example", "TE: trailers", "a b: c",
        ]
        return (0..<count).map { _ in
            let lines = (0..<Int.random(in: 0...2, using: &numbers))
                .compactMap { _ in fields.randomElement(using: &numbers) }
            let method =
                ["GET", "GET", "GET", "HEAD", "PUT", "OPTIONS", "TRACE"]
                .randomElement(using: &numbers) ?? "GET"
            let path = ["/a", "/b"].randomElement(using: &numbers) ?? "/"
            return get(path, lines.map { $0 + "\r\n" }.joined()).replacing("GET", with: method)
        }
    }

    @Test(
        "come to what a loop that knows none makes of them",
        arguments: 1...8 as ClosedRange<UInt64>)
    func knowing(_ seed: UInt64) throws {
        var numbers = SplitMix64(seed: seed)
        let requests = Self.requests(12, &numbers)
        var door = try Door()
        for _ in 0..<150 {
            let request = requests.randomElement(using: &numbers) ?? get()
            let plain = try Door()
            let outcome = try door.ask(request)
            #expect(try outcome == plain.ask(request))
            #expect(door.channel.isActive == plain.channel.isActive)
            _ = try? plain.channel.finish()
            if !door.channel.isActive { door = try Door(beside: door) }
        }
        _ = try? door.channel.finish()
    }

    /// Lets those that come by a socket go to no address.
    private final class AddressRules: AccessPolicy {
        let generation: UInt64? = 1
        let judgesAddresses = true

        func judge(_ query: AccessQuery) -> AccessVerdict {
            query.client.isUnix && query.address != nil ? .denied(rule: "a socket") : .allowed
        }
    }

    @Test("are those of the client that asks now, and of its listener")
    func client() throws {
        let address = try #require(IPAddress("192.0.2.7"))
        let door = try Door(
            access: AddressRules(), client: .ip(address, text: "192.0.2.7", port: 7))
        let other = try Door(
            options: ListenerOptions(cachePolicy: .reloadIgnoringLocal), beside: door)
        for _ in 0..<3 { _ = try door.ask(get("/a")) }
        #expect(door.knows(get("/a")))
        for _ in 0..<2 {
            for (end, isOther) in [(door, false), (other, true)] {
                let exchange = try #require(try end.send(get("/a")).first)
                let destinations = try #require(exchange.request.destinations)
                let objection = destinations.objection(
                    .get, exchange.request.uri, at: "192.0.2.1")
                #expect((objection != nil) == isOther)
                #expect((exchange.options.cachePolicy == .reloadIgnoringLocal) == isOther)
                exchange.answer()
                _ = try end.received()
            }
        }
        for end in [door, other] { _ = try end.channel.finish() }
    }

    @Test("are judged anew once the access rules are others, and not before")
    func access() throws {
        let access = ReplaceableAccess()
        let door = try Door(access: access)
        for _ in 0..<3 { _ = try door.ask(get("/a")) }
        let judged = access.judged.load(ordering: .relaxed)
        for _ in 0..<3 { _ = try door.ask(get("/a")) }
        #expect(access.judged.load(ordering: .relaxed) == judged)
        access.deny()
        #expect(try door.send(get("/a")).isEmpty)
        #expect(try door.received().hasPrefix("HTTP/1.1 403 "))
        #expect(door.log.entries.value.last?.isDenied == true)
        _ = try door.channel.finish()
    }

    @Test("are the proxy's own where it is reached there")
    func own() throws {
        let door = try Door()
        for _ in 0..<3 { _ = try door.ask(Self.local) }
        #expect(door.knows(Self.local))
        let other = try Door(own: 81, beside: door)
        #expect(try other.send(Self.local).isEmpty)
        #expect(try other.received().hasPrefix("HTTP/1.1 404 "))
        for end in [door, other] { _ = try end.channel.finish() }
    }

    @Test("are not kept where what travels on names the client")
    func forwarded() throws {
        let door = try Door(addsForwarded: true)
        for _ in 0..<3 { #expect(try door.ask(get("/a")).told.contains("Forwarded: ")) }
        #expect(!door.knows(get("/a")))
        _ = try door.channel.finish()
    }

    @Test("are kept once they have come twice, counted with what they hold")
    func cost() throws {
        let costs = try [10, 1_010].map { length in
            let door = try Door()
            let text = String(repeating: "a", count: length)
            let lines = String(repeating: "y:\r\n", count: length / 10)
            let request = get("/\(text)", "X: \(text)\r\n\(lines)")
            _ = try door.ask(request)
            #expect(door.connection.loop.understood.bytes == 0)
            _ = try door.ask(request)
            let cost = door.connection.loop.understood.bytes
            _ = try door.ask(request)
            #expect(door.connection.loop.understood.bytes == cost)
            #expect(door.connection.loop.known.bytes == 0)
            _ = try door.channel.finish()
            return cost
        }
        // Path and field in the bytes, the path by itself, the field in both heads; lines in both heads.
        #expect(costs[1] - costs[0] >= 5 * 1_000 + 2 * 100 * MemoryLayout<Fields.Line>.stride)
    }
}
