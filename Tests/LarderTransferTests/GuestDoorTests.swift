import Glibc
import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

/// When guests are let in, and what becomes of the thread.
@Suite("The door of a sleeping loop", .timeLimit(.minutes(10)))
struct GuestDoorTests {
    /// A loop that nobody runs.
    private func idleLoop() throws -> (TransferRunner, LoopPort, TransferLoop) {
        var configuration = TransferConfiguration()
        configuration.sharesThreads = true
        let runner = try TransferRunner(endsWithLoop: true)
        let port = LoopPort(configuration, mailbox: runner.mailbox)
        return (runner, port, try runner.open(port))
    }

    private func pair() throws -> (Int32, Int32) {
        var pair: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        return (pair[0], pair[1])
    }

    private func order(_ port: LoopPort, to host: String = "near") -> FetchOrder {
        FetchOrder(
            fetch: CurlFetch(id: 1, port: port),
            request: Request(
                method: .get, uri: TargetURI(scheme: .http, host: host, pathAndQuery: "/")),
            content: nil, receiver: Recorder(), dial: nil)
    }

    @Test("is open where a plain connection lies idle, and nothing else is there")
    func connections() throws {
        let (runner, _, loop) = try self.idleLoop()
        try withExtendedLifetime(runner) {
            let (input, none): (Int32, Int32) = (1, 4)  // CURL_POLL_IN, CURL_POLL_REMOVE
            #expect(!loop.mayHaveGuest)
            let (plain, far) = try self.pair()
            loop.poller.note(plain, isPlain: true)
            #expect(!loop.mayHaveGuest)
            #expect(loop.poller.watch(plain, input, isHeld: false, isHTTP1: false))
            #expect(!loop.mayHaveGuest)
            #expect(loop.poller.watch(plain, none, isHeld: false, isHTTP1: false))
            #expect(loop.mayHaveGuest)
            loop.poller.note(far, isPlain: false)
            #expect(!loop.mayHaveGuest)
            #expect(loop.poller.close(far) == 0)
            #expect(loop.mayHaveGuest)
            #expect(loop.poller.watch(plain, input, isHeld: false, isHTTP1: false))
            #expect(!loop.mayHaveGuest)
            #expect(loop.poller.watch(plain, none, isHeld: true, isHTTP1: false))
            #expect(!loop.mayHaveGuest)
            #expect(loop.poller.close(plain) == 0)
        }
    }

    @Test("is shut where a socket has something to say, which comes first")
    func readiness() throws {
        let (runner, port, loop) = try self.idleLoop()
        let (plain, far) = try self.pair()
        loop.poller.rest(plain)
        var byte: UInt8 = 0x78
        #expect(unsafe write(far, &byte, 1) == 1)
        #expect(loop.mayHaveGuest)
        #expect(runner.refuses(self.order(port), at: port))
        #expect(loop.transfers.isEmpty)
        #expect(loop.poller.close(plain) == 0)
        _ = close(far)
    }

    @Test("leaves a connection that the guest did not use as it was: what comes on it is seen")
    func unused() throws {
        let (runner, port, loop) = try self.idleLoop()
        let (plain, far) = try self.pair()
        loop.poller.rest(plain)
        #expect(!runner.refuses(self.order(port, to: "127.0.0.1"), at: port))
        #expect(loop.poller.hasIdleSockets)
        var byte: UInt8 = 0x78
        #expect(unsafe write(far, &byte, 1) == 1)
        let ready = (0..<runner.epoll.wait(milliseconds: 0)).compactMap { runner.epoll.ready($0) }
        #expect(ready.contains { $0.descriptor == plain })
        _ = loop.tearDown()
        #expect(loop.poller.close(plain) == 0)
        _ = close(far)
    }

    @Test("is shut to guests for loops that the thread does not have")
    func unknown() throws {
        let (runner, _, _) = try self.idleLoop()
        let stranger = LoopPort(TransferConfiguration(), mailbox: runner.mailbox)
        #expect(runner.refuses(self.order(stranger), at: stranger))
    }

