import Dispatch
import Glibc
import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

/// What a guest does with an answer that is there before it leaves.
@Suite("Answers that come before a guest leaves", .timeLimit(.minutes(10)))
struct EarlyAnswerTests {
    /// How a fetch is made.
    enum Way: CaseIterable {
        /// Its receiver may be told at once.
        case plain
        /// It says nothing of that.
        case unasked
        /// Its observer wants to know what it took.
        case measured
    }

    @Test(
        "are told by the guest, where its receiver takes that, before its call returns",
        arguments: Way.allCases)
    func telling(_ way: Way) throws {
        let prompter = Prompter()
        let origin = try prompter.origin(
            answering: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
        let sleeper = try Sleeper()
        try sleeper.connect(to: origin)
        for number in 1...20 {
            let asker = Recorder(
                takesWholeResponses: true, mayBeAnsweredAtOnce: way != .unasked)
            var request = origin.request(.get, "/\(number)")
            request.destinations = prompter
            if way == .measured { request.observer = RecordingObserver() }
            let fetch = try #require(sleeper.begin(request, by: asker))
            #expect(asker.record.isOver == (way == .plain))
            if way == .plain {
                // Nobody is woken for what is over.
                fetch.resume()
                fetch.cancel()
                #expect(sleeper.isUndisturbed)
            }
            try sleeper.wake { asker.record.isOver }
            #expect(asker.record.text == "early" && asker.record.isWhole)
            #expect(asker.record.violations == [])
            #expect(sleeper.loop.transfers.isEmpty)
            #expect(sleeper.loop.poller.hasIdleSockets)
        }
        #expect(origin.connectionCount == 1)
        sleeper.end()
    }

    @Test("end their connection where more comes with them, which is nobody's answer")
    func excess() throws {
        let prompter = Prompter()
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        let origin = try prompter.origin(answering: answer + "early" + answer + "wrong")
        let sleeper = try Sleeper()
        try sleeper.connect(to: origin)
        let asker = Recorder(takesWholeResponses: true, mayBeAnsweredAtOnce: true)
        var request = origin.request(.get, "/")
        request.destinations = prompter
        #expect(sleeper.begin(request, by: asker) != nil)
        #expect(asker.record.text == "early" && asker.record.isWhole)
        // epoll does not tell of them: who is next looks first, and leaves the connection alone.
        #expect(!sleeper.runner.epoll.isReady)
        #expect(sleeper.begin(origin.request(.get, "/"), by: Recorder()) == nil)
        #expect(!sleeper.loop.poller.hasIdleSockets)
        try sleeper.connect(to: origin)
        #expect(origin.connectionCount == 2)
        sleeper.end()
    }

    /// On whose thread a fetch is begun, and who hears of it.
    enum Asker: CaseIterable {
        case guest
        /// A guest whose receiver does not take an answer at once.
        case unasked
        /// The loop's own thread.
        case loop
    }

    @Test(
        "leave their connection alone where they are more than is taken at once",
        arguments: Asker.allCases)
    func large(_ kind: Asker) throws {
        let prompter = Prompter()
        let size = 400_000
        let origin = try prompter.origin(
            answering: "HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n"
                + String(repeating: "x", count: size))
        let sleeper = try Sleeper()
        try sleeper.connect(to: origin)
        for number in 1...3 {
            let asker = Recorder(
                takesWholeResponses: true, mayBeAnsweredAtOnce: kind != .unasked)
            var request = origin.request(.get, "/\(number)")
            request.destinations = prompter
            if kind == .loop {
                sleeper.loop.accept(.start(sleeper.order(request, asker)))
            } else {
                #expect(sleeper.begin(request, by: asker) != nil)
            }
            try sleeper.wake { asker.record.isOver }
            #expect(asker.record.failure == nil)
            #expect(asker.record.body.readableBytes == size)
            #expect(asker.record.violations == [])
            #expect(sleeper.loop.transfers.isEmpty)
            // What has been idle is so again, and looked at.
            #expect(sleeper.loop.poller.hasIdleSockets)
        }
        #expect(origin.connectionCount == 1)
        sleeper.end()
    }

    @Test("leave their connection alone where the exchange before them ends at the same time")
    func behindHeldEnd() throws {
        let prompter = Prompter()
        // As much as is taken at once, and a little that libcurl then holds; and far more.
        let sizes = [140_000, 400_000]
        let origin = try prompter.origin(
            answering: sizes.map {
                "HTTP/1.1 200 OK\r\nContent-Length: \($0)\r\n\r\n"
                    + String(repeating: "x", count: $0)
            })
        let sleeper = try Sleeper()
        try sleeper.connect(to: origin)
        let (held, next) = (Recorder(pausesAfter: 0), Recorder())
        let first = sleeper.order(origin.request(.get, "/1"), held, by: prompter)
        sleeper.loop.accept(.start(first))
        try sleeper.wake { sleeper.loop.transfer(first.fetch.id)?.isHeld == true }
        held.wantAll()
        sleeper.loop.accept(.resume(first.fetch.id))
        sleeper.loop.turn(.read())
        // libcurl ends the one and begins the other in one call.
        sleeper.loop.accept(
            .start(sleeper.order(origin.request(.get, "/2"), next, by: prompter)))
        try sleeper.wake { next.record.isOver }
        for (recorder, size) in zip([held, next], sizes) {
            #expect(recorder.record.failure == nil)
            #expect(recorder.record.body.readableBytes == size)
        }
        #expect(origin.connectionCount == 1 && sleeper.loop.poller.hasIdleSockets)
        sleeper.end()
    }

    @Test("are nobody's where they lie behind one that was cancelled once libcurl had all of it")
    func behindCancelled() throws {
        let size = 140_000
        let answers = DispatchSemaphore(value: 0)
        let head = "HTTP/1.1 200 OK\r\nContent-Length: "
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write(head + "5\r\n\r\nusual")
            guard connection.readHead() != nil else { return }
            connection.write(
                head + "\(size)\r\n\r\n" + String(repeating: "x", count: size) + head
                    + "4\r\n\r\nevil")
            _ = connection.waitForEnd()
        }
        let other = try ScriptedOrigin { connection in
            guard connection.readHead() != nil,
                answers.wait(timeout: .now() + 120) == .success
            else { return }
            connection.write(head + "2\r\n\r\nok")
            _ = connection.waitForEnd()
        }
        let sleeper = try Sleeper()
        try sleeper.connect(to: origin)
        let held = Recorder(pausesAfter: 0)
        let (first, second) = (
            sleeper.order(origin.request(), held), sleeper.order(other.request(), Recorder())
        )
        for order in [first, second] { sleeper.loop.accept(.start(order)) }
        try sleeper.wake {
            sleeper.loop.transfer(first.fetch.id)?.isHeld == true
                && sleeper.loop.transfer(second.fetch.id)?.phase == .awaitingHead
        }
        held.wantAll()
        sleeper.loop.accept(.resume(first.fetch.id))
        sleeper.loop.turn(.read())
        // libcurl goes on with all that is due when it is called for one.
        answers.signal()
        for index in 0..<sleeper.runner.epoll.wait(milliseconds: 60_000) {
            guard let ready = sleeper.runner.epoll.ready(index) else { continue }
            sleeper.loop.ready(ready.descriptor, ready.events)
        }
        sleeper.loop.accept(.cancel(first.fetch.id))
        sleeper.loop.turn(.read())
        let next = Recorder()
        sleeper.loop.accept(.start(sleeper.order(origin.request(), next)))
        try sleeper.wake { next.record.isOver }
        #expect(next.record.text == "usual")
        sleeper.end()
    }

