import Foundation
import LarderHTTP
import LarderProxy
import LarderSession
import NIOPosix
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@testable import LarderDaemon

@Suite("A listener whose clients are verified by files")
struct GuardedListenerTests {
    /// Answers all with nothing, and counts.
    final class EmptySession: ExchangeSession {
        private final class Done: Exchange { func cancel() {} }

        let count = Atomic(0)

        func perform(
            _ request: Request, body: (any BodySource)?, options: ExchangeOptions,
            client: any ExchangeClient
        ) -> any Exchange {
            self.count.add(1, ordering: .relaxed)
            client.exchange(
                answered: Answer(
                    head: ResponseHead(status: .ok), bodyLength: .known(0), body: .none,
                    cacheStatus: CacheStatus(hit: true)))
            return Done()
        }
    }

    struct Failed: Error {}

    /// Sends all, ends its side, and returns all that comes back.
    static func talk(to path: String, _ text: String) throws -> String {
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard socket >= 0 else { throw Failed() }
        defer { close(socket) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) {
            unsafe $0.copyBytes(from: path.utf8)
        }
        let connected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe connect(socket, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else { throw Failed() }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let sent = unsafe rest.withUnsafeBytes {
                unsafe write(socket, $0.baseAddress, $0.count)
            }
            guard sent > 0 else { throw Failed() }
            rest = rest.dropFirst(sent)
        }
        shutdown(socket, Int32(SHUT_WR))
        var answer: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { buffer in
                unsafe read(socket, buffer.baseAddress, buffer.count)
            }
            guard count > 0 else { break }
            answer += piece.prefix(count)
        }
        return String(decoding: answer, as: UTF8.self)
    }

    static func get(_ user: String, _ password: String) -> String {
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: "
            + FileAuthenticatorTests.basic(user, password) + "\r\n\r\n"
    }

    static func run(
        _ body: (String, EmptySession, Notices) throws -> Void
    ) async throws {
        let files = try CredentialFiles()
        let notices = Notices()
        let authenticator = try FileAuthenticator(
            FileAuthenticator.Options(passwordFile: files.passwordPath)
        ) { notices.add($0) }
        let session = EmptySession()
        let server = ProxyServer(
            group: .singleton, configuration: ProxyConfiguration(),
            clock: { Timestamp(seconds: 0) })
        let path = files.directory.appending(path: "socket").path
        _ = try await server.listen(
            on: .unix(path: path), directory: OneSessionDirectory(session),
            options: ListenerOptions(authentication: authenticator, authenticatesUnixPeers: true))
        let outcome = Result { try body(path, session, notices) }
        await server.drain(within: .zero)
        await authenticator.close()
        try outcome.get()
    }

    @Test("answers requests sent ahead in their order, each by its own credentials")
    func order() async throws {
        try await Self.run { path, session, _ in
            let text = try Self.talk(
                to: path,
                Self.get("alice", "correct horse") + Self.get("alice", "wrong")
                    + Self.get("alice", "correct horse") + Self.get("nobody", "correct horse")
                    + Self.get("bob", "correct horse"))
            let statuses = text.split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
            #expect(statuses == ["200", "407", "200", "407", "200"])
            #expect(session.count.load(ordering: .relaxed) == 3)
        }
    }

    @Test("lets nobody in by ten thousand guesses, and says so in two lines")
    func flood() async throws {
        try await Self.run { path, session, notices in
            var answers: [Substring: Int] = [:]
            for connection in 0..<100 {
                let guesses = (0..<100).map { Self.get("alice", "\(connection * 100 + $0)") }
                let text = try Self.talk(to: path, guesses.joined())
                for answer in text.split(separator: "HTTP/1.1 ") {
                    answers[answer.prefix(3), default: 0] += 1
                }
            }
            #expect(session.count.load(ordering: .relaxed) == 0)
            #expect(answers["407", default: 0] + answers["429", default: 0] == 10_000)
            // Some come back meanwhile: one in five seconds.
            #expect(answers["407", default: 0] < 100)
            #expect(notices.list.count == 2)
            #expect(notices.list.allSatisfy { !"\($0)".contains("Basic") })
        }
    }
}
