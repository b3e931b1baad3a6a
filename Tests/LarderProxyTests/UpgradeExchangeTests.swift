import LarderHTTP
import LarderSession
import NIOCore
import NIOEmbedded
import Testing

@testable import LarderProxy

@Suite("The answer of an origin that does not switch protocols (RFC 9110 §7.8)")
struct UpgradeExchangeTests {
    /// An origin's connection over which an upgrade was asked for, on a loop whose time is the test's.
    final class Asked {
        let loop = EmbeddedEventLoop()
        let channel: EmbeddedChannel
        let upgrade: UpgradeExchange
        private final class Outcomes {
            var feed: (any BodySource)?
            var failure: ExchangeFailure?
        }
        private let outcomes: Outcomes

        init(configure: (inout ProxyConfiguration) -> Void = { _ in }) throws {
            let origin = OriginConnection()
            self.channel = EmbeddedChannel(handler: origin, loop: self.loop)
            try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            var configuration = ProxyConfiguration()
            configure(&configuration)
            let outcomes = Outcomes()
            self.outcomes = outcomes
            self.upgrade = UpgradeExchange(
                context: try #require(origin.context), method: .get, configuration: configuration
            ) { outcome in
                switch outcome {
                case .answered(let answer):
                    if case .source(let source) = answer.body { outcomes.feed = source }
                case .failed(let failure): outcomes.failure = failure
                case .informational, .switched: break
                }
            }
            origin.mode = .upgrading(self.upgrade)
            let uri = TargetURI(scheme: .http, host: "a.example", port: 80, pathAndQuery: "/")
            self.upgrade.begin(Request(method: .get, uri: uri), protocols: ["websocket"])
        }

        func send(_ text: String) throws {
            try self.channel.writeInbound(ByteBuffer(string: text))
        }

        /// The content, as the client's connection reads it.
        var content: any BodySource { get throws { try #require(self.outcomes.feed) } }

        /// Why there is no answer.
        var failure: ExchangeFailure? { self.outcomes.failure }

        /// Reads what is there.
        ///
        /// - Returns: how many bytes, and what came behind them.
        func take() throws -> (Int, BodyStep) {
            let content = try self.content
            var count = 0
            while true {
                let step = content.next()
                guard case .piece(let piece) = step else {
                    self.loop.run()
                    return (count, step)
                }
                count += piece.readableBytes
            }
        }
    }

    @Test(
        "that is refused is told in words that none of it is in",
        arguments: [
            ("HTTP/1.1 101 secret\r\n", Self.wrongSwitch),
            ("HTTP/1.1 101 secret\r\nUpgrade: secret\r\n", Self.wrongSwitch),
            ("HTTP/1.1 101 secret\r\nUpgrade: websocket, secret/1\r\n", Self.wrongSwitch),
            ("HTTP/2.0 200 secret\r\n", Self.wrongVersion),
            ("HTTP/3.1 101 secret\r\nUpgrade: websocket\r\n", Self.wrongVersion),
        ])
    func refused(_ head: String, _ detail: String) throws {
        let asked = try Asked()
        try asked.send(head + "Connection: upgrade\r\n\r\n")
        let failure = try #require(asked.failure)
        #expect(failure.status == .badGateway)
        #expect(failure.error == .httpProtocolError)
        #expect(failure.detail == detail)
        _ = try? asked.channel.finish()
    }

    private static let wrongSwitch =
        "bad-status-line: 101 switches to no protocol, or to one that was not offered"
    private static let wrongVersion =
        "bad-version: a version other than HTTP/1 on a connection of HTTP/1"

    @Test(
        "leaves nothing behind that was passed on, however long it is",
        arguments: [
            ("Content-Length: 1048576\r\n\r\n", "#"), ("\r\n", "#"),
            ("Transfer-Encoding: chunked\r\n\r\n", "400\r\n#\r\n"),
            // Something is always left that cannot be understood yet.
            ("Transfer-Encoding: chunked\r\n\r\n4", "00\r\n#\r\n4"),
        ])
    func bounded(_ start: String, _ form: String) throws {
        let asked = try Asked()
        let piece = form.replacing("#", with: String(repeating: "x", count: 1_024))
        try asked.send("HTTP/1.1 200 OK\r\n" + start)
        var received = 0
        var largest = 0
        for _ in 0..<1_023 {
            try asked.send(piece)
            largest = max(largest, asked.upgrade.buffer.capacity)
            received += try asked.take().0
        }
        #expect(received == 1_023 * 1_024)
        #expect(largest <= 4_096)
        _ = try? asked.channel.finish()
    }

    @Test("is not said to stall while its client takes nothing, and is once it takes again")
    func resting() throws {
        let asked = try Asked { $0.requestBuffer = .kibibytes(4) }
        try asked.send("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        try asked.send(String(repeating: "x", count: 5_000))
        asked.loop.advanceTime(by: .hours(1))
        let (count, step) = try asked.take()
        #expect(count == 5_000)
        guard case .pending = step else { throw TimedOut(description: "\(step)") }
        asked.loop.advanceTime(by: .seconds(59))
        guard case .pending = try asked.content.next() else {
            throw TimedOut(description: "it ended before its time")
        }
        asked.loop.advanceTime(by: .seconds(1))
        guard case .failed(.upstream(let failure)) = try asked.content.next() else {
            throw TimedOut(description: "it goes on after its time")
        }
        #expect(failure.kind == .connectionReadTimeout)
        #expect(failure.detail == "the origin's answer stalled")
        #expect(!asked.channel.isActive)
        _ = try? asked.channel.finish()
    }
}