    /// What the thread would wake up by: one of a mailbox's descriptors.
    private func isWoken(_ mailbox: TransferMailbox) -> Bool {
        var watched = pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&watched, 1, 0) == 1
    }

    @Test("wakes the thread for a command that came while a guest was there")
    func commands() throws {
        let mailbox = try TransferMailbox()
        let port = LoopPort(TransferConfiguration(), mailbox: mailbox)
        #expect(mailbox.fallAsleep(until: nil))
        #expect(mailbox.enter())
        #expect(mailbox.post(TransferMessage(port: port, command: .resume(1))))
        #expect(!self.isWoken(mailbox))
        #expect(!mailbox.enter())
        mailbox.leave(leavesWork: false, next: nil)
        #expect(self.isWoken(mailbox))
        #expect(!mailbox.enter())
        #expect(!mailbox.fallAsleep(until: nil))
    }

    @Test("lets the thread sleep on behind a guest that leaves nothing to do")
    func nothing() throws {
        let mailbox = try TransferMailbox()
        #expect(mailbox.fallAsleep(until: nil))
        for _ in 0..<3 {
            #expect(mailbox.enter())
            mailbox.leave(leavesWork: false, next: nil)
            #expect(!self.isWoken(mailbox))
        }
        #expect(mailbox.enter())
        mailbox.leave(leavesWork: true, next: nil)
        #expect(self.isWoken(mailbox))
    }

    @Test("is shut for good with the mailbox")
    func closed() throws {
        let mailbox = try TransferMailbox()
        #expect(mailbox.fallAsleep(until: nil))
        #expect(mailbox.close().isEmpty)
        #expect(!mailbox.enter())
    }

    /// What is not for guests, though the loop is.
    enum Unsuited: CaseIterable { case content, secure, byParent, dial }

    @Test(
        "is shut to fetches that make a handshake or ask their client", arguments: Unsuited.allCases
    )
    func unsuited(_ kind: Unsuited) async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let runner = try TransferRunner(endsWithLoop: true)
        let entrance = GuestEntrance(runner)
        try TransferThread.start(runner, name: "larder-door")
        var configuration = TransferConfiguration()
        configuration.sharesThreads = true
        configuration.idleConnectionLifetime = .seconds(1000)
        configuration.parents = ParentRules([
            ParentRules.Rule(
                via: .parent(Parent(kind: .https, host: "127.0.0.1", port: 1))
            ) { host, _ in host == "far.example" },
            ParentRules.Rule(
                via: .parent(Parent(kind: .http, host: "127.0.0.1", port: 1))
            ) { host, _ in host == "plain.example" },
        ])
        let upstream = try CurlUpstream(configuration, at: entrance)
        func guests() -> UInt64 { upstream.statistics().begunByGuests }
        for _ in 0..<10 {
            // Until the thread sleeps, and lets guests in.
            let before = guests()
            var tries = 0
            while guests() == before, tries < 1_000 {
                tries += 1
                #expect(await upstream.answer(to: origin.request()).failure == nil)
            }
            let now = guests()
            #expect(now > before)
            switch kind {
            case .content:
                let request = origin.request(.post, "/", length: .known(1))
                _ = await upstream.answer(to: request, body: ScriptedContent(text: "x"))
            case .secure:
                let uri = TargetURI(
                    scheme: .https, host: "127.0.0.1", port: 1, pathAndQuery: "/")
                _ = await upstream.answer(to: Request(method: .get, uri: uri))
            case .byParent:
                let uri = TargetURI(scheme: .http, host: "far.example", pathAndQuery: "/")
                _ = await upstream.answer(to: Request(method: .get, uri: uri))
            case .dial:
                _ = await upstream.dialled("plain.example", 80)
            }
            #expect(guests() == now)
        }
        await withCheckedContinuation { done in upstream.shutdown { done.resume() } }
    }
}

extension TransferRunner {
    fileprivate func refuses(_ order: FetchOrder, at port: LoopPort) -> Bool {
        var answer: WholeResponse?
        return !self.begin(order, at: port, answer: &answer)
    }
}
