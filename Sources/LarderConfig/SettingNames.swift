/// A request method in the configuration: a token (RFC 9110 §5.6.2), compared as it stands.
package struct MethodName: SettingText, Hashable {
    package let name: String

    package static var kind: String { "methods" }
    package static var expectation: String { "a method such as GET" }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard Token.isToken(text) else { throw SettingTextProblem() }
        guard !text.contains(where: \.isLowercase) else {
            throw SettingTextProblem("is in lower case, and methods are case-sensitive")
        }
        self.name = text
    }

    package var settingText: String { self.name }
}

/// A name that goes into field values as it stands (RFC 9110 §5.6.2).
package struct Token: SettingText, Hashable {
    package let text: String

    package static var kind: String { "token" }
    package static var expectation: String {
        "letters, digits and any of !#$%&'*+-.^_`|~, without spaces"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard Self.isToken(text) else { throw SettingTextProblem() }
        self.text = text
    }

    package var settingText: String { self.text }

    /// The pseudonym and cache name of a Larder that was not told another.
    package static let larder = Token(known: "larder")

    private init(known text: String) {
        self.text = text
    }

    static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 128
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}

/// The name of a session, which is also the name of its directories.
package struct SessionName: SettingText, Hashable {
    package let text: String

    package static var kind: String { "session" }
    package static var expectation: String {
        "up to 64 lower-case letters, digits, - and _, beginning with a letter or digit"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        let plain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
            default: false
            }
        }
        guard plain, (1...64).contains(text.utf8.count), text.first != "-", text.first != "_"
        else { throw SettingTextProblem() }
        self.text = text
    }

    package var settingText: String { self.text }

    package static let `default` = SessionName(known: "default")
    package static let ephemeral = SessionName(known: "ephemeral")

    private init(known text: String) {
        self.text = text
    }
}

/// An absolute path.
package struct FilePath: SettingText, Hashable {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package static var kind: String { "path" }
    package static var expectation: String { "an absolute path such as /srv/larder" }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard text.hasPrefix("/") else { throw SettingTextProblem("is not absolute") }
        guard !text.utf8.contains(0), text.utf8.count < 4096 else { throw SettingTextProblem() }
        self.text = text
    }

    package var settingText: String { self.text }
}

/// The path of a Unix socket.
package struct SocketPath: SettingText, Hashable {
    package let text: String

    package static var kind: String { FilePath.kind }
    package static var expectation: String {
        "an absolute path of at most \(ListenAddress.longestSocketPath) bytes"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        self.text = try FilePath(settingText: text).text
        guard text.utf8.count <= ListenAddress.longestSocketPath else {
            throw SettingTextProblem("is too long for a socket")
        }
    }

    package var settingText: String { self.text }
}

/// Permissions of a Unix socket, in octal: `0600`.
package struct FileMode: SettingText, Hashable {
    package let bits: UInt16

    package init(_ bits: UInt16) {
        self.bits = bits
    }

    package static var kind: String { "mode" }
    package static var expectation: String { "permissions in octal, 0000 to 0777" }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x37 }), (3...4).contains(text.count),
            let bits = UInt16(text, radix: 8), bits <= 0o777
        else { throw SettingTextProblem() }
        self.bits = bits
    }

    package var settingText: String {
        let octal = String(self.bits, radix: 8)
        return String(repeating: "0", count: max(0, 4 - octal.count)) + octal
    }
}

/// Where log lines go: `none`, `stdout`, `journal`, or the path of a file.
package enum LogDestination: SettingText, Hashable {
    case none
    case stdout
    case journal
    case file(FilePath)

    package static var kind: String { "destination" }
    package static var expectation: String {
        "none, stdout, journal, or a path such as /var/log/larder/access.log"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        switch text {
        case "none": self = .none
        case "stdout": self = .stdout
        case "journal": self = .journal
        default:
            let path = text.hasPrefix("file ") ? text.dropFirst(5).drop { $0 == " " } : text[...]
            guard path.contains("/") else { throw SettingTextProblem() }
            self = .file(try FilePath(settingText: String(path)))
        }
    }

    package var settingText: String {
        switch self {
        case .none: "none"
        case .stdout: "stdout"
        case .journal: "journal"
        case .file(let path): path.text
        }
    }
}
