import LarderHTTP
import Testing

@testable import LarderTransfer

/// A loop whose turns and clock are the test's.
@Suite("A place for the look-up of a name", .timeLimit(.minutes(2)))
struct LookupPlaceTests {
    private let recorder = Recorder()

    private func order(
        _ id: UInt64, host: String, patience: Duration, at port: LoopPort
    ) -> FetchOrder {
        var request = Request(
            method: .get, uri: TargetURI(scheme: .http, host: host, pathAndQuery: "/"))
        request.transfer.idleTimeout = patience
        return FetchOrder(
            fetch: CurlFetch(id: id, port: port), request: request, content: nil,
            receiver: self.recorder, dial: nil)
    }

    @Test("goes to nobody whose time runs out in the turn in which it is free")
    func over() throws {
        var configuration = TransferConfiguration()
        configuration.nameLookups = 1
        configuration.resolveTimeout = .seconds(600)
        let runner = try TransferRunner(endsWithLoop: true)
        let port = LoopPort(configuration, mailbox: runner.mailbox)
        let loop = try runner.open(port)
        defer { _ = loop.tearDown() }
        // Somebody's look-up has the only place, and may have it for 600 seconds.
        let start = MonotonicTime.read()
        let isTaken = loop.lookups.take("one.invalid:80", for: 1, start)
        #expect(isTaken)
        for (id, host, patience) in [
            (2, "two.invalid", Duration.seconds(600)), (3, "three.invalid", .seconds(6_000)),
        ] as [(UInt64, String, Duration)] {
            loop.accept(.start(self.order(id, host: host, patience: patience, at: port)))
        }
        loop.turn(start)
        let waiting = loop.transfers.entries.filter { $0.value.awaitedName != nil }.map(\.key)
        #expect(waiting.sorted() == [2, 3])
        loop.turn(start + .seconds(601))
        #expect(loop.transfers.entries.map(\.key) == [3])
        #expect(loop.transfers[3]?.hasLookupPlace == true)
        #expect(loop.lookups.count == 1)
    }
}
