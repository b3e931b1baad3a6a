@testable import LarderCredentials
import LarderHTTP

/// The files that say who the proxy's clients are: a person edits them, so anything may stand there.
enum CredentialFilePromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try self.checkPasswords(input)
        try self.checkTokens(input)
        _ = TokenFile.token(in: input[...])
    }

    private static func checkPasswords(_ input: [UInt8]) throws(Violation) {
        let file: PasswordFile
        do throws(CredentialFileFault) {
            file = try PasswordFile(parsing: input)
        } catch {
            try self.check(error, of: input)
            return
        }
        let users = file.entries.map(\.user)
        try hold(Set(users).count == users.count, "a user twice")
        try self.check(file.entries.map { ($0.line, $0.user) }, of: input)
        var text: [UInt8] = []
        for entry in file.entries {
            let hash = PasswordHash(String(decoding: entry.hash.text, as: UTF8.self))
            try hold(hash == entry.hash, "a hash that is none by itself: line \(entry.line)")
            try hold(!entry.hash.text.contains(0), "a hash that ends early: line \(entry.line)")
            text += Array("#\r\n \t".utf8) + entry.user + [ASCII.colon] + entry.hash.text
            text += Array(" \r\n".utf8)
        }
        let again = try? PasswordFile(parsing: text)
        try hold(
            again?.entries.map(\.user) == users
                && again?.entries.map(\.hash) == file.entries.map(\.hash),
            "written and read again: \(text.text)")
    }

    private static func checkTokens(_ input: [UInt8]) throws(Violation) {
        let file: TokenFile
        do throws(CredentialFileFault) {
            file = try TokenFile(parsing: input)
        } catch {
            try self.check(error, of: input)
            return
        }
        try self.check(file.entries.map { ($0.line, $0.name) }, of: input)
        for entry in file.entries {
            switch entry.proof {
            case .digest(let octets):
                try hold(octets.count == 32, "a digest of \(octets.count) octets")
            case .token(let token):
                try hold(token.revealed.count >= TokenFile.shortestToken, "a short token")
                let value = Array("Bearer ".utf8) + token.revealed
                try hold(
                    TokenFile.token(in: value[...]) == token,
                    "a token that nobody can show: line \(entry.line)")
            }
        }
    }

    private static func check(
        _ entries: [(line: Int, name: [UInt8])], of input: [UInt8]
    ) throws(Violation) {
        let lines = input.count { $0 == ASCII.lf } + 1
        var last = 0
        for (line, name) in entries {
            try hold(line > last && line <= lines, "line \(line) behind \(last), of \(lines)")
            last = line
            try hold(
                !name.isEmpty && name.count <= 255 && !name.contains(ASCII.colon)
                    && !name.hasControl,
                "the name \(name)")
        }
    }

    private static func check(
        _ fault: CredentialFileFault, of input: [UInt8]
    ) throws(Violation) {
        let lines = input.count { $0 == ASCII.lf } + 1
        try hold(fault.line >= 1 && fault.line <= lines, "line \(fault.line) of \(lines)")
        try hold(fault.description.utf8.count < 200, "a long message")
    }
}
