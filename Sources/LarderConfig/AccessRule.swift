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

    package init(isAllowed: Bool, rule: Int?) {
        self.isAllowed = isAllowed
        self.rule = rule
    }
}

extension [AccessRule] {
    /// The rules that hold where the configuration has none: programs on this machine may ask for
    /// anything, others for nothing.
    package static var local: [AccessRule] {
        let loopback = ["127.0.0.0/8", "::1"].compactMap { AddressBlock($0) }
        return [AccessRule(action: .allow, clients: loopback.map { .block($0) } + [.unix])]
    }

    /// The first rule that fits decides; where none does, the request is denied.
    package func judge(_ question: AccessQuestion) -> AccessDecision {
        let index = self.firstIndex { $0.fits(question) }
        guard let index else { return AccessDecision(isAllowed: false, rule: nil) }
        return AccessDecision(isAllowed: self[index].action == .allow, rule: index)
    }
}

extension AccessRule {
    fileprivate func fits(_ question: AccessQuestion) -> Bool {
        (self.clients.isEmpty || self.clients.contains { $0.matches(question.client) })
            && (self.methods.isEmpty || self.methods.contains { $0.name == question.method })
            && (self.destinations.isEmpty
                || self.destinations.contains {
                    $0.matches(
                        host: question.host, port: question.port, address: question.address)
                })
    }
}
