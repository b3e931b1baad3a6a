import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Challenges that a load brings to its task (§6.1)")
struct CoreChallengeTests {
    @Test("keep no task and no session alive, nor themselves, behind the end")
    func released() async throws {
        weak var task: URLSessionTask?
        weak var session: URLSession?
        weak var challenge: URLAuthenticationChallenge?
        let messages: Event<[String]>
        do {
            let s = ScriptedSession()
            let made = s.session.dataTask(with: try ScriptedSession.url())
            let asked = TLSChallenge.clientCertificate(
                from: [], host: "origin.test", port: 443, storage: nil)
            messages = try #require(s.delegate).messages
            (task, session, challenge) = (made, s.session, asked)
            made.resume()
            let isAnswered = Event(false)
            let load = try await s.loaders.load()
            load.hears?.load(challenged: asked) { _, _ in isAnswered.change { $0 = true } }
            try await isAnswered.wait(for: "the answer") { $0 }
            load.answer()
            s.session.finishTasksAndInvalidate()
            s.loaders.loads.change { $0 = [] }
        }
        try await messages.wait(for: "the end") { $0.last == "invalid" }
        #expect(messages.value.contains("challenge 0"))
        try await Released.wait { task == nil && session == nil && challenge == nil }
    }
}
