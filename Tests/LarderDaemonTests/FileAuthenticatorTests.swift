import Foundation
import LarderCredentials
import LarderProxy
import Synchronization
import Testing

@testable import LarderDaemon

/// A password and a token file in a directory of their own.
final class CredentialFiles: Sendable {
    static let passwords = """
        alice:$2y$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e
        bob:$y$j75$abcdefghijklmnop$1kKL1r02wT4HlcktLfzeoOHd1GFgv7Ay4JeEbqGj80B
        carol:$6$rounds=1000$salt$Op5Pr8IefYjtJFNiLT8d.Xb85v8VtEyyKosvqEUXP9/.f4IC5kMbKoUZwss1ymncWvUZB6QVTmIH88IN1Uc5C.
        dave:$5$salt$VceWD7himthAFDjAznpLECWSsOgDma/ItrVvf6K05b4

        """
    static let token = "dGhlIHByb3h5J3MgdG9rZW4="
    /// SHA-256 of `another-token-of-the-ci`.
    static let tokens = """
        build:\(token)
        ci:sha256:\(digestText)

        """
    static let digestText = "5f6ff3ad9debced88a058cf7f90b01b329eb04ed796e7bed8bb48a6bb63f9fd5"
    /// SHA-256 of `token`.
    static let tokenDigest = "c12cc61507b04ba46cc34fa9976fd61e21fb6e857af1134c04a7936c2bec4bf5"

    let directory: URL
    var passwordPath: String { self.directory.appending(path: "passwords").path }
    var tokenPath: String { self.directory.appending(path: "tokens").path }

    init() throws {
        self.directory = URL(filePath: "/tmp/larder-door-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(
            at: self.directory, withIntermediateDirectories: true)
        try self.write(Self.passwords, to: self.passwordPath)
        try self.write(Self.tokens, to: self.tokenPath)
    }

    func write(_ text: String, to path: String, mode: Int = 0o600) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    deinit { try? FileManager.default.removeItem(at: self.directory) }
}

/// Keeps what it is told.
final class Notices: Sendable {
    private let all = Mutex<[AuthenticationNotice]>([])
    var list: [AuthenticationNotice] { self.all.withLock { $0 } }
    func add(_ notice: AuthenticationNotice) { self.all.withLock { $0.append(notice) } }
}

/// A clock that a test sets.
final class SetClock: Sendable {
    private let instant = Mutex(ContinuousClock().now)
    var now: ContinuousClock.Instant { self.instant.withLock { $0 } }
    func advance(by time: Duration) { self.instant.withLock { $0 += time } }
}

@Suite("Clients verified by files (RFC 7617, RFC 6750)")
struct FileAuthenticatorTests {
    struct Bench {
        let authenticator: FileAuthenticator
        let files: CredentialFiles
        let notices: Notices
        let clock: SetClock

        static let client = ClientAddress.unix(PeerCredentials(uid: 1, pid: 1))

        func reload() throws {
            self.authenticator.follow(try self.authenticator.prepare())
        }

        func verdict(
            _ value: String?, from client: ClientAddress = Self.client
        ) async -> AuthenticationVerdict {
            await withCheckedContinuation { continuation in
                let verdict = self.at(once: value, from: client) {
                    continuation.resume(returning: $0)
                }
                if verdict != .pending { continuation.resume(returning: verdict) }
            }
        }

        func at(
            once value: String?, from client: ClientAddress = Self.client,
            then completion: @escaping @Sendable (AuthenticationVerdict) -> Void = { _ in }
        ) -> AuthenticationVerdict {
            self.authenticator.check(
                value.map { Array($0.utf8)[...] }, client: client, completion: completion)
        }
    }

    static func basic(_ user: String, _ password: String) -> String {
        "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
    }

