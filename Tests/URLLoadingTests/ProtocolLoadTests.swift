import Foundation
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Loads by a program's URLProtocol (§10)")
struct ProtocolLoadTests {
    private struct Own: Error {}

    @Test("give the bytes as they came, and stop the protocol once")
    func plain() async throws {
        let script = ProtocolScript {
            $0.respond(203, ["X-A": "b"])
            $0.load("ab")
            $0.load("")
            $0.load("c")
            $0.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        let (pieces, failure) = try await recorder.body()
        #expect(pieces == [Data("ab".utf8), Data("c".utf8)] && failure == nil)
        #expect((recorder.response as? HTTPURLResponse)?.statusCode == 203)
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
        #expect(recorder.said.value == ["answered", "measured"])
        #expect(recorder.transaction.withLock { $0?.bodyBytes } == 3)
    }

    @Test("hand large data on in parts, and without losing any")
    func large() async throws {
        let data = Data((0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 >> 8) })
        let script = ProtocolScript {
            $0.respond()
            $0.client?.urlProtocol($0.it, didLoad: data)
            for _ in 0..<200 { $0.load("z") }
            $0.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        let pieces = try await recorder.body().pieces
        #expect(pieces.reduce(Data(), +) == data + Data(repeating: UInt8(ascii: "z"), count: 200))
        #expect(pieces.allSatisfy { $0.count <= 1 << 20 })
    }

    @Test("hear nothing of what comes twice, too late or after the end")
    func misuse() async throws {
        let script = ProtocolScript {
            $0.respond(200)
            $0.respond(500)
            $0.load("a")
            $0.client?.urlProtocol(
                $0.it, wasRedirectedTo: $0.it.request, redirectResponse: URLResponse(location: nil))
            $0.finish()
            $0.finish()
            $0.load("b")
            $0.fail(Own())
            $0.respond(500)
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        let (pieces, failure) = try await recorder.body()
        #expect(pieces == [Data("a".utf8)] && failure == nil)
        #expect((recorder.response as? HTTPURLResponse)?.statusCode == 200)
        try await script.stops.wait(for: "stopLoading") { $0 > 0 }
        #expect(script.stops.value == 1 && recorder.said.value == ["answered", "measured"])
    }

    @Test("keep bytes that come before the response")
    func earlyData() async throws {
        let script = ProtocolScript {
            $0.load("a")
            $0.respond()
            $0.load("b")
            $0.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        #expect(try await recorder.body().pieces.reduce(Data(), +) == Data("ab".utf8))
    }

    @Test("make a response up where the protocol ends without one", arguments: ["a", ""])
    func noResponse(text: String) async throws {
        let script = ProtocolScript {
            if !text.isEmpty { $0.load(text) }
            $0.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        let (pieces, failure) = try await recorder.body()
        #expect(pieces.reduce(Data(), +) == Data(text.utf8) && failure == nil)
        #expect(recorder.response?.url?.absoluteString == "http://protocol.test/a")
        #expect(recorder.response?.expectedContentLength == -1)
        #expect(recorder.said.value == ["answered", "measured"])
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
    }

    @Test("fail with the program's error as it is, before the response and within the body")
    func failing() async throws {
        let early = LoadRecorder()
        let first = ProtocolScript {
            $0.fail(Own())
            $0.finish()
        }
        _ = first.load(early)
        try await early.hears("measured")
        #expect(early.error.withLock { $0 } is Own && early.said.value == ["failed", "measured"])
        try await first.stops.wait(for: "stopLoading") { $0 == 1 }
        let late = LoadRecorder()
        _ = ProtocolScript {
            $0.respond()
            $0.load("a")
            $0.fail(Own())
        }.load(late)
        let (pieces, failure) = try await late.body()
        #expect(pieces == [Data("a".utf8)] && failure != nil)
        let body = late.answer.withLock { $0?.body as? any ProgramBody }
        #expect(body?.programError is Own)
        #expect(late.said.value == ["answered", "measured"])
    }

    @Test("are over with a redirection")
    func redirecting() async throws {
        let script = ProtocolScript {
            $0.client?.urlProtocol(
                $0.it, wasRedirectedTo: URLRequest(url: URL(string: "http://b/")!),
                redirectResponse: URLResponse(location: nil))
            $0.respond()
            $0.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        try await recorder.hears("measured")
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
        #expect(recorder.said.value == ["redirected", "measured"])
        #expect(recorder.redirection.withLock { $0?.url?.absoluteString } == "http://b/")
    }

    @Test(
        "pass the answer to a challenge on to its sender",
        arguments: [
            (.useCredential, true, "use"), (.useCredential, false, "continue"),
            (.performDefaultHandling, true, "default"), (.rejectProtectionSpace, true, "reject"),
            (.cancelAuthenticationChallenge, true, "cancel"),
        ] as [(URLSession.AuthChallengeDisposition, Bool, String)])
    func challenges(
        disposition: URLSession.AuthChallengeDisposition, hasCredential: Bool, word: String
    ) async throws {
        let sender = RecordingSender()
        let script = ProtocolScript {
            $0.client?.urlProtocol($0.it, didReceive: .test(sender))
        }
        let recorder = LoadRecorder(deciding: (disposition, hasCredential ? .test : nil))
        _ = script.load(recorder)
        try await sender.heard.wait(for: "an answer") { !$0.isEmpty }
        #expect(sender.heard.value == [word])
        guard disposition == .cancelAuthenticationChallenge else {
            let instance = try await script.instance()
            instance?.respond()
            instance?.finish()
            #expect(try await recorder.body().failure == nil)
            return
        }
        try await recorder.hears("measured")
        #expect(recorder.code == .cancelled)
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
    }

    @Test("do not hear answers to challenges that were taken back, or twice")
    func withdrawnChallenges() async throws {
        let sender = RecordingSender()
        let script = ProtocolScript {
            $0.client?.urlProtocol($0.it, didReceive: .test(sender))
            $0.client?.urlProtocol($0.it, didCancel: .test(sender))
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        let instance = try await script.instance()
        recorder.pending.withLock { $0 }?(.cancelAuthenticationChallenge, nil)
        instance?.client?.urlProtocol(try #require(instance).it, didReceive: .test(sender))
        let answer = recorder.pending.withLock { $0 }
        answer?(.performDefaultHandling, nil)
        answer?(.cancelAuthenticationChallenge, nil)
        try await sender.heard.wait(for: "an answer") { !$0.isEmpty }
        instance?.respond()
        instance?.finish()
        #expect(try await recorder.body().failure == nil)
        #expect(sender.heard.value == ["default"])
    }

    @Test("stop where they are cancelled, and hear nothing more")
    func cancelling() async throws {
        let script = ProtocolScript()
        let recorder = LoadRecorder()
        let load = try #require(script.load(recorder))
        let instance = try await script.instance()
        load.cancel()
        load.cancel()
        try await script.stops.wait(for: "stopLoading") { $0 > 0 }
        instance?.respond()
        instance?.load("a")
        instance?.finish()
        #expect(script.stops.value == 1 && recorder.said.value == ["measured"])
    }

    @Test("stop where the reader of the body goes")
    func leaving() async throws {
        let script = ProtocolScript {
            $0.respond()
            $0.load("a")
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder)
        try await recorder.hears("answered")
        recorder.answer.withLock { $0?.body.cancel() }
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
        #expect(recorder.said.value == ["answered", "measured"])
    }

    @Test("end once, are measured once and stop once, whoever is first", arguments: 0..<200)
    func races(round: Int) async throws {
        let script = ProtocolScript { $0.respond() }
        let recorder = LoadRecorder()
        let load = try #require(script.load(recorder))
        let instance = try #require(try await script.instance())
        await withTaskGroup(of: Void.self) { group in
            group.addTask { load.cancel() }
            group.addTask { instance.finish() }
            group.addTask { instance.load("a") }
            group.addTask { instance.fail(Own()) }
            group.addTask { recorder.answer.withLock { $0?.body.cancel() } }
        }
        try await recorder.hears("measured")
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
        #expect(recorder.said.value == ["answered", "measured"])
    }

    @Test("let go of the protocol and of themselves when they are over", arguments: 0..<4)
    func lettingGo(way: Int) async throws {
        let script = ProtocolScript { if way < 3 { $0.respond() } }
        weak var load: AnyObject?
        weak var instance: URLProtocol?
        do {
            let recorder = LoadRecorder()
            let made = try #require(script.load(recorder))
            load = made
            instance = try await script.instance()?.it
            #expect(instance != nil)
            switch way {
            case 0: script.started.value.first?.finish()
            case 1: script.started.value.first?.fail(Own())
            default: made.cancel()
            }
            if way < 3 { _ = try await recorder.body() }
            try await recorder.hears("measured")
            try await script.stops.wait(for: "stopLoading") { $0 == 1 }
            script.started.change { $0 = [] }
        }
        // The queue may still be about to leave the block that stopped it.
        try await Released.wait { load == nil && instance == nil }
    }
}

extension URLAuthenticationChallenge {
    static func test(_ sender: RecordingSender) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: URLProtectionSpace(
                host: "a", port: 80, protocol: "http", realm: nil,
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic),
            proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
            sender: sender)
    }
}

extension URLCredential {
    static var test: URLCredential {
        URLCredential(user: "u", password: "p", persistence: .none)
    }
}
