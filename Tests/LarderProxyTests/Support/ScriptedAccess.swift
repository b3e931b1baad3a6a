@testable import LarderProxy

/// Denies what the test says, and allows the rest.
final class ScriptedAccess: AccessPolicy {
    private let denies: @Sendable (AccessQuery) -> Bool

    init(denies: @escaping @Sendable (AccessQuery) -> Bool) {
        self.denies = denies
    }

    func judge(_ query: AccessQuery) -> AccessVerdict {
        self.denies(query) ? .denied(rule: "scripted") : .allowed
    }
}
