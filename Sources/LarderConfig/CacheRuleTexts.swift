/// The name of a cache rule, for messages and explanations.
package struct RuleName: SettingText, Hashable {
    package let text: String

    package static var kind: String { "name" }
    package static var expectation: String {
        "up to 64 letters, digits, -, _ and ., without spaces"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        let fits = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-_.".utf8.contains(byte)
            }
        }
        guard fits, (1...64).contains(text.utf8.count), text != "none" else {
            throw SettingTextProblem()
        }
        self.text = text
    }

    package var settingText: String { self.text }
}

/// The name of a preset: that of its file without `.yaml`.
package struct PresetName: SettingText, Hashable {
    package let text: String

    package static var kind: String { "presets" }
    package static var expectation: String {
        "the name of a preset: lower-case letters, digits and -"
    }

    /// No slash and no dot: a name leads out of no directory.
    package init(settingText text: String) throws(SettingTextProblem) {
        let fits = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "-"): true
            default: false
            }
        }
        guard fits, (1...64).contains(text.utf8.count) else { throw SettingTextProblem() }
        self.text = text
    }

    package var settingText: String { self.text }
}

/// Which hosts a cache rule is about: a host with wildcards, perhaps with a port.
package struct HostPattern: SettingText, Hashable {
    /// In lower case; with a leading dot: that domain and all below it.
    package let host: String
    /// nil: every port.
    package let ports: PortRange?

    package static var kind: String { "hosts" }
    package static var expectation: String {
        "a host such as example.com, .example.com, *.example.com:443 or [::1]"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        var host = text[...]
        var ports: Substring?
        let end = text.hasPrefix("[") ? text.firstIndex(of: "]") : text.startIndex
        guard let end else { throw SettingTextProblem("has no closing bracket") }
        if let colon = text[end...].firstIndex(of: ":") {
            host = text[..<colon]
            ports = text[text.index(after: colon)...]
        }
        // As hosts of requests are compared.
        let name = String(host.lowercased().withoutFinalDot)
        let isLiteral = name.hasPrefix("[") && name.hasSuffix("]")
        guard !name.isEmpty, !name.hasSuffix("."),
            isLiteral || name.utf8.allSatisfy(Self.isHostByte)
        else {
            throw SettingTextProblem()
        }
        if isLiteral, IPAddress(name.dropFirst().dropLast()) == nil {
            throw SettingTextProblem("holds no address in its brackets")
        }
        self.host = name
        self.ports = try ports.map { (text) throws(SettingTextProblem) in
            try PortRange(settingText: String(text))
        }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x7A: true
        default: "-._*?".utf8.contains(byte)
        }
    }

    package var settingText: String {
        self.ports.map { "\(self.host):\($0.settingText)" } ?? self.host
    }
}

/// Which paths a cache rule is about, without their queries.
package struct PathPattern: SettingText, Hashable {
    package let pattern: String

    package static var kind: String { "paths" }
    package static var expectation: String { "a path with wildcards, such as /pool/*.deb" }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard text.hasPrefix("/") || text.hasPrefix("*") else {
            throw SettingTextProblem("begins with neither / nor *")
        }
        guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }), text.utf8.count <= 4096
        else { throw SettingTextProblem("has a character that no path has") }
        self.pattern = text
    }

    package var settingText: String { self.pattern }
}

/// How long errors of a status, or of a hundred of them, are kept: `404: 30 s`, `5xx: 5 s`.
package struct StatusLifetime: SettingText, Hashable {
    package let statuses: ClosedRange<UInt16>
    package let lifetime: TimeSpan

    package static var kind: String { "times by status" }
    package static var expectation: String {
        "an error's status and a time, such as 404: 30 s or 5xx: 5 s"
    }
    /// A longer one is no negative caching any more.
    private static let longest = TimeSpan.days(365)

    package init(settingText text: String) throws(SettingTextProblem) {
        let parts = text.split(separator: ":", maxSplits: 1).map { $0.drop { $0 == " " } }
        guard parts.count == 2 else { throw SettingTextProblem() }
        switch parts[0].lowercased() {
        case "4xx": self.statuses = 400...499
        case "5xx": self.statuses = 500...599
        default:
            guard let status = UInt16(parts[0]) else { throw SettingTextProblem() }
            guard (400...599).contains(status) else {
                throw SettingTextProblem("is about a status that is no error")
            }
            self.statuses = status...status
        }
        self.lifetime = try TimeSpan(settingText: String(parts[1]))
        guard self.lifetime <= Self.longest else {
            throw SettingTextProblem("is out of range; allowed: up to 365 d")
        }
    }

    package var settingText: String {
        let first = self.statuses.lowerBound
        let name = self.statuses.count == 1 ? "\(first)" : "\(first / 100)xx"
        return "\(name): \(self.lifetime.settingText)"
    }
}
