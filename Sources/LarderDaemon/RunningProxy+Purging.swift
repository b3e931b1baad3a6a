import LarderConfig
import LarderControl
import LarderSession
import LarderStore

extension RunningProxy {
    /// Removes what is meant from each of the sessions, and tells of how many responses.
    ///
    /// - Throws: `ControlRefusal` where what was removed from one of them may come back, once all is
    ///   done: a removal that does not last is none.
    static func purge(
        _ members: [RunningSession], _ filter: PurgeFilter,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        var unkept: UnkeptRemoval?
        for member in members {
            let removed = await filter.purge(member.sessions, isSplit: member.isSplit)
            if let found = member.session.store.unkeptRemoval {
                unkept = found
                continue
            }
            try await reply(
                .purged(PurgeOutcome(session: member.settings.name.text, removed: removed)))
        }
        if let unkept { throw ControlRefusal(unkept) }
    }
}

extension ControlRefusal {
    /// What was removed is not shown any more, and may come back.
    init(_ unkept: UnkeptRemoval) {
        let code: ControlFailure.Code =
            switch unkept.code {
            case .notWritten: .inputOutput
            case .unavailable: .unavailable
            }
        self.init(failure: ControlFailure(code, "\(unkept); \(unkept.remedy)"))
    }
}
