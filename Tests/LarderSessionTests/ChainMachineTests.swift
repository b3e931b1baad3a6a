import LarderHTTP
import Testing

@testable import LarderSession

/// The machine where expectations can look at it, which copy what they look at.
private final class Machine {
    private var machine = ChainMachine()

    var mayAnswer: Bool { self.machine.mayAnswer }
    func isCurrent(_ number: Int) -> Bool { self.machine.isCurrent(number) }
    func sends() -> Int? { self.machine.sends() }
    func ended(_ number: Int) -> ChainMachine.EndAction { self.machine.ended(number) }
    func drainOverdue(_ number: Int) -> Bool { self.machine.drainOverdue(number) }
    func cancel() { self.machine.cancel() }

    func headReceived(
        _ number: Int, leadsTo next: ChainMachine.Next, bodyLength: BodyLength
    ) -> ChainMachine.HeadAction {
        self.machine.headReceived(number, leadsTo: next, bodyLength: bodyLength)
    }

    func pieceReceived(_ number: Int, bytes: UInt64) -> ChainMachine.PieceAction {
        self.machine.pieceReceived(number, bytes: bytes)
    }
}

@Suite("The requests of a chain, as a value")
struct ChainMachineTests {
    @Test("an ordinary response is relayed to its end")
    func relays() {
        let machine = Machine()
        #expect(machine.sends() == 1)
        #expect(machine.headReceived(1, leadsTo: .nothing, bodyLength: .unknown) == .relay)
        #expect(machine.pieceReceived(1, bytes: 1 << 40) == .relay)
        #expect(machine.ended(1) == .relay)
        #expect(machine.ended(1) == .discard)
        #expect(machine.sends() == nil)
    }

    @Test("a response that leads on runs off, and then the next request goes out")
    func drains() {
        let machine = Machine()
        _ = machine.sends()
        #expect(machine.headReceived(1, leadsTo: .answer, bodyLength: .known(9)) == .drain)
        #expect(machine.pieceReceived(1, bytes: 9) == .swallow)
        #expect(machine.ended(1) == .sendNext)
        #expect(machine.sends() == 2)
        #expect(machine.headReceived(1, leadsTo: .nothing, bodyLength: .none) == .discard)
        #expect(machine.pieceReceived(1, bytes: 1) == .discard)
        #expect(machine.ended(1) == .discard)
        #expect(machine.headReceived(2, leadsTo: .nothing, bodyLength: .none) == .relay)
    }

    @Test(
        "what is too long to run off is broken off",
        arguments: [
            (BodyLength.known(ChainMachine.drainLimit), ChainMachine.HeadAction.drain),
            (.known(ChainMachine.drainLimit + 1), .sendNext), (.known(.max), .sendNext),
            (.unknown, .drain), (.none, .drain),
        ])
    func tooLong(_ length: BodyLength, _ expected: ChainMachine.HeadAction) {
        let machine = Machine()
        _ = machine.sends()
        #expect(machine.headReceived(1, leadsTo: .redirection, bodyLength: length) == expected)
    }

    @Test("and so is one that proves too long only while it comes")
    func growing() {
        let machine = Machine()
        _ = machine.sends()
        _ = machine.headReceived(1, leadsTo: .answer, bodyLength: .unknown)
        #expect(machine.pieceReceived(1, bytes: ChainMachine.drainLimit) == .swallow)
        #expect(machine.pieceReceived(1, bytes: 1) == .sendNext)
        // Who was told sends it, and nobody else.
        #expect(machine.pieceReceived(1, bytes: .max) == .discard)
        #expect(machine.ended(1) == .discard && !machine.drainOverdue(1))
        #expect(machine.sends() == 2)
    }

    @Test("and one that does not come in time; whichever comes first, one request goes out")
    func overdue() {
        let machine = Machine()
        #expect(!machine.drainOverdue(0))
        _ = machine.sends()
        #expect(!machine.drainOverdue(1))
        _ = machine.headReceived(1, leadsTo: .redirection, bodyLength: .known(9))
        #expect(machine.drainOverdue(1))
        #expect(!machine.isCurrent(1))
        #expect(!machine.drainOverdue(1) && machine.ended(1) == .discard)
        #expect(machine.sends() == 2)
        #expect(machine.sends() == nil)
        _ = machine.headReceived(2, leadsTo: .redirection, bodyLength: .known(9))
        #expect(!machine.drainOverdue(1))
        #expect(machine.ended(2) == .sendNext)
        #expect(!machine.drainOverdue(2))
        #expect(machine.sends() == 3)
        _ = machine.headReceived(3, leadsTo: .nothing, bodyLength: .known(9))
        #expect(!machine.drainOverdue(3))
    }

    @Test("challenges are answered a bounded number of times, anew for each target")
    func bounded() {
        let machine = Machine()
        for number in 1...ChainMachine.answerLimit {
            #expect(machine.mayAnswer)
            #expect(machine.sends() == number)
            _ = machine.headReceived(number, leadsTo: .answer, bodyLength: .none)
            #expect(machine.ended(number) == .sendNext)
        }
        #expect(!machine.mayAnswer)
        let number = ChainMachine.answerLimit + 1
        #expect(machine.sends() == number)
        _ = machine.headReceived(number, leadsTo: .redirection, bodyLength: .none)
        #expect(machine.mayAnswer)
    }