    static func run(
        configure: (inout FileAuthenticator.Options, CredentialFiles) throws -> Void = { _, _ in },
        _ body: (Bench) async throws -> Void
    ) async throws {
        let files = try CredentialFiles()
        var options = FileAuthenticator.Options(
            passwordFile: files.passwordPath, tokenFile: files.tokenPath)
        try configure(&options, files)
        let notices = Notices()
        let clock = SetClock()
        let authenticator = try FileAuthenticator(options, clock: { clock.now }) {
            notices.add($0)
        }
        do {
            try await body(
                Bench(authenticator: authenticator, files: files, notices: notices, clock: clock))
        } catch {
            await authenticator.close()
            throw error
        }
        await authenticator.close()
    }

    @Test("a right password is verified once, whatever its hash, and then known for a while")
    func right() async throws {
        try await Self.run { bench in
            for user in ["alice", "bob", "carol", "dave"] {
                let value = Self.basic(user, "correct horse")
                #expect(await bench.verdict(value) == .known(user: user))
                #expect(bench.at(once: value) == .known(user: user))
            }
            bench.clock.advance(by: .seconds(300))
            let value = Self.basic("alice", "correct horse")
            #expect(await bench.verdict("b" + value.dropFirst()) == .known(user: "alice"))
            #expect(bench.notices.list.isEmpty)
        }
    }

    @Test(
        "what is wrong is refused",
        arguments: [
            basic("alice", "correct horse "), basic("alice", ""), basic("alice", "correct"),
            basic("Alice", "correct horse"), basic("nobody", "correct horse"), basic("", ""),
            basic(String(repeating: "a", count: 60_000), "x"),
            basic("alice", String(repeating: "x", count: 60_000)),
            "Basic", "Basic ", "Basic YWxpY2U=", "Basic YWxpY2U", "Basic ====", "Basic Zm9v YmFy",
            "Basic " + String(repeating: "A", count: 4_000), "Basic YWw6AGI=",
            "Bearer", "Bearer \(CredentialFiles.token)=", "Bearer another", "bearer a b",
        ])
    func wrong(_ value: String) async throws {
        try await Self.run { bench in
            #expect(await bench.verdict(value) == .refused)
            #expect(bench.notices.list.count == 1)
            #expect(await bench.verdict(value) == .refused)
            #expect(bench.notices.list.count == 1)
        }
    }

