import LarderHTTP

/// What is wrong with one line of a password or token file.
///
/// It never repeats what stands there: that may be a secret in the wrong place.
package struct CredentialFileFault: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Problem: Sendable, Hashable {
        /// No colon, or nothing on one side of it.
        case notAPair
        /// Not UTF-8, with a control character, or longer than `CredentialFileLines.longestName`.
        case badName
        /// - Parameter line: where the name stood first.
        case repeatedName(line: Int)
        /// A scheme that no longer protects a password, or no hash at all.
        case weakHash
        /// A scheme that is taken, but not its form.
        case damagedHash
        /// One verification would take seconds.
        case costlyHash
        /// The system's crypt(3) does not know the scheme.
        case unknownHash
        case shortToken
        /// A character that no `Bearer` credentials can hold (RFC 6750 §2.1).
        case badToken
        /// Not 64 hexadecimal digits.
        case badDigest
        /// - Parameter line: where the same token stands under another name.
        case sharedToken(line: Int)
    }

    /// From 1.
    package let line: Int
    package let problem: Problem

    package init(line: Int, _ problem: Problem) {
        self.line = line
        self.problem = problem
    }

    package var description: String { "line \(self.line): \(self.problem.text)" }
}

extension CredentialFileFault.Problem {
    /// What is wrong, and what to do about it.
    fileprivate var text: String {
        switch self {
        case .notAPair: "is not a name, a colon and what belongs to it"
        case .badName: "the name is not text without control characters of at most 255 bytes"
        case .repeatedName(let line): "the name stands in line \(line) already; keep one of them"
        case .weakHash:
            "the password is not hashed by bcrypt, yescrypt or SHA-crypt; "
                + "write the line anew with: htpasswd -B FILE USER"
        case .damagedHash:
            "the hash is not whole; write the line anew with: htpasswd -B FILE USER"
        case .costlyHash:
            "one verification would take seconds; write the line anew with: "
                + "htpasswd -B -C 10 FILE USER"
        case .unknownHash:
            "the system's crypt does not know this hash; write the line anew with: "
                + "htpasswd -B FILE USER"
        case .shortToken:
            "the token can be guessed; draw a longer one with: openssl rand -hex 32"
        case .badToken:
            "the token has a character that none can have; draw one with: openssl rand -hex 32"
        case .badDigest: "behind sha256: there must be 64 hexadecimal digits"
        case .sharedToken(let line):
            "the token is that of line \(line); every name needs one of its own"
        }
    }
}

/// The lines of a password or token file: a name, a colon, and the rest.
///
/// Empty lines and those that begin with `#` are left out, white space around a line, too.
struct CredentialFileLines {
    static let longestName = 255

    struct Line {
        let number: Int
        let name: [UInt8]
        let rest: FieldValue
    }

    static func read(_ bytes: [UInt8]) throws(CredentialFileFault) -> [Line] {
        var lines: [Line] = []
        var number = 0
        var rest = bytes[...]
        while !rest.isEmpty {
            number += 1
            let end = rest.firstIndex(of: ASCII.lf) ?? rest.endIndex
            var line = rest[..<end]
            rest = end < rest.endIndex ? rest[(end + 1)...] : []
            if line.last == ASCII.cr { line.removeLast() }
            line = line.trimmingOWS()
            guard let first = line.first, first != UInt8(ascii: "#") else { continue }
            lines.append(try Self.pair(line, number))
        }
        return lines
    }

    private static func pair(
        _ line: FieldValue, _ number: Int
    ) throws(CredentialFileFault) -> Line {
        guard let colon = line.firstIndex(of: ASCII.colon), colon > line.startIndex,
            colon + 1 < line.endIndex
        else { throw CredentialFileFault(line: number, .notAPair) }
        let name = Array(line[..<colon])
        guard name.count <= Self.longestName, !name.hasControl,
            String(validating: name, as: UTF8.self) != nil
        else { throw CredentialFileFault(line: number, .badName) }
        return Line(number: number, name: name, rest: line[(colon + 1)...])
    }
}