    @Test("after a cancel nothing concerns anybody, whatever comes", arguments: 0..<4)
    func cancels(_ stage: Int) {
        let machine = Machine()
        _ = machine.sends()
        if stage == 1 { _ = machine.headReceived(1, leadsTo: .answer, bodyLength: .unknown) }
        if stage == 2 { _ = machine.headReceived(1, leadsTo: .nothing, bodyLength: .unknown) }
        if stage == 3 { _ = machine.ended(1) }
        machine.cancel()
        #expect(!machine.isCurrent(1))
        #expect(machine.headReceived(1, leadsTo: .answer, bodyLength: .none) == .discard)
        #expect(machine.pieceReceived(1, bytes: 1) == .discard)
        #expect(machine.ended(1) == .discard)
        #expect(machine.sends() == nil)
    }
}

@Suite("Redirections (RFC 9110 §15.4)")
struct RedirectionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var status: UInt16
        var method: Method
        var expected: Method?
        var drops = false

        var testDescription: String { "\(self.status) to \(self.method)" }
    }

    private static let base = TargetURI(
        scheme: .https, host: "a.example", pathAndQuery: "/dir/page?q")

    private static func judge(
        _ status: UInt16, _ fields: Fields, method: Method = .get, hasContent: Bool = false,
        mayRepeat: Bool = true, number: Int = 0,
        permits: (Method, TargetURI) -> Bool = { _, _ in true }
    ) -> Redirection {
        Redirection.judge(
            ResponseHead(status: StatusCode(status), fields: fields),
            to: Redirection.Origin(
                uri: self.base, method: method, hasContent: hasContent, mayRepeat: mayRepeat,
                number: number),
            permits: permits)
    }

    @Test(
        "change the method and drop the content as the table says",
        arguments: [
            Case(status: 301, method: .post, expected: .get, drops: true),
            Case(status: 302, method: .post, expected: .get, drops: true),
            Case(status: 301, method: .put, expected: .put),
            Case(status: 302, method: .head, expected: .head),
            Case(status: 303, method: .post, expected: .get, drops: true),
            Case(status: 303, method: .put, expected: .get, drops: true),
            Case(status: 303, method: .head, expected: .head, drops: true),
            Case(status: 305, method: .post, expected: .post),
            Case(status: 306, method: .get, expected: .get),
            Case(status: 307, method: .post, expected: .post),
            Case(status: 308, method: .patch, expected: .patch),
            Case(status: 300, method: .get, expected: nil),
            Case(status: 304, method: .get, expected: nil),
            Case(status: 309, method: .get, expected: nil),
            Case(status: 200, method: .get, expected: nil),
            Case(status: 201, method: .post, expected: nil),
        ])
    func table(_ c: Case) {
        let verdict = Self.judge(c.status, ["Location": "/next"], method: c.method)
        guard let method = c.expected else {
            #expect(verdict == .none)
            return
        }
        let uri = TargetURI(scheme: .https, host: "a.example", pathAndQuery: "/next")
        #expect(
            verdict
                == .follows(
                    Redirection.Target(uri: uri, method: method, dropsContent: c.drops)))
    }

    @Test(
        "go where Location means, relative to the target",
        arguments: [
            ("x", "https://a.example/dir/x"), ("?z", "https://a.example/dir/page?z"),
            ("../y", "https://a.example/y"), ("//b.example/", "https://b.example/"),
            ("http://b.example:81/p#frag", "http://b.example:81/p"),
            ("", "https://a.example/dir/page?q"),
        ])
    func resolves(_ location: String, _ expected: String) throws {
        let uri = try #require(TargetURI(text: expected))
        #expect(
            Self.judge(302, ["Location": location])
                == .follows(Redirection.Target(uri: uri, method: .get, dropsContent: false)))
    }

    @Test(
        "nowhere where Location is no http URI",
        arguments: [
            "ftp://b.example/", "file:///etc/passwd", "javascript:alert(1)", "http://",
            "http://user:secret@b.example/", "https://b.example:99999/", "http://b exa/", "http:x",
            "http://b.example/%zz", "\u{80}", "data:,x",
        ])
    func unsupported(_ location: String) {
        #expect(
            Self.judge(302, ["Location": location]) == .passedOn(.redirectNotPermitted))
    }

    @Test("without Location, or with two that differ, are no redirections")
    func noLocation() {
        #expect(Self.judge(302, [:]) == .none)
        #expect(
            Self.judge(302, ["Location": "/a", "Location": "/b"])
                == .passedOn(.redirectNotPermitted))
    }

    @Test("are followed twenty times in a row, only where permitted, and only with the content")
    func limits() {
        let next: Fields = ["Location": "/next"]
        if case .follows = Self.judge(302, next, number: 19) {} else { Issue.record("the 20th") }
        #expect(Self.judge(302, next, number: 20) == .tooMany)
        #expect(
            Self.judge(302, next, permits: { _, _ in false }) == .passedOn(.redirectNotPermitted))
        // Asked for what is sent there: a POST becomes a GET with 302, and stays one with 307.
        for (status, isPermitted) in [(302, true), (307, false)] as [(UInt16, Bool)] {
            let verdict = Self.judge(status, next, method: .post, permits: { m, _ in m == .get })
            #expect((verdict != .passedOn(.redirectNotPermitted)) == isPermitted, "\(status)")
        }
        #expect(
            Self.judge(307, next, method: .post, hasContent: true, mayRepeat: false)
                == .passedOn(.contentNotRepeatable))
        if case .follows = Self.judge(303, next, method: .post, hasContent: true, mayRepeat: false)
        {
        } else {
            Issue.record("content that is dropped need not be repeatable")
        }
    }
}
