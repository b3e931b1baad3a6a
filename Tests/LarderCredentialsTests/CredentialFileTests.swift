import Testing

@testable import LarderCredentials

@Suite("The file of the proxy's users and their passwords")
struct PasswordFileTests {
    static let bcrypt = "$2y$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
    static let yescrypt = "$y$j75$abcdefghijklmnop$1kKL1r02wT4HlcktLfzeoOHd1GFgv7Ay4JeEbqGj80B"
    static let sha512 =
        "$6$rounds=1000$salt$Op5Pr8IefYjtJFNiLT8d.Xb85v8VtEyyKosvqEUXP9/.f4IC5kMbKoUZwss1ymncWvUZB6"
        + "QVTmIH88IN1Uc5C."
    static let sha256 = "$5$salt$VceWD7himthAFDjAznpLECWSsOgDma/ItrVvf6K05b4"

    static func problem(_ text: String) -> CredentialFileFault? {
        do throws(CredentialFileFault) {
            _ = try PasswordFile(parsing: Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test("has a user and a hash a line, comments and empty lines between them")
    func entries() throws {
        let text =
            "# users\n\nalice:\(Self.bcrypt)\r\n  \n# bob:gone\n b\u{F6}b:\(Self.yescrypt) \t\n"
            + "carol:\(Self.sha512)\ndave:\(Self.sha256)"
        let file = try PasswordFile(parsing: Array(text.utf8))
        #expect(
            file.entries.map { String(decoding: $0.user, as: UTF8.self) }
                == ["alice", "b\u{F6}b", "carol", "dave"])
        #expect(file.entries.map(\.line) == [3, 6, 7, 8])
        #expect(file.entries.map(\.hash.scheme) == [.bcrypt, .yescrypt, .sha512, .sha256])
        #expect(file.entries[0].hash.text == Array(Self.bcrypt.utf8))
        #expect(try PasswordFile(parsing: []).entries.isEmpty)
    }

    @Test(
        "is refused by the line that is wrong, and says what to do",
        arguments: [
            ("alice", .notAPair), ("alice:", .notAPair), (":\(bcrypt)", .notAPair),
            ("al\u{1}ce:\(bcrypt)", .badName),
            (String(repeating: "a", count: 256) + ":\(bcrypt)", .badName),
            // DES, MD5, SHA-1, plain.
            ("a:rqXexS6ZhobKA", .weakHash), ("a:$1$abc$BXBqpb9BZcZhXLgbee.0s/", .weakHash),
            ("a:$apr1$abc$BXBqpb9BZcZhXLgbee.0s/", .weakHash),
            ("a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", .weakHash), ("a:secret", .weakHash),
            ("a:!", .weakHash), ("a:*0", .weakHash), ("a:$", .weakHash),
            ("a:$$$$$$$$$$$", .weakHash),
            ("a:$2x$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", .weakHash),
            ("a:$2y$04$abcdefghijklmnopqrstuu", .damagedHash),
            ("a:\(bcrypt.dropLast())", .damagedHash), ("a:\(bcrypt)e", .damagedHash),
            ("a:\(bcrypt):comment", .damagedHash),
            ("a:$2y$03$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", .damagedHash),
            ("a:$2y$32$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", .damagedHash),
            ("a:$2y$+4$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", .damagedHash),
            ("a:$2y$16$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", .costlyHash),
            ("a:\(yescrypt.dropLast())", .damagedHash), ("a:$y$j75$\(sha256)", .damagedHash),
            ("a:\(sha512.dropLast())", .damagedHash), ("a:\(sha256)$", .damagedHash),
            ("a:\(sha512.replacing("1000", with: "999"))", .damagedHash),
            ("a:\(sha512.replacing("1000", with: "1000001"))", .costlyHash),
            ("a:\(sha512.replacing("1000", with: "99999999999999999999"))", .damagedHash),
            ("a:\(sha512.replacing("$salt$", with: "$seventeen-letters$"))", .damagedHash),
        ] as [(String, CredentialFileFault.Problem)])
    func faults(_ line: String, _ expected: CredentialFileFault.Problem) {
        let fault = Self.problem("# first\nzoe:\(Self.bcrypt)\n\(line)\n")
        #expect(fault == CredentialFileFault(line: 3, expected))
        // Nothing of the line itself: what is no hash may be a password.
        #expect(fault?.description.hasPrefix("line 3: ") == true)
        #expect(fault?.description.contains("secret") == false)
    }

    @Test("names a user once")
    func repeated() {
        let fault = Self.problem("alice:\(Self.bcrypt)\nbob:\(Self.bcrypt)\nalice:\(Self.sha256)\n")
        #expect(fault == CredentialFileFault(line: 3, .repeatedName(line: 1)))
    }

    @Test("names a user once, however Unicode writes it")
    func equivalent() {
        let fault = Self.problem("\u{E9}:\(Self.bcrypt)\ne\u{301}:\(Self.sha256)\n")
        #expect(fault == CredentialFileFault(line: 2, .repeatedName(line: 1)))
    }

    @Test("is text: other bytes are no name")
    func bytes() {
        let fault = #expect(throws: CredentialFileFault.self) {
            try PasswordFile(parsing: [0xFF, 0x3A] + Array(Self.bcrypt.utf8))
        }
        #expect(fault?.problem == .badName)
    }

    @Test("shows no hash where its parts are described")
    func hidden() throws {
        let file = try PasswordFile(parsing: Array("alice:\(Self.bcrypt)".utf8))
        #expect(!"\(file)".contains("abcdefghij"))
        var dumped = ""
        dump(file, to: &dumped)
        // Octets are dumped as numbers, those of the user's name among them, but no dollar sign.
        #expect(dumped.contains("- 97\n"))
        #expect(!dumped.contains("- 36\n"))
    }
}

@Suite("The file of the proxy's tokens")
struct TokenFileTests {
    static let token = "abcdefghijklmnopqrstuvwxyz-._~+/012345=="
    static let digest = String(repeating: "0aF9", count: 16)

