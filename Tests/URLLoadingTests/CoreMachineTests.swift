import Foundation
import LarderHTTP
import Testing
@testable import URLLoading

@Suite("The life of a task, as a value (§3.1)")
struct CoreMachineTests {
    /// What happens to a task, one after the other.
    enum Act: Sendable {
        case resume, suspend, cancel, launch, answered(Int), receive, settle, deliver, finish,
            prepare
    }

    struct Case: Sendable {
        var acts: [Act]
        var stage: TaskMachine.Stage
        var state: URLSessionTask.State
    }

    private static func run(_ acts: [Act]) -> TaskMachine {
        var machine = TaskMachine()
        for act in acts {
            switch act {
            case .resume: _ = machine.resume()
            case .suspend: _ = machine.suspend()
            case .cancel: _ = machine.cancel()
            case .launch: _ = machine.launch()
            case .answered(let load): _ = machine.answered(load: load)
            case .receive: _ = machine.receive()
            case .settle: _ = machine.settle()
            case .deliver: _ = machine.deliver()
            case .finish: machine.finish()
            case .prepare: _ = machine.prepare()
            }
        }
        return machine
    }

    @Test(
        "goes by its stages, and shows itself as one of four states",
        arguments: [
            Case(acts: [], stage: .created, state: .suspended),
            Case(acts: [.resume], stage: .preparing, state: .running),
            Case(acts: [.suspend, .resume], stage: .created, state: .suspended),
            Case(acts: [.suspend, .resume, .resume], stage: .preparing, state: .running),
            Case(acts: [.resume, .resume, .suspend], stage: .preparing, state: .suspended),
            Case(acts: [.resume, .launch], stage: .loading, state: .running),
            // Suspended tasks begin no load.
            Case(acts: [.resume, .suspend, .launch], stage: .preparing, state: .suspended),
            Case(acts: [.resume, .launch, .answered(1)], stage: .judging, state: .running),
            Case(acts: [.resume, .launch, .answered(2)], stage: .loading, state: .running),
            Case(
                acts: [.resume, .launch, .answered(1), .prepare, .launch, .answered(1)],
                stage: .loading, state: .running),
            Case(
                acts: [.resume, .launch, .answered(1), .receive], stage: .receiving,
                state: .running),
            Case(acts: [.cancel], stage: .settled, state: .canceling),
            Case(acts: [.cancel, .resume, .launch], stage: .settled, state: .canceling),
            Case(acts: [.resume, .settle, .cancel], stage: .settled, state: .running),
            Case(acts: [.cancel, .deliver], stage: .delivering, state: .canceling),
            Case(acts: [.cancel, .deliver, .finish], stage: .over, state: .completed),
            Case(acts: [.resume, .settle, .deliver, .finish], stage: .over, state: .completed),
        ])
    func stages(_ c: Case) {
        let machine = Self.run(c.acts)
        #expect(machine.stage == c.stage)
        #expect(machine.state == c.state)
    }

    @Test("has one who ends it, and one who delivers")
    func once() {
        var machine = Self.run([.resume, .launch])
        let ends = [machine.settle(), machine.settle(), machine.cancel()]
        #expect(ends == [true, false, false])
        let deliveries = [machine.deliver(), machine.deliver()]
        #expect(deliveries == [true, false])
        #expect(!machine.isCancelled)
    }

    @Test("takes one answer to a question, and none after the end or to an older one")
    func questions() {
        var machine = Self.run([.resume, .launch])
        let first = machine.ask() ?? 0
        let answers = [machine.answer(first), machine.answer(first)]
        #expect(answers == [true, false])
        let second = machine.ask() ?? 0
        let isOldHeard = machine.answer(first)
        #expect(!isOldHeard && second != first)
        let isCancelled = machine.cancel()
        let isLateHeard = machine.answer(second)
        let isAsked = machine.ask() != nil
        #expect(isCancelled && !isLateHeard && !isAsked)
    }

