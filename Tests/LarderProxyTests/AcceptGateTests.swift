import NIOCore
import NIOEmbedded
import Testing

@testable import LarderProxy

@Suite("The door to new connections")
struct AcceptGateTests {
    /// A gate on a loop whose time is the test's, with the count that it asks.
    final class Door {
        let loop = EmbeddedEventLoop()
        let count: ConnectionCount
        let listener: EmbeddedChannel
        /// Places that idle connections were asked for, each time.
        let asked = Event<[Int]>([])
        let failures = Event<[AcceptFailure]>([])

        init(places: Int) throws {
            let count = ConnectionCount(maximum: places)
            self.count = count
            let (asked, failures) = (self.asked, self.failures)
            count.whenFull { places in asked.change { $0.append(places) } }
            let gate = AcceptGate(count: count) { failure, _ in
                failures.change { $0.append(failure) }
            }
            self.listener = EmbeddedChannel(handler: gate, loop: self.loop)
            try self.listener.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        /// A client that connects.
        func connects() -> EmbeddedChannel {
            let client = EmbeddedChannel(loop: self.loop)
            self.listener.pipeline.fireChannelRead(client as any Channel)
            return client
        }

        func fails(_ code: CInt) {
            self.listener.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
        }

        /// How many were let through since this was asked last.
        func admitted() throws -> Int {
            self.loop.run()
            var count = 0
            while let _: any Channel = try self.listener.readInbound() { count += 1 }
            return count
        }

        /// Whether the listener is asked for connections.
        var reads: Bool {
            let option = self.listener.options.last {
                $0.option is ChannelOptions.Types.AutoReadOption
            }
            return option?.value as? Bool ?? true
        }
    }

    private static let emfile: CInt = 24
    private static let connectionAborted: CInt = 103

    @Test("asks idle connections for as many places as are missing, each of them once")
    func missing() throws {
        let door = try Door(places: 4)
        let first = (0..<4).map { _ in door.connects() }
        _ = (0..<16).map { _ in door.connects() }
        #expect(try door.admitted() == 4)
        // The rest of the batch had not come yet.
        #expect(door.asked.value == [1])
        try first[0].close().wait()
        #expect(try door.admitted() == 1)
        #expect(door.asked.value == [1, 15])
        // What was asked for is on its way.
        try first[1].close().wait()
        #expect(try door.admitted() == 1)
        #expect(door.asked.value == [1, 15])
        // Some places were not there to be given.
        door.count.foundNoRoom(for: 10)
        try first[2].close().wait()
        #expect(try door.admitted() == 1)
        #expect(door.asked.value == [1, 15, 10])
        #expect(door.count.open == 4)
    }

    @Test("does not ask again at once where there is no descriptor left (accept(2))")
    func exhausted() throws {
        let door = try Door(places: 100)
        let client = door.connects()
        #expect(try door.admitted() == 1)
        door.fails(Self.emfile)
        door.fails(Self.emfile)
        #expect(!door.reads)
        #expect(door.asked.value == [16])
        #expect(door.count.isCrowded)
        door.loop.advanceTime(by: .milliseconds(999))
        #expect(!door.reads)
        door.loop.advanceTime(by: .milliseconds(1))
        #expect(door.reads)
        // There are places, whether anybody has left or not.
        _ = door.connects()
        #expect(try door.admitted() == 1)
        door.fails(Self.emfile)
        #expect(!door.reads)
        try client.close().wait()
        door.loop.run()
        #expect(door.reads)
        #expect(door.failures.value == [.exhausted, .exhausted, .exhausted])
    }

    @Test("stays as it is for a client that has gone before it was accepted")
    func passing() throws {
        let door = try Door(places: 1)
        door.fails(Self.connectionAborted)
        #expect(door.reads)
        #expect(door.failures.value.isEmpty)
    }

    @Test("lets those in first that wait, before it asks for more")
    func bothFull() throws {
        let door = try Door(places: 1)
        let first = door.connects()
        let second = door.connects()
        door.fails(Self.emfile)
        door.loop.advanceTime(by: .seconds(2))
        #expect(try door.admitted() == 1)
        #expect(!door.reads)
        try first.close().wait()
        #expect(try door.admitted() == 1)
        #expect(door.reads)
        try second.close().wait()
        door.loop.run()
        #expect(door.count.open == 0)
    }

    @Test("says that nothing can be accepted once an hour, and counts all of it")
    func said() {
        var trouble = AcceptTrouble()
        let begin = NIODeadline.uptimeNanoseconds(1)
        let said = [0, 59, 60, 60].map { trouble.failed(at: begin + .minutes($0)) }
        #expect(said == [true, false, true, false])
        #expect(trouble.count == 4)
    }
}
