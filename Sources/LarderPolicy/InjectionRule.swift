package import LarderHTTP

/// To which requests a session adds one of its credentials by itself.
///
/// A rule names the credential; what is in it the rule does not know.
package struct InjectionRule: Sendable, Equatable {
    /// For people: how the rule is called.
    package var name: String
    /// Where it is written, `larder.yaml:12`; empty where that is unknown.
    package var place: String
    /// Empty: none.
    ///
    /// A secret goes to every host only where `*` says so.
    package var hosts: [HostPattern]
    /// Over the path without its query; empty: every path.
    package var paths: [Wildcard]
    /// Empty: every method.
    package var methods: [Method]
    /// The name of the credential.
    package var credential: String
    /// A user name and a password are sent at once by Basic; else they answer challenges.
    package var sendsBasic: Bool
    /// The credential may travel over plain http.
    package var allowsInsecure: Bool

    package init(
        name: String, place: String = "", hosts: [HostPattern], paths: [Wildcard] = [],
        methods: [Method] = [], credential: String, sendsBasic: Bool = false,
        allowsInsecure: Bool = false
    ) {
        self.name = name
        self.place = place
        self.hosts = hosts
        self.paths = paths
        self.methods = methods
        self.credential = credential
        self.sendsBasic = sendsBasic
        self.allowsInsecure = allowsInsecure
    }

    func matches(_ subject: RuleSubject, _ method: Method) -> Bool {
        guard self.hosts.contains(where: { $0.matches(subject) }),
            self.methods.isEmpty || self.methods.contains(method)
        else { return false }
        if self.paths.isEmpty { return true }
        // An origin that resolves a dot segment would see another path than the pattern did.
        guard !DotSegments.isIn(subject.path) else { return false }
        return self.paths.contains { $0.matches(subject.path) }
    }
}

/// The injection rules of a session: in order, the first that fits speaks.
package struct InjectionRules: Sendable, Equatable {
    package var rules: [InjectionRule]

    package init(_ rules: [InjectionRule] = []) {
        self.rules = rules
    }

    package var isEmpty: Bool { self.rules.isEmpty }

    /// The rule for a request; nil where none fits.
    ///
    /// - Parameter uri: of http or https; rules say nothing about ftp.
    package func first(for uri: TargetURI, _ method: Method) -> InjectionRule? {
        guard !self.rules.isEmpty, uri.scheme != .ftp else { return nil }
        let subject = RuleSubject(uri)
        return self.rules.first { $0.matches(subject, method) }
    }
}
