import LarderHTTP
import Synchronization

@testable import LarderProxy

/// Says what a test tells it to say, at once or when told, and counts what it was asked.
final class ScriptedAuthenticator: ProxyAuthenticator {
    /// A check that got no verdict yet.
    struct Waiting: Sendable {
        let value: String?
        let complete: @Sendable (AuthenticationVerdict) -> Void
    }

    typealias Script = @Sendable (String?, ClientAddress) -> AuthenticationVerdict

    let challenges = ["Basic realm=\"pantry\", charset=\"UTF-8\"", "Bearer realm=\"pantry\""]
    let checks = Event<[String?]>([])
    let waiting = Event<[Waiting]>([])
    private let script: Script
    private let era = Atomic<UInt64>(0)

    /// - Parameter script: as it comes, `Basic NAME` is the user of that name, `Basic wrong` nobody.
    init(_ script: @escaping Script = { value, _ in ScriptedAuthenticator.byName(value) }) {
        self.script = script
    }

    /// One whose verdicts all come later.
    static func later() -> ScriptedAuthenticator {
        ScriptedAuthenticator { value, _ in value == nil ? .missing : .pending }
    }

    static func byName(_ value: String?) -> AuthenticationVerdict {
        guard let value else { return .missing }
        return value == "Basic wrong" ? .refused : .known(user: String(value.dropFirst(6)))
    }

    var generation: UInt64 { self.era.load(ordering: .relaxed) }

    /// What was said before holds no longer.
    func forget() { self.era.add(1, ordering: .relaxed) }

    func check(
        _ value: FieldValue?, client: ClientAddress,
        completion: @escaping @Sendable (AuthenticationVerdict) -> Void
    ) -> AuthenticationVerdict {
        let text = value.map { String(decoding: $0, as: UTF8.self) }
        let verdict = self.script(text, client)
        // Before whoever waits for it hears of it.
        self.checks.change { $0.append(text) }
        if verdict == .pending {
            self.waiting.change { $0.append(Waiting(value: text, complete: completion)) }
        }
        return verdict
    }

    /// The check with this number, once it waits.
    func wait(_ index: Int = 0) async throws -> Waiting {
        try await self.waiting.wait(for: "check \(index)") { $0.count > index }[index]
    }
}

/// Sessions by user and by name, with the choices counted.
final class ScriptedDirectory: SessionDirectory {
    let choices = Event<[String]>([])
    private let era = Atomic<UInt64>(0)
    private let choose: @Sendable (ClientIdentity, String?) -> SessionChoice

    init(_ choose: @escaping @Sendable (ClientIdentity, String?) -> SessionChoice) {
        self.choose = choose
    }

    var generation: UInt64 { self.era.load(ordering: .relaxed) }

    func forget() { self.era.add(1, ordering: .relaxed) }

    func session(for client: ClientIdentity, named name: String?) -> SessionChoice {
        self.choices.change { $0.append("\(client.user ?? "-")/\(name ?? "-")") }
        return self.choose(client, name)
    }
}