    /// When an origin answers, beside what it answers.
    enum Neighbour: CaseIterable {
        case whole, inParts, late
        /// It ends the connection, and answers on another.
        case gone
        /// To a receiver that does not take it at once.
        case unasked
    }

    @Test(
        "are waited for a moment where the origin is on this machine, and seldom where that is in vain",
        arguments: Neighbour.allCases)
    func neighbour(_ kind: Neighbour) throws {
        let (awaited, answered) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let goesOn = DispatchSemaphore(value: 0)
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write(answer + "usual")
            while connection.readHead() != nil {
                if kind != .unasked, kind != .late,
                    awaited.wait(timeout: .now() + 120) != .success
                {
                    return
                }
                switch kind {
                case .whole, .unasked: connection.write(answer + "early")
                case .inParts: connection.write(answer + "ea")
                case .late: break
                case .gone: connection.close()
                }
                answered.signal()
                guard kind == .inParts || kind == .late else { continue }
                guard goesOn.wait(timeout: .now() + 120) == .success else { return }
                connection.write(kind == .inParts ? "rly" : answer + "early")
            }
        }
        let sleeper = try Sleeper()
        var waits = 0
        sleeper.loop.awaitAnswer = { _, limit in
            #expect(limit == GuestPatience.longest)
            waits += 1
            guard kind != .late else { return false }
            awaited.signal()
            #expect(answered.wait(timeout: .now() + 120) == .success)
            return true
        }
        var patience = GuestPatience()
        var expected = 0
        try sleeper.connect(to: origin)
        for number in 1...5 {
            let asker = Recorder(
                takesWholeResponses: true, mayBeAnsweredAtOnce: kind != .unasked)
            #expect(sleeper.begin(origin.request(.get, "/\(number)"), by: asker) != nil)
            if kind != .unasked, patience.mayWait() {
                expected += 1
                patience.ended(isAnswered: kind == .whole)
            } else {
                awaited.signal()
            }
            #expect(waits == expected)
            #expect(asker.record.isOver == (kind == .whole))
            if kind == .whole { #expect(sleeper.isUndisturbed) }
            goesOn.signal()
            try sleeper.wake { asker.record.isOver }
            #expect(asker.record.text == (kind == .gone ? "usual" : "early"))
            #expect(asker.record.violations == [])
            #expect(sleeper.loop.transfers.isEmpty)
        }
        sleeper.end()
    }

