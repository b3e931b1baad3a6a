import LarderConfig
import LarderHTTP
import LarderProxy
import Synchronization

/// The access rules of the configuration, replaceable while connections are open.
///
/// A request is judged by the rules of its own moment; tunnels already open stay open.
final class ConfiguredAccess: AccessPolicy {
    private let rules: Mutex<[LarderConfig.AccessRule]>

    init(_ rules: [LarderConfig.AccessRule]) {
        self.rules = Mutex(rules)
    }

    func replace(by rules: [LarderConfig.AccessRule]) {
        self.rules.withLock { $0 = rules }
    }

    func judge(_ query: AccessQuery) -> AccessVerdict {
        let rules = self.rules.withLock { $0 }
        let decision = rules.judge(
            AccessQuestion(
                client: query.client.address, method: query.method.rawValue, host: query.host,
                port: query.port))
        if decision.isAllowed { return .allowed }
        return .denied(rule: decision.rule.map { "access[\($0)]" } ?? "no access rule")
    }
}

extension ClientAddress {
    /// nil for a client of a Unix socket.
    fileprivate var address: LarderConfig.IPAddress? {
        switch self {
        case .ip(let ip, _, _): LarderConfig.IPAddress(ip.isIPv4 ? .v4 : .v6, ip.bits)
        case .unix: nil
        }
    }
}
