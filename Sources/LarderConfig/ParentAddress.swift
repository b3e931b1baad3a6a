/// The way to origins: `direct`, or a proxy further on, such as `http://proxy.example.com:3128`.
package enum ParentAddress: SettingText, Hashable {
    /// How the proxy is spoken to.
    package enum Scheme: String, Sendable { case http, https, socks5 }

    case direct
    /// - Parameter host: in lower case; an IPv6 address in brackets.
    case proxy(Scheme, host: String, port: UInt16)

    package static var kind: String { "way" }
    package static var expectation: String {
        "direct, or a proxy such as http://proxy.example.com:3128, https://… or socks5://…"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        if text == "direct" {
            self = .direct
            return
        }
        guard let end = text.firstRange(of: "://") else { throw Self.withoutScheme(text) }
        let scheme = text[..<end.lowerBound].lowercased()
        var rest = text[end.upperBound...]
        if let at = rest.lastIndex(of: "@") {
            throw SettingTextProblem(
                "holds a user name or password: add them by \"larder credentials add\" and name "
                    + "them in credential", showing: "\(scheme)://…\(rest[at...])")
        }
        guard let known = Scheme(rawValue: scheme) else {
            throw SettingTextProblem("has a scheme that Larder speaks to no proxy by")
        }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        let close = rest.hasPrefix("[") ? rest.firstIndex(of: "]") : rest.startIndex
        guard let close else { throw SettingTextProblem("has no closing bracket") }
        guard let colon = rest[close...].firstIndex(of: ":") else {
            throw SettingTextProblem("has no port: write \"\(text):3128\", for example")
        }
        guard let port = PortRange.port(rest[rest.index(after: colon)...]) else {
            throw SettingTextProblem("has no port from 1 to 65535")
        }
        let host = rest[..<colon].lowercased()
        guard Self.isHost(host) else { throw SettingTextProblem("has no host") }
        self = .proxy(known, host: host, port: port)
    }

    private static func withoutScheme(_ text: String) -> SettingTextProblem {
        guard let at = text.lastIndex(of: "@") else {
            return text.contains(":")
                ? SettingTextProblem("has no scheme: write \"http://\(text)\", for example")
                : SettingTextProblem(
                    NearestName.of(text, among: ["direct"]).map {
                        "is unknown (did you mean \"\($0)\"?)"
                    })
        }
        return SettingTextProblem("has no scheme", showing: "…\(text[at...])")
    }

    private static func isHost(_ host: String) -> Bool {
        if host.hasPrefix("[") {
            return host.hasSuffix("]") && IPAddress(host.dropFirst().dropLast()) != nil
        }
        return (1...253).contains(host.utf8.count)
            && host.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x61...0x7A: true
                default: "-._".utf8.contains(byte)
                }
            }
    }

    package var settingText: String {
        switch self {
        case .direct: "direct"
        case .proxy(let scheme, let host, let port): "\(scheme.rawValue)://\(host):\(port)"
        }
    }
}
