import LarderControl
import LarderDisk
import LarderEngine
import LarderHTTP
import Synchronization

/// The trouble that a session's disk tier had last, for whoever asks later.
///
/// The log says it once, and its end when that has lasted; a person may look hours after, and sees
/// whether anything is stored now.
final class DiskTroubleNote: Sendable {
    private let last = Mutex<DiskTrouble?>(nil)

    var trouble: DiskTrouble? { self.last.withLock { $0 } }

    /// Takes note of an event, if it is about trouble.
    func note(_ event: EngineEvent, at now: Timestamp) {
        switch event {
        case .withoutDisk(let error), .disk(.failed(let error)), .disk(.failedAgain(let error)):
            let trouble = DiskTrouble(
                cause: "\(error.path): \(error.cause)", microseconds: now.microseconds,
                isOver: false)
            self.last.withLock { $0 = trouble }
        case .disk(.recovered), .disk(.opened): self.last.withLock { $0?.isOver = true }
        // Those are told of by the log; this is about the cache.
        case .disk, .state, .withoutState, .cookies, .credentialsNotKept, .withoutPublicSuffixes,
            .transfersWait, .transfer:
            break
        }
    }
}