    @Test("counts suspensions without end, and resumes no further than to none")
    func counts() {
        var machine = TaskMachine()
        let resumed = [machine.resume(), machine.resume()]
        #expect(resumed == [.begin, .nothing])
        let suspended = [machine.suspend(), machine.suspend()]
        #expect(suspended == [true, false])
        let again = [machine.resume(), machine.resume()]
        #expect(again == [.nothing, .goOn])
    }

    /// What becomes of the suspensions of a task that runs.
    enum Step: Sendable {
        case resume, suspend, pause, endPause
    }

    @Test(
        "has one suspension of its progress at most, which is gone when there is none at all",
        arguments: [
            ([.pause], 1, true), ([.pause, .pause], 1, true), ([.pause, .endPause], 0, false),
            ([.endPause], 0, false), ([.suspend, .endPause], 1, false),
            ([.pause, .suspend, .endPause, .endPause], 1, false),
            ([.suspend, .pause, .resume], 1, true),
            ([.suspend, .pause, .resume, .endPause], 0, false),
            ([.pause, .resume], 0, false), ([.pause, .resume, .pause], 1, true),
            ([.pause, .resume, .suspend, .endPause], 1, false),
            ([.pause, .suspend, .resume, .resume, .suspend, .endPause], 1, false),
        ] as [([Step], Int, Bool)])
    func pauses(steps: [Step], suspensions: Int, isPaused: Bool) {
        var machine = Self.run([.resume])
        for step in steps {
            switch step {
            case .resume: _ = machine.resume()
            case .suspend: _ = machine.suspend()
            case .pause: _ = machine.pause()
            case .endPause: _ = machine.endPause()
            }
        }
        #expect(machine.suspensions == suspensions && machine.isPaused == isPaused)
    }

    @Test("is paused no more behind its end")
    func pausedBehindEnd() {
        var machine = Self.run([.resume, .settle])
        let stops = machine.pause()
        let goesOn = machine.endPause()
        #expect(!stops && goesOn == .nothing && !machine.isPaused)
    }
}

@Suite("Redirections (§5)")
struct CoreRedirectTests {
    struct Case: Sendable {
        var status: UInt16
        var method: String
        var becomes: String?
        var keepsContent = false
    }