    @Test(
        "leave field lines with their handle for the next request, but none that may be secret",
        arguments: [
            ("Accept", true), ("Pragma", true), ("X-Api-Key", false), ("Cookie", false),
            ("Authorization", false),
        ])
    func keptFields(_ name: String, _ isKept: Bool) throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nusual")
            }
        }
        let sleeper = try Sleeper()
        try sleeper.connect(to: origin)
        var request = origin.request()
        request.fields.append("User-Agent", "a")
        request.fields.append(name, "b")
        for _ in 1...2 {
            let recorder = Recorder()
            let order = sleeper.order(request, recorder)
            sleeper.loop.accept(.start(order))
            var handle: EasyHandle?
            try sleeper.wake {
                handle = handle ?? sleeper.loop.transfer(order.fetch.id)?.easy
                return recorder.record.isOver
            }
            #expect(recorder.record.text == "usual")
            guard let handle else { continue }
            #expect((handle.listed != nil) == isKept)
            #expect(unsafe (handle.fields.link() != nil) == isKept)
        }
        sleeper.end()
    }

    @Test(
        "leave their connection hushed for the next guest, but for its end and for the thread",
        arguments: [false, true])
    func hushed(ends: Bool) throws {
        let (awaited, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isDone = DispatchSemaphore(value: 0)
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        let origin = try ScriptedOrigin { connection in
            for text in ["usual", "early", "early"] where connection.readHead() != nil {
                if text == "early", awaited.wait(timeout: .now() + 120) != .success { return }
                connection.write(head + text)
            }
            guard goesOn.wait(timeout: .now() + 120) == .success else { return }
            if ends { connection.close() } else { connection.write("evil") }
            isDone.signal()
            _ = goesOn.wait(timeout: .now() + 120)
        }
        let sleeper = try Sleeper()
        var used: Int32 = -1
        func awaitBytes() -> Bool {
            var one = pollfd(fd: used, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&one, 1, 120_000) == 1
        }
        sleeper.loop.awaitAnswer = { socket, _ in
            used = socket
            awaited.signal()
            return awaitBytes()
        }
        try sleeper.connect(to: origin)
        for _ in 1...2 {
            let asker = Recorder(takesWholeResponses: true, mayBeAnsweredAtOnce: true)
            #expect(sleeper.begin(origin.request(), by: asker) != nil)
            #expect(asker.record.text == "early")
            #expect(sleeper.isUndisturbed && sleeper.loop.poller.isHushedIdle)
        }
        goesOn.signal()
        #expect(isDone.wait(timeout: .now() + 120) == .success && awaitBytes())
        if ends {
            try sleeper.wake { !sleeper.loop.poller.hasIdleSockets }
        } else {
            #expect(!sleeper.runner.epoll.isReady)
            // The thread looks for itself before it does anything.
            _ = sleeper.runner.mailbox.wakeUp()
            sleeper.loop.turn(.read())
            #expect(!sleeper.loop.poller.hasIdleSockets && !sleeper.loop.poller.isHushedIdle)
        }
        goesOn.signal()
        #expect(origin.connectionCount == 1)
        sleeper.end()
    }

    @Test("are not waited for where another loop of the thread has something under way")
    func busyNeighbour() throws {
        let asked = DispatchSemaphore(value: 0)
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("GET /silent ") {
                    asked.signal()
                } else {
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nusual")
                }
            }
        }
        let sleeper = try Sleeper()
        try sleeper.connect(to: origin)
        sleeper.loop.awaitAnswer = { _, _ in
            Issue.record("waited")
            return false
        }
        let other = try sleeper.openAnother()
        other.accept(.start(sleeper.order(origin.request(.get, "/silent"), Recorder())))
        try sleeper.wake(other) { asked.wait(timeout: .now()) == .success }
        let asker = Recorder(takesWholeResponses: true, mayBeAnsweredAtOnce: true)
        #expect(sleeper.begin(origin.request(.get, "/silent"), by: asker) != nil)
        #expect(sleeper.loop.transfers.count == 1)
        _ = other.tearDown()
        sleeper.end()
    }

    /// A loop whose thread is the test's.
    private struct Sleeper {
        let runner: TransferRunner
        let port: LoopPort
        let loop: TransferLoop

        init() throws {
            var configuration = TransferConfiguration()
            configuration.sharesThreads = true
            self.runner = try TransferRunner(endsWithLoop: true)
            self.port = LoopPort(configuration, mailbox: self.runner.mailbox)
            self.loop = try self.runner.open(self.port)
        }

        func order(
            _ request: Request, _ receiver: any UpstreamReceiver,
            by policy: (any DestinationPolicy)? = nil
        ) -> FetchOrder {
            var request = request
            if let policy { request.destinations = policy }
            return FetchOrder(
                fetch: CurlFetch(id: .random(in: 1 ... .max), port: self.port), request: request,
                content: nil, receiver: receiver, dial: nil)
        }

        /// Has a connection lie idle.
        func connect(to origin: ScriptedOrigin) throws {
            let recorder = Recorder()
            self.loop.accept(.start(self.order(origin.request(), recorder)))
            try self.wake { recorder.record.isOver }
            #expect(recorder.record.text == "usual")
        }

        /// Makes another loop of the same thread.
        func openAnother() throws -> TransferLoop {
            try self.runner.open(
                LoopPort(self.port.configuration, mailbox: self.runner.mailbox))
        }

        /// Does what the thread would for a loop (its only one), until a condition holds.
        func wake(_ other: TransferLoop? = nil, until condition: () -> Bool) throws {
            let loop = other ?? self.loop
            _ = self.runner.mailbox.wakeUp()
            for round in 0..<100 {
                // The first time for the word that a guest has left.
                for index in 0..<self.runner.epoll.wait(milliseconds: round == 0 ? 0 : 100) {
                    guard let ready = self.runner.epoll.ready(index) else { continue }
                    loop.ready(ready.descriptor, ready.events)
                }
                loop.turn(.read())
                if condition() { return }
            }
            Issue.record("nothing came")
        }

        /// Begins a fetch as a guest; nil where that is not let in.
        func begin(_ request: Request, by receiver: any UpstreamReceiver) -> CurlFetch? {
            // Its alarm comes before whatever the guest leaves behind would ring.
            #expect(self.runner.mailbox.fallAsleep(until: .read()))
            let order = self.order(request, receiver)
            return GuestEntrance(self.runner).begin(order, at: self.port) ? order.fetch : nil
        }

        /// Whether there is no command for it.
        var isUndisturbed: Bool {
            !self.runner.epoll.isReady && self.runner.mailbox.fallAsleep(until: .read())
        }

        func end() {
            _ = self.loop.tearDown()
            _ = self.runner.mailbox.close()
        }
    }

    /// Holds up a request that is about to go out until its origin has answered it.
    private final class Prompter: DestinationPolicy {
        private let asking = DispatchSemaphore(value: 0)
        private let answer = DispatchSemaphore(value: 0)

        func objection(_ method: Method, _ uri: TargetURI, at address: String) -> String? {
            self.asking.signal()
            return self.answer.wait(timeout: .now() + 120) == .success ? nil : "no answer came"
        }

        /// Answers the first request on a connection when it has come, and the others before.
        func origin(answering early: String) throws -> ScriptedOrigin {
            try self.origin(answering: [early])
        }

        /// - Parameter early: in turn, and the last again and again.
        func origin(answering early: [String]) throws -> ScriptedOrigin {
            try ScriptedOrigin { [self] connection in
                guard connection.readHead() != nil else { return }
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nusual")
                var rest = early[...]
                while self.asking.wait(timeout: .now() + 120) == .success {
                    connection.write(rest.count > 1 ? rest.removeFirst() : rest.last ?? "")
                    self.answer.signal()
                    guard connection.readHead() != nil else { return }
                }
            }
        }
    }
}