    @Test(
        "no credentials, or those of another scheme, are none", arguments: [nil, "Digest a=b", ""])
    func missing(_ value: String?) async throws {
        try await Self.run { bench in
            for _ in 0..<100 { #expect(bench.at(once: value) == .missing) }
            #expect(bench.notices.list.isEmpty)
        }
    }

    @Test("a scheme without a file is not offered, and not looked at")
    func oneFile() async throws {
        try await Self.run(configure: { options, _ in
            options.files.passwordFile = nil
            options.files.realm = "a \"b\" \\ \u{1}c"
        }) { bench in
            #expect(bench.authenticator.challenges == [#"Bearer realm="a \"b\" \\ c""#])
            #expect(bench.at(once: Self.basic("alice", "correct horse")) == .missing)
            #expect(bench.at(once: "Bearer \(CredentialFiles.token)") == .known(user: "build"))
        }
        try await Self.run(configure: { options, _ in options.files.tokenFile = nil }) { bench in
            #expect(
                bench.authenticator.challenges == [#"Basic realm="larder", charset="UTF-8""#])
            #expect(bench.at(once: "Bearer \(CredentialFiles.token)") == .missing)
        }
    }

    @Test("a token is known by itself, or by its digest")
    func tokens() async throws {
        try await Self.run { bench in
            #expect(bench.at(once: "bearer  \(CredentialFiles.token)") == .known(user: "build"))
            #expect(bench.at(once: "Bearer another-token-of-the-ci") == .known(user: "ci"))
            #expect(bench.at(once: "Bearer \(CredentialFiles.digestText)") == .refused)
        }
    }

    @Test("ten thousand wrong passwords from one address cost few hashes and two lines in the log")
    func flood() async throws {
        try await Self.run(configure: { options, _ in options.limit.user.burst = 5 }) { bench in
            var counts: [String: Int] = [:]
            for number in 0..<10_000 {
                let verdict = await bench.verdict(Self.basic("alice", "\(number)"))
                switch verdict {
                case .refused: counts["refused", default: 0] += 1
                case .throttled: counts["throttled", default: 0] += 1
                default: counts["other", default: 0] += 1
                }
            }
            #expect(counts == ["refused": 5, "throttled": 9_995])
            #expect(
                bench.notices.list == [
                    .refused(client: Bench.client, user: "alice"),
                    .throttled(client: Bench.client, user: "alice"),
                ])
            // So many that even what is right could be found out by them.
            let right = Self.basic("alice", "correct horse")
            let other = ClientAddress.unix(PeerCredentials(uid: 2, pid: 1))
            #expect(await bench.verdict(right, from: other) == .known(user: "alice"))
            guard case .throttled = bench.at(once: right) else {
                Issue.record("listened to")
                return
            }
            bench.clock.advance(by: .seconds(5))
            #expect(bench.at(once: right) == .known(user: "alice"))
        }
    }

    @Test(
        "who is right is not kept out by who is wrong at the same address",
        arguments: [
            // The wrong one, how often it comes, and who is right.
            ("bob", 10_000, "alice"), ("nobody", 10_000, "alice"), ("alice", 500, "alice"),
        ])
    func neighbours(_ wrong: String, _ count: Int, _ right: String) async throws {
        try await Self.run { bench in
            let credentials = Self.basic(right, "correct horse")
            #expect(await bench.verdict(credentials) == .known(user: right))
            for number in 0..<count { _ = await bench.verdict(Self.basic(wrong, "\(number)")) }
            guard case .throttled = bench.at(once: Self.basic(wrong, "another")) else {
                Issue.record("listened to")
                return
            }
            #expect(bench.at(once: credentials) == .known(user: right))
            // Also one that has not been here before.
            let other = right == wrong ? "dave" : "carol"
            #expect(
                await bench.verdict(Self.basic(other, "correct horse")) == .known(user: other))
            for number in 0..<1_000 { _ = bench.at(once: "Bearer \(number)") }
            #expect(bench.at(once: "Bearer \(CredentialFiles.token)") == .known(user: "build"))
        }
    }

    @Test("the same wrong password again costs neither a hash nor a try of whoever has the name")
    func stubborn() async throws {
        try await Self.run(configure: { options, _ in options.limit.user.burst = 2 }) { bench in
            let old = Self.basic("alice", "of last year")
            #expect(await bench.verdict(old) == .refused)
            for _ in 0..<1_000 { #expect(bench.at(once: old) == .refused) }
            #expect(
                await bench.verdict(Self.basic("alice", "correct horse")) == .known(user: "alice"))
            #expect(bench.notices.list == [.refused(client: Bench.client, user: "alice")])
            // Files read anew may have made it right.
            try bench.reload()
            #expect(bench.at(once: old) == .pending)
        }
    }

