import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("The times of transfers")
struct DeadlineTests {
    private func at(_ seconds: UInt64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    @Test("expire in the order of their moments, each kind after its own time")
    func order() {
        var configuration = TransferConfiguration()
        configuration.connectTimeout = .seconds(10)
        configuration.stallTimeout = .seconds(3)
        let deadlines = Deadlines(configuration)
        let entries = (0..<3).map { WaitEntry(id: UInt64($0)) }
        deadlines.enter(entries[0], .handshake, self.at(0))
        deadlines.enter(entries[1], .receiving, self.at(1))
        deadlines.enter(entries[2], .receiving, self.at(2))
        #expect(deadlines.next == self.at(4))
        let early = deadlines.takeExpired(self.at(3))
        #expect(early == nil)
        deadlines.enter(entries[1], .receiving, self.at(3))  // It progressed.
        #expect(deadlines.next == self.at(5))
        let first = deadlines.takeExpired(self.at(5))
        #expect(first?.id == 2 && first?.wait == .receiving)
        deadlines.leave(entries[1])
        let second = deadlines.takeExpired(self.at(10))
        #expect(second?.id == 0 && second?.wait == .handshake)
        #expect(deadlines.next == nil)
        let late = deadlines.takeExpired(self.at(1000))
        #expect(late == nil)
    }

    @Test(
        "name the bound that holds: where silence has a limit, that one in place of two others",
        arguments: [
            (Wait.name, UpstreamFailure.Limit.resolve, UpstreamFailure.Limit.resolve),
            (.handshake, .connect, .connect), (.tunnel, .response, .response),
            (.head, .response, .idle), (.sending, .stall, .idle), (.receiving, .stall, .idle),
            (.resource, nil, nil), (.connection, nil, nil),
        ] as [(Wait, UpstreamFailure.Limit?, UpstreamFailure.Limit?)])
    func bounds(
        _ wait: Wait, _ limit: UpstreamFailure.Limit?, _ inSilence: UpstreamFailure.Limit?
    ) {
        var configuration = TransferConfiguration()
        #expect(wait.failure(configuration)?.limit == limit)
        configuration.idleTimeout = .seconds(1)
        #expect(wait.failure(configuration)?.limit == inSilence)
    }

    @Test("of a session: waiting for data and for the whole resource (timeoutInterval…)")
    func session() {
        var configuration = TransferConfiguration()
        #expect(Wait.resource.limit(configuration) == nil)
        configuration.idleTimeout = .seconds(7)
        configuration.resourceTimeout = .seconds(60)
        for wait in [Wait.head, .sending, .receiving] {
            #expect(wait.limit(configuration) == .seconds(7))
        }
        #expect(Wait.handshake.limit(configuration) == configuration.connectTimeout)
        #expect(Wait.tunnel.limit(configuration) == configuration.tunnelTimeout)
        let deadlines = Deadlines(configuration)
        let waiting = WaitEntry(id: 5)
        let lifetime = WaitEntry(id: 5)
        deadlines.enter(lifetime, .resource, self.at(0))
        // Progress without end does not put off the end of the resource's time.
        for second in 1..<60 { deadlines.enter(waiting, .receiving, self.at(UInt64(second))) }
        #expect(deadlines.next == self.at(60))
        let expired = deadlines.takeExpired(self.at(60))
        #expect(expired?.id == 5 && expired?.wait == .resource)
        #expect(Wait.resource.failure(TransferConfiguration())?.kind == .httpResponseTimeout)
    }

    @Test("of a request that others led to count from the first of them")
    func chained() {
        var configuration = TransferConfiguration()
        configuration.resourceTimeout = .seconds(60)
        let deadlines = Deadlines(configuration)
        let entries = (0..<4).map { WaitEntry(id: UInt64($0)) }
        for (index, began) in [50, 100, 70, 10].enumerated() {
            deadlines.enter(entries[index], .resource, self.at(100) - .seconds(100 - began))
        }
        #expect(deadlines.next == self.at(70))
        deadlines.leave(entries[2])
        deadlines.enter(entries[2], .resource, self.at(70))
        var order: [UInt64] = []
        while let expired = deadlines.takeExpired(self.at(1000)) { order.append(expired.id) }
        #expect(order == [3, 0, 2, 1])
        #expect(self.at(5) - .seconds(6) == self.at(0))
    }

    @Test("are over at once for a request whose predecessors took all of it")
    func usedUp() async throws {
        let origin = try ScriptedOrigin { _ = $0.waitForEnd() }
        var request = origin.request()
        request.elapsed = .seconds(60)
        let record = try await withUpstream({ $0.resourceTimeout = .seconds(60) }) {
            await $0.answer(to: request)
        }
        #expect(record.failure == Wait.resource.failure(TransferConfiguration()))
    }

    @Test("without a limit are not kept")
    func unlimited() {
        let deadlines = Deadlines(TransferConfiguration())
        let entry = WaitEntry(id: 1)
        deadlines.enter(entry, .resource, self.at(0))
        #expect(deadlines.next == nil)
        #expect(entry.wait == nil)
    }

    @Test("cut a body that goes on past the time of the whole resource", .timeLimit(.minutes(1)))
    func endless() async throws {
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            while connection.write([UInt8](repeating: 0x78, count: 1000)) {}
        }
        let record = try await withUpstream({ $0.resourceTimeout = .seconds(1) }) {
            await $0.answer(to: origin.request())
        }
        #expect(record.head?.status == .ok)
        #expect(record.body.readableBytes > 0)
        #expect(record.failure?.kind == .httpResponseTimeout)
        #expect(record.trailers == nil)
    }
}
