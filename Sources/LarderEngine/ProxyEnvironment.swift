package import LarderHTTP
package import LarderTransfer

/// What the environment says about proxies, read as curl reads it.
package struct ProxyEnvironment {
    /// Values as bytes: they need not be UTF-8, and some are handed on.
    private let variables: [String: [UInt8]]

    package init(_ variables: [String: String]) {
        self.variables = variables.mapValues { Array($0.utf8) }
    }

    /// Reads the entries of an environment, as a process is given them: `NAME=VALUE`.
    package init(entries: [[UInt8]]) {
        var variables: [String: [UInt8]] = [:]
        for entry in entries {
            guard let equals = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
            variables[Self.text(Array(entry[..<equals]))] = Array(entry[(equals + 1)...])
        }
        self.variables = variables
    }

    /// The proxies that it names.
    ///
    /// - Parameter tunnels: what those carry of which nothing is said: then they go where such
    ///   requests do; nil: by the first proxy that is named for anything.
    package func rules(tunnels: Scheme? = nil) -> ParentRules {
        let exceptions = self.exceptions.compactMap {
            ProxyException(Self.text($0), style: .suffixes)
        }
        var rules: [ParentRules.Rule] = []
        if !exceptions.isEmpty {
            rules.append(
                ParentRules.Rule(via: .direct) { host, port in
                    exceptions.contains { $0.matches(host: host, port: port) }
                })
        }
        for scheme in [Scheme.http, .https, .ftp] {
            guard let parent = self.proxy(for: scheme).flatMap({ Self.parent(Self.text($0.value)) })
            else { continue }
            var rule = ParentRules.Rule(via: .parent(parent), schemes: [scheme]) { _, _ in true }
            rule.leadsTunnels = tunnels.map { $0 == scheme } ?? true
            rules.append(rule)
        }
        return ParentRules(rules)
    }

    /// The variables that count and name no proxy that can be used, of which ``rules(tunnels:)`` makes one
    /// that leads nowhere; sorted.
    ///
    /// What is for ftp alone may never be needed, and is told when it is; with `no_proxy=*` none is.
    package var unusable: [String] {
        guard !self.exceptions.contains(Array("*".utf8)) else { return [] }
        let counting = [Scheme.http, .https].compactMap { self.proxy(for: $0) }
        let names = counting.filter { Self.parent(Self.text($0.value))?.isUnusable == true }
        return Set(names.map(\.name)).sorted()
    }

    /// The variable that says where requests of a scheme go.
    private func proxy(for scheme: Scheme) -> (name: String, value: [UInt8])? {
        let name = "\(scheme.rawValue)_proxy"
        // `HTTP_PROXY` is what a web server makes of a request's field `Proxy` (CVE-2016-5385).
        let own = scheme == .http ? self.variables[name].map { (name, $0) } : self.variable(name)
        return own ?? self.variable("all_proxy")
    }

    /// The hosts that no proxy leads to, byte by byte as they were given.
    ///
    /// Without those that are this machine: a proxy here may lead there, too.
    package var remoteExceptions: [[UInt8]] {
        self.exceptions.filter { bytes in
            let exception = ProxyException(Self.text(bytes), style: .suffixes)
            return exception.map { !$0.isOfLoopback } ?? true
        }
    }

    private var exceptions: [[UInt8]] {
        let value = self.variable("no_proxy")?.value ?? []
        return value.split { ", \t".utf8.contains($0) }.map { Array($0) }
    }

    /// In lower case before upper case; one that is empty is there, and means no proxy.
    private func variable(_ name: String) -> (name: String, value: [UInt8])? {
        for name in [name, name.uppercased()] {
            if let value = self.variables[name] { return (name, value) }
        }
        return nil
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    /// Reads `[scheme://][user[:password]@]host[:port]`.
    ///
    /// Nil where it is empty: no proxy. Anything else leads nowhere, so that it is noticed.
    static func parent(_ text: String) -> Parent? {
        var rest = text[...].drop { $0 == " " }
        guard !rest.isEmpty else { return nil }
        var kind = Parent.Kind.http
        if let mark = rest.firstRange(of: "://") {
            switch rest[..<mark.lowerBound].lowercased() {
            case "http": kind = .http
            case "https": kind = .https
            case "socks5", "socks5h", "socks": kind = .socks5
            default: return .unusable
            }
            rest = rest[mark.upperBound...]
        }
        rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        var login: ParentCredential?
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let texts = parts.map { PercentCoding.decoded($0) ?? String($0) }
            login = ParentCredential(
                user: texts.first ?? "", password: texts.count > 1 ? texts[1] : "")
            rest = rest[rest.index(after: at)...]
        }
        guard let (host, port) = self.hostAndPort(rest) else { return .unusable }
        return Parent(
            kind: kind, host: host, port: port ?? (kind == .https ? 443 : 1080),
            authentication: login == nil ? .none : .basic, credential: login)
    }

    private static func hostAndPort(_ text: Substring) -> (String, UInt16?)? {
        var host = text
        var port: Substring?
        let end = text.hasPrefix("[") ? text.firstIndex(of: "]") : text.startIndex
        guard let end else { return nil }
        if let colon = text[end...].firstIndex(of: ":") {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
        }
        guard !host.isEmpty else { return nil }
        guard let port, !port.isEmpty else { return (String(host), nil) }
        return UInt16(port).map { (String(host), $0) }
    }
}