    private static func judge(
        _ status: UInt16, _ method: String = "GET", location: String? = "/next",
        fields: [String: String] = [:], from text: String = "http://a.test/dir/page?q#part",
        number: Int = 0
    ) throws -> Redirect {
        var request = URLRequest(url: try #require(URL(string: text)))
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        if method != "GET" && method != "HEAD" { request.httpBody = Data("x".utf8) }
        var head = ResponseHead(status: StatusCode(status))
        if let location { head.fields.append("Location", location) }
        return Redirect.judge(
            head, to: request, number: number, hasContent: request.httpBody != nil)
    }

    @Test(
        "go where a Location means that is no URI as it stands (§5)",
        arguments: [
            ("/two words", "http://a.test/two%20words#part"),
            ("/caf\u{E9}?a|b", "http://a.test/caf%C3%A9?a%7Cb#part"),
            ("/a#b c", "http://a.test/a#b%20c"), ("/a%20b", "http://a.test/a%20b#part"),
            ("/100%?5%2#%zz", "http://a.test/100%25?5%252#%25zz"),
            ("/%41%4", "http://a.test/%41%254#part"),
            (
                "http://b\u{FC}cher.test:81/\u{FC}?//\u{E9}/",
                "http://xn--bcher-kva.test:81/%C3%BC?//%C3%A9/#part"
            ),
            ("//b\u{FC}cher.test", "http://xn--bcher-kva.test/#part"),
            ("/x?http://b\u{FC}cher.test/", "http://a.test/x?http://b%C3%BCcher.test/#part"),
        ])
    func encodedLocation(_ location: String, _ expected: String) throws {
        guard case .follow(let next, _) = try Self.judge(302, location: location) else {
            Issue.record("not followed")
            return
        }
        #expect(next.url?.absoluteString == expected)
    }

    @Test(
        "keep or change the method, and drop or keep the content, by status",
        arguments: [
            Case(status: 300, method: "GET"), Case(status: 304, method: "GET"),
            Case(status: 200, method: "GET"),
            Case(status: 301, method: "GET", becomes: "GET"),
            Case(status: 301, method: "HEAD", becomes: "HEAD"),
            Case(status: 301, method: "POST", becomes: "GET"),
            Case(status: 302, method: "PUT", becomes: "PUT", keepsContent: true),
            Case(status: 302, method: "POST", becomes: "GET"),
            Case(status: 303, method: "HEAD", becomes: "GET"),
            Case(status: 303, method: "PUT", becomes: "GET"),
            Case(status: 305, method: "POST", becomes: "POST", keepsContent: true),
            Case(status: 306, method: "DELETE", becomes: "DELETE", keepsContent: true),
            Case(status: 307, method: "POST", becomes: "POST", keepsContent: true),
            Case(status: 308, method: "PUT", becomes: "PUT", keepsContent: true),
        ])
    func methods(_ c: Case) throws {
        let verdict = try Self.judge(c.status, c.method, fields: ["Content-Type": "text/plain"])
        guard let becomes = c.becomes else {
            #expect(verdict == .none)
            return
        }
        guard case .follow(let request, let keepsContent) = verdict else {
            Issue.record("not followed: \(verdict)")
            return
        }
        #expect(request.httpMethod == becomes)
        #expect(keepsContent == c.keepsContent)
        let isDropped = becomes != c.method
        #expect((request.value(forHTTPHeaderField: "Content-Type") == nil) == isDropped)
        if isDropped { #expect(request.httpBody == nil) }
    }

    @Test(
        "resolve Location, and inherit the fragment (RFC 9110 §10.2.2)",
        arguments: [
            ("/next", "http://a.test/next#part"), ("next", "http://a.test/dir/next#part"),
            ("?other", "http://a.test/dir/page?other#part"), ("//b.test/x", "http://b.test/x#part"),
            ("https://b.test:443/x#own", "https://b.test/x#own"),
            ("http://a.test:80/x", "http://a.test/x#part"), ("../up", "http://a.test/up#part"),
        ])
    func locations(_ location: String, _ expected: String) throws {
        guard case .follow(let request, _) = try Self.judge(302, location: location) else {
            Issue.record("not followed: \(location)")
            return
        }
        #expect(request.url?.absoluteString == expected)
    }

    @Test(
        "that lead nowhere that can be loaded are responses",
        arguments: [nil, "ftp://a.test/", "mailto:a@b", "http://u:p@b.test/", "http://[", ""])
    func nowhere(_ location: String?) throws {
        #expect(try Self.judge(302, location: location) == .none)
    }

    @Test("of which there are more than 20 end the task")
    func limit() throws {
        #expect(try Self.judge(302, number: 20) == .tooMany)
        guard case .follow = try Self.judge(302, number: 19) else {
            Issue.record("the twentieth is followed")
            return
        }
    }

    @Test(
        "take what is secret to the same origin alone",
        arguments: [
            ("/next", true), ("http://a.test:8080/", false), ("https://a.test/", false),
            ("http://b.test/", false),
        ])
    func secrets(_ location: String, _ isKept: Bool) throws {
        let verdict = try Self.judge(
            307, location: location,
            fields: [
                "authorization": "Basic x", "Cookie": "a=b", "Proxy-Authorization": "Basic y",
                "X-Own": "kept",
            ])
        guard case .follow(let request, _) = verdict else {
            Issue.record("not followed")
            return
        }
        for name in ["Authorization", "Cookie", "Proxy-Authorization"] {
            #expect((request.value(forHTTPHeaderField: name) != nil) == isKept)
        }
        #expect(request.value(forHTTPHeaderField: "X-Own") == "kept")
    }
}
