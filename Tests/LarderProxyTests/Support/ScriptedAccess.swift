@testable import LarderProxy

/// Denies what the test says, and allows the rest.
struct ScriptedAccess: AccessPolicy {
    let denies: @Sendable (AccessQuery) -> Bool

    func judge(_ query: AccessQuery) -> AccessVerdict {
        self.denies(query) ? .denied(rule: "scripted") : .allowed
    }
}
