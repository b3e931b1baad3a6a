import Glibc
import Testing

@testable import LarderProcess

/// A whole proxy with a home of its own and an origin before it.
struct Scene: Sendable {
    let home: Home
    let origin: ScriptedOrigin
    let proxy: ProxyProcess

    /// Plays a scenario on an origin that speaks HTTP itself.
    ///
    /// Afterwards the proxy must end well when asked to.
    ///
    /// - Parameter variables: further ones of the proxy's environment.
    static func scripted(
        _ settings: String = "", variables: [String: String] = [:],
        script: @escaping ScriptedOrigin.Script, _ body: (Scene) async throws -> Void
    ) async throws {
        try await Self.inTurn {
            let origin = try await ScriptedOrigin.start(script)
            try await Self.play(settings, variables, origin, body)
        }
    }

    /// Plays a scenario on an origin that answers each request.
    static func play(
        _ settings: String = "",
        answer: @escaping @Sendable (Message) async throws -> String,
        _ body: (Scene) async throws -> Void
    ) async throws {
        try await Self.inTurn {
            let origin = try await ScriptedOrigin.answering(answer)
            try await Self.play(settings, [:], origin, body)
        }
    }

    /// Does something that runs a proxy, when it is its turn.
    static func inTurn(_ body: () async throws -> Void) async throws {
        await Turnstile.proxies.enter()
        do {
            try await body()
        } catch {
            await Turnstile.proxies.leave()
            throw error
        }
        await Turnstile.proxies.leave()
    }

    private static func play(
        _ settings: String, _ variables: [String: String], _ origin: ScriptedOrigin,
        _ body: (Scene) async throws -> Void
    ) async throws {
        let home = try Home()
        // What the proxy says of each exchange shows where a scenario failed.
        let log = settings.contains("log:") ? "" : "\nlog: {access: {format: json, to: stdout}}"
        try home.configure(settings + log)
        let proxy = try await home.serve(variables: variables)
        do {
            try await body(Scene(home: home, origin: origin, proxy: proxy))
        } catch {
            proxy.program.signal(SIGKILL)
            try await proxy.program.ended()
            await origin.stop()
            let said = proxy.program.output.value
            Issue.record("\(error); the proxy said: \(said.errText)\(said.outText.suffix(4_000))")
            return
        }
        let end = try await proxy.stop()
        await origin.stop()
        #expect(end.status == 0, "the proxy said: \(end.errText)")
    }

    func get(_ path: String, _ fields: String...) async throws -> Message {
        try await self.proxy.send("GET", self.origin.url(path), fields)
    }

    func send(
        _ method: String, _ path: String, _ fields: [String] = [], body: String? = nil
    ) async throws -> Message {
        try await self.proxy.send(method, self.origin.url(path), fields, body: body)
    }

    /// A request's head in absolute form.
    func request(_ method: String, _ path: String, _ fields: [String] = []) -> String {
        ProxyProcess.request(method, self.origin.url(path), fields)
    }

    /// Waits until a response is stored, fresh or stale: it is relayed a moment before that.
    ///
    /// Asks nothing of the origin.
    func stored(_ path: String, _ fields: String...) async throws {
        let asks = fields + ["Cache-Control: only-if-cached, max-stale"]
        for _ in 0..<500 {
            if try await self.send("GET", path, asks).status == 200 { return }
        }
        throw TimedOut(description: "\(path) was never stored")
    }

    func getStored(_ path: String) async throws -> Message {
        try await self.proxy.getStored(self.origin.url(path))
    }
}
