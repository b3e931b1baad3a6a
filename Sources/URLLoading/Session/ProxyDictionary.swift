import Foundation
import LarderEngine
import LarderHTTP
import LarderTransfer

/// `connectionProxyDictionary`, read (§2.1).
struct ProxyDictionary {
    private let entries: [AnyHashable: Any]

    init(_ entries: [AnyHashable: Any]) {
        self.entries = entries
    }

    /// Exceptions first, then a proxy for each scheme, then SOCKS for what has none.
    var rules: ParentRules {
        let exceptions = (self.entries["ExceptionsList"] as? [Any] ?? [])
            .compactMap { ($0 as? String).flatMap { ProxyException($0, style: .list) } }
        let excludesSimple = self.isSet("ExcludeSimpleHostnames") ?? false
        var rules: [ParentRules.Rule] = []
        if excludesSimple || !exceptions.isEmpty {
            rules.append(
                ParentRules.Rule(via: .direct) { host, port in
                    excludesSimple && ProxyException.isSimple(host)
                        || exceptions.contains { $0.matches(host: host, port: port) }
                })
        }
        for (prefix, scheme) in [("HTTP", Scheme.http), ("HTTPS", .https), ("FTP", .ftp)] {
            guard let parent = self.parent(prefix, kind: .http) else { continue }
            rules.append(
                ParentRules.Rule(via: .parent(parent), schemes: [scheme]) { _, _ in true })
        }
        if let parent = self.parent("SOCKS", kind: .socks5) {
            rules.append(ParentRules.Rule(via: .parent(parent)) { _, _ in true })
        }
        let leads = rules.contains { if case .parent = $0.via { true } else { false } }
        if !leads, self.isSet("ProxyAutoConfigEnable") ?? false {
            rules.append(ParentRules.Rule(via: .parent(.unusable)) { _, _ in true })
        }
        return ParentRules(rules)
    }

    /// A proxy of the dictionary; one that cannot be one makes requests fail, not go directly.
    private func parent(_ prefix: String, kind: Parent.Kind) -> Parent? {
        guard let host = self.entries["\(prefix)Proxy"] as? String, !host.isEmpty,
            self.isSet("\(prefix)Enable") ?? true
        else { return nil }
        let standard: UInt16 = kind == .socks5 ? 1080 : prefix == "HTTPS" ? 443 : 80
        let port = self.number("\(prefix)Port").map { UInt16(exactly: $0) ?? 0 } ?? standard
        let login = self.login(prefix)
        return Parent(
            kind: kind, host: Parent.host(host), port: port,
            authentication: login == nil ? .none : .any, credential: login)
    }

    private func login(_ prefix: String) -> ParentCredential? {
        let users = ["\(prefix)User", "kCFProxyUsernameKey", "kCFStreamPropertySOCKSUser"]
        let words = ["\(prefix)Password", "kCFProxyPasswordKey", "kCFStreamPropertySOCKSPassword"]
        guard let user = users.lazy.compactMap({ self.entries[$0] as? String }).first else {
            return nil
        }
        let word = words.lazy.compactMap { self.entries[$0] as? String }.first ?? ""
        return ParentCredential(user: user, password: word)
    }

    private func number(_ key: String) -> Int? {
        switch self.entries[key] {
        case let number as Int: number
        case let number as NSNumber: number.intValue
        case let text as String: Int(text)
        default: nil
        }
    }

    private func isSet(_ key: String) -> Bool? {
        if let flag = self.entries[key] as? Bool { return flag }
        return self.number(key).map { $0 != 0 }
    }
}

extension Parent {
    /// A host as libcurl wants it: an IPv6 address in brackets.
    static func host(_ host: String) -> String {
        host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    }
}
