import Foundation
import LarderCredentials
import LarderState
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@testable import LarderDaemon

@Suite("Files of credentials as they are found")
struct ClientRegisterTests {
    @Test(
        "are not used where anybody may write them, or where they are no files",
        arguments: [
            (0o602, "may be written by everybody"), (0o666, "may be written by everybody"),
            (0o620, "may be written by its group"),
            (0o600, nil), (0o644, nil), (0o640, nil),
        ] as [(Int, String?)])
    func modes(_ mode: Int, _ told: String?) throws {
        let files = try CredentialFiles()
        try files.write(CredentialFiles.passwords, to: files.passwordPath, mode: mode)
        do throws(CredentialFileError) {
            let register = try ClientRegister(
                passwordFile: files.passwordPath, tokenFile: nil, key: KeyedDigest())
            #expect(told == nil)
            #expect(register.readableByOthers == (mode & 0o004 != 0 ? [files.passwordPath] : []))
        } catch {
            let told = try #require(told)
            #expect(error.description.contains(told))
        }
    }

    @Test(
        "of tokens are for nobody else",
        arguments: [
            (0o602, "may be written by everybody"), (0o620, "may be written by its group"),
            (0o644, "may be used by others"), (0o640, "may be used by others"),
            (0o604, "may be used by others"), (0o601, "may be used by others"),
            (0o600, nil), (0o400, nil),
        ] as [(Int, String?)])
    func tokenModes(_ mode: Int, _ told: String?) throws {
        let files = try CredentialFiles()
        try files.write("a:\(CredentialFiles.token)\n", to: files.tokenPath, mode: mode)
        do throws(CredentialFileError) {
            _ = try ClientRegister(
                passwordFile: nil, tokenFile: files.tokenPath, key: KeyedDigest())
            #expect(told == nil)
        } catch {
            let told = try #require(told)
            #expect(error.description.contains(told))
        }
    }

    @Test("from the service manager have the mode that it gave them")
    func credentials() throws {
        let files = try CredentialFiles()
        try files.write("a:\(CredentialFiles.token)\n", to: files.tokenPath, mode: 0o440)
        let directory = files.directory.path
        for (credentials, isRead) in [(directory, true), (directory + "/other", false)] {
            let contents = try? CredentialFile.read(
                files.tokenPath, isSecret: true, credentials: credentials)
            #expect((contents != nil) == isRead)
        }
    }

    @Test("are not waited for where they are something else")
    func others() throws {
        let files = try CredentialFiles()
        let pipe = files.directory.appending(path: "pipe").path
        #expect(unsafe mkfifo(pipe, 0o600) == 0)
        let missing = files.directory.appending(path: "missing").path
        for (path, told) in [
            (pipe, "is no file"), (files.directory.path, "is no file"),
            (missing, "cannot be opened"),
        ] {
            let error = #expect(throws: CredentialFileError.self) {
                try ClientRegister(passwordFile: nil, tokenFile: path, key: KeyedDigest())
            }
            #expect(error?.detail.contains(told) == true)
        }
        let large = files.directory.appending(path: "large").path
        try files.write(String(repeating: "#\n", count: 5 << 20), to: large)
        let error = #expect(throws: CredentialFileError.self) {
            try ClientRegister(passwordFile: large, tokenFile: nil, key: KeyedDigest())
        }
        #expect(error?.detail.contains("larger than 8 MiB") == true)
    }

    @Test("have others' hashes checked for users that are not there, always the same")
    func strangers() throws {
        let files = try CredentialFiles()
        let key = KeyedDigest()
        let register = try ClientRegister(
            passwordFile: files.passwordPath, tokenFile: nil, key: key)
        var seen: Set<[UInt8]> = []
        for number in 0..<200 {
            let name = Array("stranger-\(number)".utf8)
            let check = try #require(register.check(name, number: key.number(ofUser: name)))
            let again = register.check(name, number: key.number(ofUser: name))
            #expect(!check.isKnown)
            #expect(check.hash == again?.hash)
            seen.insert(check.hash.text)
        }
        // As costly as known ones, of whom there are four.
        #expect(seen.count == 4)
        let alice = register.check(Array("alice".utf8), number: key.number(ofUser: []))
        #expect(alice?.isKnown == true)
        let nobody = try ClientRegister(passwordFile: nil, tokenFile: nil, key: key)
        #expect(nobody.check([], number: key.number(ofUser: []))?.isKnown == false)
    }

    @Test("have no token twice, in whatever form")
    func sharedToken() throws {
        let files = try CredentialFiles()
        // SHA-256 of the token in the other line.
        try files.write(
            "a:\(CredentialFiles.token)\n"
                + "b:sha256:\(CredentialFiles.tokenDigest)\n", to: files.tokenPath)
        let error = #expect(throws: CredentialFileError.self) {
            try ClientRegister(passwordFile: nil, tokenFile: files.tokenPath, key: KeyedDigest())
        }
        #expect(error?.detail.contains("line 2: the token is that of line 1") == true)
    }

    @Test(
        "hold passwords that crypt(3) takes whole",
        arguments: [
            ("correct horse", true), ("correct horse\0", false), ("correct horse\0x", false),
            ("", false), ("correct hors", false), (String(repeating: "x", count: 511), false),
            (String(repeating: "x", count: 512), false),
            (String(repeating: "x", count: 1 << 20), false),
        ])
    func crypt(_ password: String, _ isRight: Bool) throws {
        let file = try PasswordFile(parsing: Array(CredentialFiles.passwords.utf8))
        #expect(file.entries.count == 4)
        for entry in file.entries {
            #expect(SystemCrypt.knows(entry.hash))
            #expect(SystemCrypt.matches(Secret(password), entry.hash) == isRight)
        }
    }

    @Test("hold hashes in a right form that crypt(3) does not take: nothing matches those")
    func failing() throws {
        // Parameters of yescrypt that mean nothing.
        let text = "$y$.$abcdefghijklmnop$1kKL1r02wT4HlcktLfzeoOHd1GFgv7Ay4JeEbqGj80B"
        let hash = try #require(PasswordHash(text))
        #expect(!SystemCrypt.matches(Secret("correct horse"), hash))
        #expect(!SystemCrypt.matches(Secret(""), hash))
    }
}

@Suite("Verdicts on credentials")
struct RememberedVerdictsTests {
    @Test("are remembered for a time and in a number, the oldest forgotten first")
    func bounded() {
        let key = KeyedDigest()
        let start = ContinuousClock().now
        var verified = RememberedVerdicts(capacity: 3, time: .seconds(10))
        for number in 0..<4 {
            verified.remember(
                key.digest([UInt8(number)]), user: "\(number)", at: start + .seconds(number))
        }
        let known = (0..<4).map { number in
            verified.user(of: key.digest([UInt8(number)]), at: start + .seconds(10))
        }
        #expect(known == [nil, "1", "2", "3"])
        #expect(verified.user(of: key.digest([1]), at: start + .seconds(11)) == nil)
        verified.remember(key.digest([9]), user: "9", at: start + .seconds(100))
        #expect(verified.count == 1)
        verified.forgetAll()
        #expect(verified.user(of: key.digest([9]), at: start + .seconds(100)) == nil)
    }

    @Test("are found by a digest that another key does not give")
    func keyed() {
        let (one, other) = (KeyedDigest(), KeyedDigest())
        #expect(one.digest([1]) == one.digest([1]))
        #expect(one.digest([1]) != one.digest([2]))
        #expect(one.digest([1]) != other.digest([1]))
    }
}
