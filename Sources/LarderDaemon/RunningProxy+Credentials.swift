import LarderConfig
import LarderControl
import LarderCredentials
import LarderEngine
import LarderSession
import LarderState

extension RunningProxy {
    /// Answers a command about a session's credentials.
    ///
    /// When it returns, what is permanent would outlive the process.
    func answer(
        _ command: CredentialCommand, session name: String, principal: String?,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        for member in try self.members(named: name) {
            if case .rotateKey = command {
                try await reply(.keyRotated(try await self.rotateKey(of: member)))
                continue
            }
            let part = try await member.part(of: principal, hasCommon: true)
            if case .test(let reference, let url, let isInsecure) = command {
                let order = try CredentialTrialOrder(
                    reference, url, isInsecure: isInsecure, in: part.credentials.named)
                try await reply(.credentialTrial(await order.run(member.open)))
                continue
            }
            for line in try await Self.obey(command, part, of: member).replies {
                try await reply(line)
            }
            try member.requireState(isLook: command.isLook)
        }
    }

    /// Does it on a copy first, which tells whether it can be done.
    private static func obey(
        _ command: CredentialCommand, _ part: PrincipalSession, of member: RunningSession
    ) async throws -> CredentialAnswer {
        let isLasting = member.open.state != nil
        var copy = part.credentials.store
        guard let (answer, _) = try copy.obey(command, isLasting: isLasting) else {
            throw ControlRefusal(invalid: "that is no matter of what is kept")
        }
        if case .list = command { return answer }
        let failure = await part.credentials.update { store in
            (try? store.obey(command, isLasting: isLasting))?.changes ?? []
        }
        // A session whose storage fails goes on in memory: who keeps or removes one must know.
        if let failure {
            throw ControlRefusal(
                failure: ControlFailure(
                    .inputOutput,
                    "in force until the proxy ends, but not kept: \(failure.detail)"))
        }
        return answer
    }

    private func rotateKey(of member: RunningSession) async throws -> KeyRotation {
        try member.requireState(isLook: true)
        guard let state = member.open.state, await state.isMade,
            let file = self.loaded.keyFile(of: member.settings)
        else {
            throw ControlRefusal(
                invalid: "the session \(member.settings.name.text) has no state on disk, and no key"
            )
        }
        do throws(StateError) {
            let rotation = try await state.rotate()
            return KeyRotation(records: UInt64(clamping: rotation.records), keyFile: file)
        } catch {
            throw ControlRefusal(
                failure: ControlFailure(
                    error.code == .full ? .noSpace : .inputOutput, "\(error)"))
        }
    }
}

extension CredentialCommand {
    /// Whether the command only reads.
    fileprivate var isLook: Bool { self == .list }
}

extension CredentialAnswer {
    /// The lines that tell of it.
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
