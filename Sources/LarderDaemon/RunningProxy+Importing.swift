import Dispatch
import LarderConfig
import LarderControl
import LarderEngine
import LarderHTTP
import LarderSession
import Synchronization

extension RunningProxy {
    /// Microseconds between two lines that say how far an import is.
    private static let progressInterval: Int64 = 500_000
    /// One import at a time in a process: each has a thread.
    private static let isImporting = Atomic(false)

    private enum ImportEvent: Sendable {
        case note(ArchiveImport.Note)
        case done(ImportOutcome)
        case failed(ControlFailure)
    }

    /// Stores what an archive holds, on a thread of its own; ends early when the client has left.
    func importArchive(
        _ path: String, into member: RunningSession,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        guard path.hasPrefix("/") else {
            throw ControlRefusal(invalid: "\(path) is no absolute path")
        }
        guard
            Self.isImporting.compareExchange(
                expected: false, desired: true, ordering: .acquiringAndReleasing
            ).exchanged
        else {
            throw ControlRefusal(
                failure: ControlFailure(
                    .unavailable, "another import is under way; wait for its end"))
        }
        for await event in Self.events(path, member.session, member.settings.principals) {
            switch event {
            case .note(.progress(let bytes)): try await reply(.progress(bytes))
            case .note(.problem(let text)): try await reply(.importProblem(text))
            case .done(let outcome): try await reply(.imported(outcome))
            case .failed(let failure): throw ControlRefusal(failure: failure)
            }
        }
    }

    private static func events(
        _ path: String, _ session: Session, _ principals: PrincipalsWord
    ) -> AsyncStream<ImportEvent> {
        AsyncStream { continuation in
            let hasLeft = CancelMark()
            continuation.onTermination = { _ in hasLeft.set() }
            DispatchQueue(label: "larder.import").async {
                let clock = SystemClock()
                var last = clock.now()
                do {
                    let target = ArchiveImport.Target(
                        store: session.store, policy: session.configuration.policy,
                        principals: principals, now: { clock.now() }, isCancelled: { hasLeft.isSet }
                    )
                    let archive = ArchiveImport(
                        try ArchiveSource(path: path, isAsked: true), into: target
                    ) {
                        note in
                        if case .progress = note {
                            let now = clock.now()
                            guard (now - last).inMicroseconds >= self.progressInterval else {
                                return
                            }
                            last = now
                        }
                        continuation.yield(.note(note))
                    }
                    continuation.yield(.done(try archive.run()))
                } catch let refusal as ControlRefusal {
                    continuation.yield(.failed(refusal.failure))
                } catch {
                    continuation.yield(
                        .failed(ControlFailure(.failed, String(describing: error))))
                }
                self.isImporting.store(false, ordering: .releasing)
                continuation.finish()
            }
        }
    }
}

/// Says to a thread that nobody waits for it any more.
private final class CancelMark: Sendable {
    private let mark = Atomic(false)

    func set() { self.mark.store(true, ordering: .relaxed) }
    var isSet: Bool { self.mark.load(ordering: .relaxed) }
}