    @Test("has a name and a token, or its SHA-256, a line")
    func entries() throws {
        let text =
            "ci:\(Self.token)\n# old\nci:sha256:\(Self.digest)\r\nother:sha256:"
            + String(repeating: "00", count: 32)
        let file = try TokenFile(parsing: Array(text.utf8))
        #expect(file.entries.map(\.line) == [1, 3, 4])
        #expect(
            file.entries.map { String(decoding: $0.name, as: UTF8.self) } == ["ci", "ci", "other"])
        #expect(
            file.entries.map(\.proof) == [
                .token(Secret(Self.token)),
                .digest((0..<32).map { $0 % 2 == 0 ? 0x0A : 0xF9 }),
                .digest([UInt8](repeating: 0, count: 32)),
            ])
    }

    @Test(
        "is refused by the line that is wrong",
        arguments: [
            ("ci", .notAPair), ("ci:", .notAPair), (":\(token)", .notAPair),
            ("ci:abcdefghijklmnopqrstu", .shortToken),
            ("ci:abc def ghi jkl mno pqr stu", .badToken),
            ("ci:======================", .badToken), ("ci:abcdefghijk=lmnopqrstuvwx", .badToken),
            ("ci:" + String(repeating: "a", count: 4_097), .badToken),
            ("ci:sha256:", .badDigest), ("ci:sha256:\(digest)0", .badDigest),
            ("ci:sha256:\(digest.dropLast(2))", .badDigest),
            ("ci:sha256:\(digest.dropLast())g", .badDigest), ("ci:sha1:\(digest)", .badToken),
            ("other:\(token)", .sharedToken(line: 1)), ("c\u{7F}:\(token)", .badName),
        ] as [(String, CredentialFileFault.Problem)])
    func faults(_ line: String, _ expected: CredentialFileFault.Problem) {
        let fault = #expect(throws: CredentialFileFault.self) {
            try TokenFile(parsing: Array("zoe:\(Self.token)\n\(line)".utf8))
        }
        #expect(fault == CredentialFileFault(line: 2, expected))
        #expect(fault?.description.contains("abcdef") == false)
    }

    @Test(
        "is compared with what a client sends by the scheme Bearer (RFC 6750 §2.1)",
        arguments: [
            ("Bearer abc", "abc"), ("bearer  abc==", "abc=="), ("BEARER a+b/c-d._~", "a+b/c-d._~"),
            ("Bearer", nil), ("Bearer ", nil), ("Bearer a b", nil), ("Basic abc", nil),
            ("Bearer =", nil), ("Bearer \"a\"", nil), ("", nil), ("Bearerabc", nil),
        ] as [(String, String?)])
    func sent(_ value: String, _ token: String?) {
        #expect(TokenFile.token(in: Array(value.utf8)[...]) == token.map { Secret($0) })
    }
}
