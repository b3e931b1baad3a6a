import LarderConfig
import LarderHTTP
import LarderProxy
import Synchronization

/// The access rules and tunnel ports of the configuration, replaceable while connections are open.
///
/// A request is judged by the rules of its own moment; tunnels already open stay open.
final class ConfiguredAccess: AccessPolicy {
    private struct Rules {
        var access: AccessJudge
        var connectPorts: [PortRange]

        init(_ settings: Settings) {
            self.access = AccessJudge(settings.access)
            self.connectPorts = settings.connectPorts
        }
    }

    private let rules: Mutex<Rules>
    private let replaced = Atomic<UInt64>(0)
    private let speaksOfAddresses: Atomic<Bool>

    var generation: UInt64? { self.replaced.load(ordering: .acquiring) }
    var judgesAddresses: Bool { self.speaksOfAddresses.load(ordering: .acquiring) }

    init(_ settings: Settings) {
        let rules = Rules(settings)
        self.speaksOfAddresses = Atomic(rules.access.speaksOfAddresses)
        self.rules = Mutex(rules)
    }

    func replace(by settings: Settings) {
        let fresh = Rules(settings)
        // Asked apart from them: by the new rules no address may go unjudged for a moment.
        if fresh.access.speaksOfAddresses {
            self.speaksOfAddresses.store(true, ordering: .releasing)
        }
        self.rules.withLock { $0 = fresh }
        self.speaksOfAddresses.store(fresh.access.speaksOfAddresses, ordering: .releasing)
        self.replaced.add(1, ordering: .releasing)
    }

    func judge(_ query: AccessQuery) -> AccessVerdict {
        let rules = self.rules.withLock { $0 }
        if query.method == .connect,
            !rules.connectPorts.contains(where: { $0.ports.contains(query.port) })
        {
            return .denied(rule: AccessVerdict.connectPorts)
        }
        let decision = rules.access.judge(
            AccessQuestion(
                client: query.identity.facts, method: query.method.rawValue, host: query.host,
                port: query.port, address: query.address.map { LarderConfig.IPAddress($0) }))
        if decision.isAllowed { return .allowed }
        if decision.leadsBack { return .denied(rule: AccessVerdict.ownAddresses) }
        return .denied(rule: decision.rule.map { "access[\($0)]" } ?? "no access rule")
    }
}

extension ClientIdentity {
    /// What rules are asked about.
    var facts: ClientFacts {
        switch self.address {
        case .ip(let ip, _, _): ClientFacts(address: LarderConfig.IPAddress(ip), user: self.user)
        case .unix(let peer): ClientFacts(address: nil, user: self.user, uid: peer?.uid)
        }
    }
}

extension AccessQuery {
    fileprivate var identity: ClientIdentity {
        ClientIdentity(address: self.client, user: self.user)
    }
}

extension LarderConfig.IPAddress {
    fileprivate init(_ address: LarderProxy.IPAddress) {
        self.init(address.isIPv4 ? .v4 : .v6, address.bits)
    }
}
