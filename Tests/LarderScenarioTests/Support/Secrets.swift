import Foundation

@testable import LarderProcess

/// Words that must be nowhere but where they belong.
struct Secrets {
    let words: [String]

    /// Each as it is, and as `Authorization` and dumps would have it.
    init(_ secrets: String..., user: String = "alice") {
        self.words = secrets.flatMap { secret in
            [
                secret, Data(secret.utf8).base64EncodedString().trimmingPadding,
                Data("\(user):\(secret)".utf8).base64EncodedString().trimmingPadding,
                secret.utf8.map { String($0, radix: 16) }.joined(),
            ]
        }
    }

    /// Those that are in the text.
    func found(in text: String) -> [String] { self.words.filter { text.contains($0) } }

    /// The files below a directory that hold any.
    func found(below path: String) throws -> [String] {
        var names: [String] = []
        let all = FileManager.default.enumerator(atPath: path)
        while let name = all?.nextObject() as? String {
            let file = "\(path)/\(name)"
            guard
                try FileManager.default.attributesOfItem(atPath: file)[.type] as? FileAttributeType
                    == .typeRegular
            else { continue }
            let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
            if self.words.contains(where: { bytes.range(of: Data($0.utf8)) != nil }) {
                names.append(name)
            }
        }
        return names
    }
}

extension String {
    fileprivate var trimmingPadding: String { String(self.prefix { $0 != "=" }) }
}

extension Home {
    /// Writes a file for this user alone.
    func secretFile(_ text: String, named name: String) throws -> String {
        try self.write(text, to: name)
        let path = "\(self.path)/\(name)"
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return path
    }

    /// Runs `larder …` on the scenario's configuration.
    func larder(_ arguments: String...) async throws -> Program.Output {
        try await self.larder(arguments)
    }

    func larder(_ arguments: [String]) async throws -> Program.Output {
        try await self.start(arguments + ["--config", self.configuration]).ended()
    }

    /// Keeps a credential, whose secret comes from a file that is gone afterwards.
    func addCredential(_ secret: String, _ arguments: [String]) async throws -> Program.Output {
        let file = try self.secretFile(secret, named: "secret")
        defer { try? FileManager.default.removeItem(atPath: file) }
        return try await self.start(
            ["credentials", "add"] + arguments + [
                "--secret-from", file, "--config", self.configuration,
            ]
        ).ended()
    }

    /// Below which default sessions keep their state.
    var state: String { "\(self.path)/state/larder" }
}

extension Message {
    /// The names and values of the request's cookies, in order.
    var cookies: [String] {
        self.list("Cookie").split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
    }
}
