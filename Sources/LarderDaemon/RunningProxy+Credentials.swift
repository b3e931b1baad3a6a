import LarderControl
import LarderCredentials

/// The credentials of a session in use, as commands see them.
protocol CredentialKeeping: Sendable {
    /// Lists, keeps or removes; returns when what is permanent would outlive the process.
    ///
    /// - Throws: `ControlRefusal`. Nil for what only its session can do.
    func obey(_ command: CredentialCommand) async throws -> CredentialAnswer?
}

extension RunningProxy {
    /// Answers a command about a session's credentials.
    func answer(
        _ command: CredentialCommand, session name: String, principal: String?,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        for member in try self.members(named: name) {
            guard let credentials = try await member.credentials(of: principal) else {
                throw ControlRefusal(invalid: "the session \(name) keeps no credentials")
            }
            guard let answer = try await credentials.obey(command) else {
                throw ControlRefusal(invalid: "the session \(name) cannot do that")
            }
            for line in answer.replies { try await reply(line) }
        }
    }
}

extension CredentialAnswer {
    var replies: [ControlReply] {
        switch self {
        case .credentials(let records):
            stride(from: 0, to: records.count, by: 64).map { start in
                .credentials(Array(records[start..<min(start + 64, records.count)]))
            }
        case .removed(let count): [.removed(UInt64(clamping: count))]
        }
    }
}

extension RunningProxy.Member {
    func cookies(of principal: String?) async throws -> (any CookieKeeping)? { nil }
    func credentials(of principal: String?) async throws -> (any CredentialKeeping)? { nil }
}
