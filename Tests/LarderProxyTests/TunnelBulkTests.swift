import NIOCore
import SeededNumbers
import Testing

@testable import LarderProxy

@Suite("Tunnels that carry much", .serialized)
struct TunnelBulkTests {
    /// More than a socket that is not read takes.
    private static let total = 6 << 20

    private static let numbers: ByteBuffer = {
        var (numbers, buffer) = (SplitMix64(seed: 1), ByteBuffer())
        let words = (0..<Self.total / 8 + 1_000).map { _ in numbers.next() }
        unsafe words.withUnsafeBytes { _ = unsafe buffer.writeBytes($0) }
        return buffer
    }()

    /// Random bytes, others for each index: no two stretches are the same.
    private static func stream(_ index: Int) -> ByteBuffer {
        Self.numbers.getSlice(at: index * 13, length: Self.total) ?? ByteBuffer()
    }

    private struct Ends {
        let client: Peer
        let far: Peer
        /// The length of the proxy's answer, before what the origin sends.
        let head: Int

        func received() -> ByteBuffer {
            ByteBuffer(bytes: self.client.seen.value.bytes.dropFirst(self.head))
        }
    }

    /// Runs `body` with a proxy whose tunnels have so many pipes, none of which may be missing after it.
    ///
    /// - Returns: how many it has opened and kept.
    @discardableResult
    private static func run(
        pipes: Int = ProxyConfiguration().tunnelPipes,
        _ body: (Fixture, RawOrigin) async throws -> Void
    ) async throws -> Int {
        var loops: [NIOLoopBoundBox<LoopState>] = []
        try await TunnelTests.run(configure: { $0.tunnelPipes = pipes }) { proxy, origin, _ in
            loops = proxy.server.loops
            try await body(proxy, origin)
        }
        var kept = 0
        for loop in loops {
            let (lent, count) = try await loop.eventLoop.submit {
                (loop.value.pipes.lent, loop.value.pipes.count)
            }.get()
            #expect(lent == 0)
            kept += count
        }
        return kept
    }

    private static let answer = "HTTP/1.1 200 Connection established\r\n"

    /// A tunnel whose client takes nothing beyond the answer until told to.
    private static func open(_ proxy: Fixture, _ origin: RawOrigin, _ index: Int) async throws
        -> Ends
    {
        let client = try await proxy.connect(reads: false)
        try await client.send(TunnelTests.connect(origin))
        let far = try await origin.accepted(index)
        try client.channel.read()
        let seen = try await client.received("\r\n\r\n")
        #expect(seen.hasPrefix(Self.answer))
        return Ends(client: client, far: far, head: seen.utf8.count)
    }

    @Test(
        "bring all, in order, to who takes it late, with as many pipes as there are",
        arguments: [0, 1, 32])
    func inOrder(pipes: Int) async throws {
        let count = 2
        let kept = try await Self.run(pipes: pipes) { proxy, origin in
            var ends: [Ends] = []
            for index in 0..<count { ends.append(try await Self.open(proxy, origin, index)) }
            for (index, end) in ends.enumerated() {
                try end.far.push(Self.stream(index))
                try end.client.push(Self.stream(100 + index))
            }
            for (index, end) in ends.enumerated() {
                try await end.far.seen.wait(for: "all") { $0.bytes.count == Self.total }
                try await end.client.resumeReading()
                try await end.client.seen.wait(for: "all") {
                    $0.bytes.count == end.head + Self.total
                }
                #expect(ByteBuffer(bytes: end.far.seen.value.bytes) == Self.stream(100 + index))
                #expect(end.received() == Self.stream(index))
                try await end.far.endOutput()
                try await end.client.endOutput()
                let entry = try await proxy.log.entry(index)
                #expect(entry.requestBodyBytes == UInt64(Self.total))
                #expect(entry.responseBodyBytes == UInt64(Self.total))
                #expect(entry.failure == nil)
            }
            #expect(proxy.server.statistics().bytesIn >= UInt64(count * Self.total))
            #expect(proxy.server.statistics().bytesOut >= UInt64(count * Self.total))
        }
        // That so much went through NIO alone would be a failure, too.
        #expect((kept > 0) == (pipes > 0))
    }

