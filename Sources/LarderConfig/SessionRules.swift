/// Which session answers whom, in place of the one that the listener names.
///
/// The first rule that fits decides.
package struct RouteSettings: Sendable, Equatable {
    /// Empty: all listeners.
    package var listeners: [ListenAddress] = []
    /// Empty: all clients.
    package var clients: [ClientPattern] = []
    /// Empty: all users, and those that no listener knows.
    package var users: [UserName] = []
    /// Empty: all users of this machine, and clients from elsewhere.
    package var uids: [UserID] = []
    package var session: SessionName = .default

    package init() {}

    /// Whether a client at a listener is meant.
    package func fits(_ client: ClientFacts, at listener: ListenAddress) -> Bool {
        (self.listeners.isEmpty || self.listeners.contains(listener))
            && (self.clients.isEmpty || self.clients.contains { $0.matches(client) })
            && (self.users.isEmpty || self.users.contains { $0.matches(client.user) })
            && (self.uids.isEmpty || self.uids.contains { $0.number == client.uid })
    }
}

/// A credential that requests to certain places get on their way, without the client.
///
/// The first rule that fits speaks.
package struct InjectionSettings: Sendable, Equatable {
    /// Empty: all sessions.
    package var sessions: [SessionName] = []
    /// Never empty once read: a secret goes nowhere unless it is said where.
    package var hosts: [HostPattern] = []
    /// Empty: all paths.
    package var paths: [PathPattern] = []
    /// Empty: all methods.
    package var methods: [MethodName] = []
    /// nil only until it is read.
    package var credential: CredentialName?
    package var isPreemptive = false
    package var allowsInsecure = false

    package init() {}
}

/// The proxy further on by which certain origins are reached.
///
/// The first rule that fits decides; where none does, origins are asked themselves.
package struct ParentSettings: Sendable, Equatable {
    package enum Authentication: String, SettingWord { case any, basic, digest, ntlm, negotiate }

    /// Empty: all sessions.
    package var sessions: [SessionName] = []
    /// Empty: all origins.
    package var destinations: [DestinationPattern] = []
    package var via: ParentAddress = .direct
    package var authentication: Authentication = .any
    /// nil: the proxy asks for none.
    package var credential: CredentialName?

    package init() {}
}

extension ListenerSettings {
    /// Whether the listener lets somebody ask for a session by its name.
    func mayName(_ session: SessionName) -> Bool {
        !self.trustedClients.isEmpty && self.namedSessions.contains(session)
    }
}

extension Settings {
    /// Takes over what a listener may begin to ask its clients for while it runs.
    package mutating func follow(_ fresh: AuthenticationSettings, at address: ListenAddress) {
        for index in self.listeners.indices where self.listeners[index].address == address {
            self.listeners[index].authentication.passwordFile = fresh.passwordFile
            self.listeners[index].authentication.tokenFile = fresh.tokenFile
            self.listeners[index].authentication.realm = fresh.realm
        }
    }

    /// The rules of injection that are about a session, in their order.
    package func injections(of session: SessionName) -> [InjectionSettings] {
        self.injections.filter { $0.sessions.isEmpty || $0.sessions.contains(session) }
    }

    /// The ways to origins that are about a session, in their order.
    package func parents(of session: SessionName) -> [ParentSettings] {
        self.parents.filter { $0.sessions.isEmpty || $0.sessions.contains(session) }
    }

    /// Whether a listener or a route leads to a session, or a client may ask for it by its name.
    package func isReachable(_ session: SessionName) -> Bool {
        self.listeners.contains { $0.session == session || $0.mayName(session) }
            || self.routes.contains { $0.session == session }
    }
}
