import LarderConfig
import LarderControl
import LarderEngine
import LarderHTTP

// The transfers of background sessions, as commands see them.

extension RunningProxy {
    /// The transfers that a session keeps, of all principals; none unless it is a background session.
    static func listTransfers(
        of member: RunningSession, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        for transfer in await member.open.transfers() {
            try await reply(
                .transfer(TransferRecord(transfer, in: member.settings.name.text)))
        }
    }

    /// Ends transfers, and has their sessions forget them.
    ///
    /// - Returns: how many there were.
    static func cancelTransfers(
        _ selection: TransferSelection, in members: [RunningSession]
    ) async -> UInt64 {
        var cancelled: UInt64 = 0
        for member in members {
            let ids: [UInt64] =
                switch selection {
                case .id(let id): [id]
                case .all: await member.open.transfers().map(\.id)
                }
            // One that has ended since it was listed is none.
            for id in ids where member.open.cancelTransfer(id) { cancelled += 1 }
        }
        return cancelled
    }
}

extension TransferRecord {
    init(_ transfer: TransferFact, in session: String) {
        var retry: Timestamp?
        var cause: String?
        let activity: Activity
        switch transfer.activity {
        case .running: activity = .running
        case .queued: activity = .queued
        case .waiting(let until, let why):
            activity = .waiting
            retry = until
            cause = why
        }
        self.init(
            session: session, principal: transfer.principal.isEmpty ? nil : transfer.principal,
            id: transfer.id, url: transfer.uri, begunMicroseconds: transfer.begun.microseconds,
            deadlineMicroseconds: transfer.deadline.microseconds,
            bytesReceived: transfer.received, length: transfer.length, activity: activity,
            retryMicroseconds: retry?.microseconds, cause: cause)
    }
}
