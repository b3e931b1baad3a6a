import LarderHTTP
import LarderState

/// What a session remembers beyond its process, opened or done without.
struct SessionState: Sendable {
    /// nil: everything is in memory alone.
    let file: StateFile?
    /// Why the one that is configured is done without.
    var missing: StateError?
    /// Stands for secrets where requests are compared and kept.
    let digests: KeyedDigest

    /// Opens the state that a blueprint names.
    ///
    /// One that cannot be had for now is reported and done without; one with the wrong key, of
    /// another process, or in a place that others could change is an error, as a person has to decide.
    static func open(
        _ configuration: StateConfiguration?, now: Timestamp, yields: Bool,
        report: @escaping @Sendable (EngineEvent) -> Void
    ) throws(EngineError) -> SessionState {
        guard let configuration else { return SessionState(file: nil, digests: KeyedDigest()) }
        do throws(StateError) {
            // A session that only caches leaves no key and no file behind.
            let file = try StateFile.open(configuration, now: now, isMadeWhenNeeded: true) {
                report(.state($0))
            }
            return SessionState(file: file, digests: file.digests)
        } catch {
            switch error.code {
            case .wrongKey, .badKeyFile, .untrusted: throw .state(error)
            case .inUse where !yields: throw .state(error)
            case .inUse, .damaged, .full, .unavailable, .denied: break
            }
            report(.withoutState(error))
            return SessionState(file: nil, missing: error, digests: KeyedDigest())
        }
    }
}
