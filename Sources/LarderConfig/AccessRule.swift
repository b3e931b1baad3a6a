/// One rule about who may ask for what.
///
/// The first rule that fits decides.
package struct AccessRule: Sendable, Equatable {
    package enum Action: String, SettingWord { case allow, deny }

    package var action: Action
    /// Empty: all clients.
    package var clients: [ClientPattern]
    /// Empty: all destinations.
    package var destinations: [DestinationPattern]
    /// Empty: all methods.
    package var methods: [MethodName]

    package init(
        action: Action = .allow, clients: [ClientPattern] = [],
        destinations: [DestinationPattern] = [], methods: [MethodName] = []
    ) {
        self.action = action
        self.clients = clients
        self.destinations = destinations
        self.methods = methods
    }

    /// Whether the address that a host leads to makes a difference to it.
    package var speaksOfAddresses: Bool { self.destinations.contains { $0.isOfAddresses } }
}

/// What an access rule is asked about.
package struct AccessQuestion: Sendable, Equatable {
    package var client: ClientFacts
    /// As in the request: methods are case-sensitive (RFC 9110 §9.1).
    package var method: String
    /// In lower case.
    package var host: String
    package var port: UInt16
    /// What the host led to, where that is known.
    ///
    /// It counts for rules about blocks; those about names still see the name.
    package var address: IPAddress?

    package init(
        client: ClientFacts, method: String, host: String, port: UInt16,
        address: IPAddress? = nil
    ) {
        self.client = client
        self.method = method
        self.host = host
        self.port = port
        self.address = address
    }
}

/// What the rules say, and which of them said it.
package struct AccessDecision: Sendable, Equatable {
    package var isAllowed: Bool
    /// The index of the rule that decided; nil where none fitted, which denies.
    package var rule: Int?
    /// The rule allows, but names no destinations, and so not this machine's own addresses.
    package var leadsBack: Bool

    package init(isAllowed: Bool, rule: Int?, leadsBack: Bool = false) {
        self.isAllowed = isAllowed
        self.rule = rule
        self.leadsBack = leadsBack
    }
}

extension [AccessRule] {
    /// The rules that hold where the configuration has none: programs on this machine may ask for
    /// anything, others for nothing.
    package static var local: [AccessRule] {
        let loopback = ["127.0.0.0/8", "::1"].compactMap { AddressBlock($0) }
        return [AccessRule(action: .allow, clients: loopback.map { .block($0) } + [.unix])]
    }

    /// These rules for a client that must be let in: where none lets it go anywhere, it may go
    /// wherever no rule denies it a destination or a method.
    package func admitting(_ client: ClientFacts) -> [AccessRule] {
        let concerning = self.filter { $0.concerns(client) }
        guard !concerning.contains(where: { $0.action == .allow }) else { return self }
        return concerning.filter { !$0.destinations.isEmpty || !$0.methods.isEmpty }
            + [AccessRule(action: .allow)]
    }
}

extension AccessRule {
    /// Whether it speaks of such a client and method.
    func concerns(_ client: ClientFacts, method: String) -> Bool {
        self.concerns(client)
            && (self.methods.isEmpty || self.methods.contains { $0.name == method })
    }

    /// Whether it speaks of such a client.
    package func concerns(_ client: ClientFacts) -> Bool {
        self.clients.isEmpty || self.clients.contains { $0.matches(client) }
    }
}