    @Test("equal credentials that come together are verified once")
    func together() async throws {
        try await Self.run(configure: { options, _ in
            options.limit.user.burst = 1
            options.queue = 1
        }) { bench in
            for (password, expected) in [
                ("correct horse", AuthenticationVerdict.known(user: "alice")), ("wrong", .refused),
            ] {
                let verdicts = await withTaskGroup(of: AuthenticationVerdict.self) { group in
                    for _ in 0..<50 {
                        group.addTask { await bench.verdict(Self.basic("alice", password)) }
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                // One that comes after the verdict on the others is throttled by it.
                #expect(verdicts.contains(expected))
                #expect(
                    verdicts.allSatisfy {
                        if case .throttled = $0 { return expected == .refused }
                        return $0 == expected
                    })
            }
        }
    }

    @Test("more than may wait are told to come again")
    func busy() async throws {
        try await Self.run(configure: { options, _ in options.queue = 0 }) { bench in
            for number in 0..<100 {
                #expect(bench.at(once: Self.basic("alice", "\(number)")) == .busy)
            }
            // That was no failure of theirs.
            #expect(bench.at(once: "Bearer \(CredentialFiles.token)") == .known(user: "build"))
        }
        try await Self.run(configure: { options, _ in options.waiting = 0 }) { bench in
            #expect(bench.at(once: Self.basic("alice", "correct horse")) == .busy)
        }
    }

    @Test("who sends many guesses keeps nobody else out")
    func crowd() async throws {
        try await Self.run(configure: { options, files in
            (options.threads, options.queue) = (1, 3)
            // A hash that takes long enough for all that comes behind it to wait.
            let slow = "eve:" + CredentialFiles.passwords.split(separator: "\n")[2].dropFirst(6)
            let passwords = slow.replacing("rounds=1000", with: "rounds=500000") + "\n"
            try files.write(CredentialFiles.passwords + passwords, to: files.passwordPath)
        }) { bench in
            let busy = Mutex(0)
            for number in 0..<3 {
                let verdict = bench.at(once: Self.basic("eve", "\(number)")) { verdict in
                    if verdict == .busy { busy.withLock { $0 += 1 } }
                }
                #expect(verdict == .pending)
            }
            #expect(bench.at(once: Self.basic("eve", "one more")) == .busy)
            let other = ClientAddress.unix(PeerCredentials(uid: 2, pid: 2))
            let verdict = await bench.verdict(Self.basic("alice", "correct horse"), from: other)
            #expect(verdict == .known(user: "alice"))
            #expect(busy.withLock { $0 } == 1)
        }
    }

    @Test("who waits when the threads end hears of it")
    func closing() async throws {
        try await Self.run { bench in
            await bench.authenticator.close()
            #expect(await bench.verdict(Self.basic("alice", "correct horse")) == .busy)
            #expect(bench.authenticator.state.withLock { $0.verifications.count + $0.waiting } == 0)
        }
    }

    @Test("files read anew take the place of what was verified by the old ones")
    func reload() async throws {
        try await Self.run { bench in
            let value = Self.basic("alice", "correct horse")
            #expect(await bench.verdict(value) == .known(user: "alice"))
            let generation = bench.authenticator.generation
            try bench.files.write("", to: bench.files.passwordPath)
            #expect(bench.at(once: value) == .known(user: "alice"))
            try bench.reload()
            #expect(bench.authenticator.generation != generation)
            #expect(await bench.verdict(value) == .refused)
            #expect(await bench.verdict(Self.basic("nobody", "x")) == .refused)
        }
    }

    @Test("files that are wrong change nothing, and say where")
    func badReload() async throws {
        try await Self.run { bench in
            let generation = bench.authenticator.generation
            try bench.files.write("alice:secret\n", to: bench.files.passwordPath)
            let error = #expect(throws: CredentialFileError.self) {
                try bench.reload()
            }
            #expect(error?.description.contains("passwords: line 1: ") == true)
            #expect(error?.description.contains("htpasswd -B") == true)
            #expect(error?.description.contains("secret") == false)
            #expect(bench.authenticator.generation == generation)
            let value = Self.basic("alice", "correct horse")
            #expect(await bench.verdict(value) == .known(user: "alice"))
        }
    }

    @Test("a name in the log is short and printable")
    func shown() {
        #expect(AuthenticationNotice.shown("a\u{1B}[2J \"b\"") == "a%1B[2J%20%22b%22")
        #expect(AuthenticationNotice.shown(String(repeating: "x", count: 9_999)).utf8.count == 64)
        #expect(AuthenticationNotice.shown("") == "-")
    }
}
