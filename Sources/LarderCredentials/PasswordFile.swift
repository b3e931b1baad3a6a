import LarderHTTP

/// The users of a password file, as `htpasswd -B` writes it: `user:hash` a line.
package struct PasswordFile: Sendable {
    package struct Entry: Sendable, Equatable {
        /// From 1.
        package let line: Int
        /// UTF-8, without a colon or a control character.
        package let user: [UInt8]
        package let hash: PasswordHash
    }

    /// In the order of the file; no two with the same user.
    package let entries: [Entry]

    /// - Throws: the first fault.
    package init(parsing bytes: [UInt8]) throws(CredentialFileFault) {
        var entries: [Entry] = []
        // As text and not by its bytes: é in one character and in two would be two users with two
        // passwords, and one for all that compares names.
        var lines: [String: Int] = [:]
        for line in try CredentialFileLines.read(bytes) {
            let name = String(decoding: line.name, as: UTF8.self)
            if let first = lines.updateValue(line.number, forKey: name) {
                throw CredentialFileFault(line: line.number, .repeatedName(line: first))
            }
            switch PasswordHash.read(line.rest) {
            case .hash(let hash):
                entries.append(Entry(line: line.number, user: line.name, hash: hash))
            case .fault(let problem):
                throw CredentialFileFault(line: line.number, problem)
            }
        }
        self.entries = entries
    }
}

/// A hashed password in the form of crypt(5).
package struct PasswordHash: Sendable, Equatable {
    package enum Scheme: Sendable, Equatable {
        case bcrypt, yescrypt, sha256, sha512
    }

    enum Reading {
        case hash(PasswordHash)
        case fault(CredentialFileFault.Problem)
    }

    package let scheme: Scheme
    /// Printable ASCII; the setting for crypt(3) as well as what it must answer.
    package let text: [UInt8]

    /// The hash that `text` writes; nil where it is none that is taken.
    package init?(_ text: String) {
        guard case .hash(let hash) = Self.read(Array(text.utf8)[...]) else { return nil }
        self = hash
    }

    private init(_ scheme: Scheme, _ text: FieldValue) {
        self.scheme = scheme
        self.text = Array(text)
    }

    static func read(_ text: FieldValue) -> Reading {
        let parts = text.split(
            separator: UInt8(ascii: "$"), maxSplits: 8, omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].isEmpty else { return .fault(.weakHash) }
        let method = String(decoding: parts[1].prefix(8), as: UTF8.self)
        switch method {
        case "2a", "2b", "2y": return Self.bcrypt(text, parts)
        case "y": return Self.yescrypt(text, parts)
        case "5": return Self.sha(.sha256, text, parts, digits: 43)
        case "6": return Self.sha(.sha512, text, parts, digits: 86)
        default: return .fault(.weakHash)
        }
    }

    /// `$2b$NN$`, 22 digits of salt and 31 of hash; the time doubles with each step of NN.
    private static func bcrypt(_ text: FieldValue, _ parts: [FieldValue]) -> Reading {
        guard parts.count == 4, parts[2].count == 2, let cost = parts[2].decimal, cost >= 4,
            cost <= 31, parts[3].count == 53, parts[3].isCryptDigits
        else { return .fault(.damagedHash) }
        return cost <= 15 ? .hash(PasswordHash(.bcrypt, text)) : .fault(.costlyHash)
    }

    /// `$y$parameters$salt$hash`, the last of 43 digits.
    private static func yescrypt(_ text: FieldValue, _ parts: [FieldValue]) -> Reading {
        guard parts.count == 5, !parts[2].isEmpty, parts[2].count <= 86, !parts[3].isEmpty,
            parts[3].count <= 86, parts[4].count == 43,
            parts[2...].allSatisfy({ $0.isCryptDigits })
        else { return .fault(.damagedHash) }
        return .hash(PasswordHash(.yescrypt, text))
    }

    /// `$6$salt$hash` or `$6$rounds=N$salt$hash`.
    private static func sha(
        _ scheme: Scheme, _ text: FieldValue, _ parts: [FieldValue], digits: Int
    ) -> Reading {
        var rest = parts[2...]
        if let first = rest.first, first.starts(with: "rounds=".utf8) {
            guard let rounds = first.dropFirst(7).decimal, rounds >= 1_000 else {
                return .fault(.damagedHash)
            }
            guard rounds <= 1_000_000 else { return .fault(.costlyHash) }
            rest = rest.dropFirst()
        }
        guard rest.count == 2, let salt = rest.first, let hash = rest.last, salt.count <= 16,
            salt.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != ASCII.colon }),
            hash.count == digits, hash.isCryptDigits
        else { return .fault(.damagedHash) }
        return .hash(PasswordHash(scheme, text))
    }
}

extension PasswordHash: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(\(self.scheme) hash)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension ArraySlice<UInt8> {
    /// Digits of crypt(5)'s own base 64.
    fileprivate var isCryptDigits: Bool {
        self.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
                true
            default: false
            }
        }
    }

    /// The number that these digits write; nil for anything else, and beyond nine digits.
    fileprivate var decimal: Int? {
        guard !self.isEmpty, self.count <= 9, self.allSatisfy(ASCII.isDigit) else { return nil }
        return self.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}
