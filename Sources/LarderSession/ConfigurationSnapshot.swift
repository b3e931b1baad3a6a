import LarderHTTP
import LarderPolicy

/// A session's configuration at a moment, by which all of an exchange is done.
///
/// Behind one reference: it has a dozen of its own, which each exchange would count up and down.
final class ConfigurationSnapshot: Sendable {
    let values: SessionConfiguration

    /// - Parameter isPrivate: the session is one principal's alone.
    init(_ values: SessionConfiguration, isPrivate: Bool) {
        var values = values
        // What belongs to one principal is shared with nobody (RFC 9111 §1.1).
        if isPrivate { values.policy.kind = .private }
        self.values = values
    }

    private init(resolved values: SessionConfiguration) {
        self.values = values
    }

    /// The configuration for requests to a URI: itself where no rule speaks of any.
    func resolved(for uri: TargetURI) -> ConfigurationSnapshot {
        guard !self.values.policy.rules.isEmpty else { return self }
        var values = self.values
        values.policy = values.policy.resolved(for: uri)
        return ConfigurationSnapshot(resolved: values)
    }
}