    @Test("take no more in a turn where there is room again at once")
    func turns() {
        var direction = Tunnel.Splicing.Direction()
        let piece = Tunnel.Splicing.turn / 4 + 1
        for count in 1...4 {
            direction.note(SplicePipe.Movement(taken: piece, stop: .outputIsFull))
            #expect((direction.allowance <= 0) == (count == 4))
        }
        for stop in [SplicePipe.Stop.inputIsEmpty, .limit, .inputEnded] {
            direction.note(SplicePipe.Movement(taken: piece, stop: .outputIsFull))
            direction.note(SplicePipe.Movement(taken: piece, stop: stop))
            #expect(direction.allowance == Tunnel.Splicing.turn)
        }
    }

    @Test("end for the other side behind all that was sent before", arguments: [true, false])
    func endsBehind(byOrigin: Bool) async throws {
        try await Self.run { proxy, origin in
            let ends = try await Self.open(proxy, origin, 0)
            let much = Self.stream(7)
            if byOrigin {
                try ends.far.push(much)
                async let ended: Void = ends.far.endOutput()
                try await ends.client.resumeReading()
                try await ended
                try await ends.client.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
                #expect(ends.received() == much)
                // The way back is open still.
                try await ends.client.send("late")
                try await ends.far.received("late")
                try await ends.client.endOutput()
            } else {
                try ends.client.push(much)
                try await ends.client.endOutput()
                try await ends.far.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
                #expect(ByteBuffer(bytes: ends.far.seen.value.bytes) == much)
                try await ends.client.resumeReading()
                try await ends.far.send("late")
                try await ends.client.received("late")
                try await ends.far.endOutput()
            }
            let entry = try await proxy.log.entry()
            #expect(entry.failure == nil)
            let (long, short) = (UInt64(Self.total), UInt64(4))
            #expect(entry.responseBodyBytes == (byOrigin ? long : short))
            #expect(entry.requestBodyBytes == (byOrigin ? short : long))
        }
    }

    @Test("bring what had come when the origin closes, then the end")
    func originCloses() async throws {
        try await Self.run { proxy, origin in
            let ends = try await Self.open(proxy, origin, 0)
            let much = Self.stream(8)
            try ends.far.push(much)
            try await ends.client.resumeReading()
            try await ends.client.seen.wait(for: "all") { $0.bytes.count == ends.head + Self.total }
            try await ends.far.close()
            try await ends.client.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
            #expect(ends.received() == much)
        }
    }

    @Test(
        "are lost for both when a connection is reset while much is on its way",
        arguments: [true, false], [0, 1, 32])
    func reset(byClient: Bool, pipes: Int) async throws {
        try await Self.run(pipes: pipes) { proxy, origin in
            for index in 0..<2 {
                let ends = try await Self.open(proxy, origin, index)
                let much = Self.stream(index)
                try ends.far.push(much)
                try ends.client.push(Self.stream(100 + index))
                try await ends.far.seen.wait(for: "much") { $0.bytes.count > Self.total / 4 }
                try await (byClient ? ends.client : ends.far).reset()
                // It may have been closed already.
                if !byClient { try? await ends.client.resumeReading() }
                let other = byClient ? ends.far : ends.client
                try await other.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
                let got = ends.received()
                #expect(got == much.getSlice(at: 0, length: got.readableBytes))
                let entry = try await proxy.log.entry(index)
                #expect(entry.responseBodyBytes <= UInt64(Self.total))
                #expect(entry.responseBodyBytes >= UInt64(got.readableBytes))
            }
        }
    }
}
