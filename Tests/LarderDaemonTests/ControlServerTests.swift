import Foundation
import NIOPosix
import Testing

@testable import LarderControl
@testable import LarderDaemon

/// Lists ten thousand objects, refuses a purge, and fails a reload.
private struct ScriptedResponder: ControlResponder {
    struct Trouble: Error {}

    /// A compaction ends when this says something.
    var isHeard: AsyncStream<Void>?

    func answer(
        _ request: ControlRequest, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        switch request {
        case .listMemory:
            for n in 0..<10_000 as Range<UInt64> { try await reply(.progress(n)) }
        case .purge:
            throw ControlRefusal(failure: ControlFailure(.noSuchSession, "no such session"))
        case .reload: throw Trouble()
        case .compact: await self.isHeard?.first { true }
        case .status, .statistics, .showMemory, .readMemory, .listFetches, .listTransfers,
            .cancelTransfers, .listMissing, .mend, .importArchive, .explain, .cookies, .credentials:
            return
        }
    }
}

@Suite("The control socket's server", .timeLimit(.minutes(10)))
struct ControlServerTests {
    /// Runs `body` on a thread of its own while a server runs at the path it is given.
    private func withServer(_ body: @escaping @Sendable (String) throws -> Void) async throws {
        let path = "/tmp/larder-\(UUID().uuidString.prefix(8))/control.sock"
        defer { try? FileManager.default.removeItem(atPath: String(path.dropLast(13))) }
        let server = try ControlServer(
            paths: ["/proc/none/control.sock", path], group: .singleton,
            responder: ScriptedResponder())
        #expect(server.path == path)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try? await server.run() }
            try await NIOThreadPool.singleton.runIfActive { try body(path) }
            group.cancelAll()
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("answers one request after the other, however long the listing")
    func listing() async throws {
        try await self.withServer { path in
            var client = try ControlClient(paths: [path])
            for _ in 0..<2 {
                var count: UInt64 = 0
                try client.send(.listMemory(session: "a")) { reply in
                    #expect(reply == .progress(count))
                    count += 1
                    return true
                }
                #expect(count == 10_000)
            }
        }
    }

    @Test("tells why it would not, and stays")
    func refusals() async throws {
        try await self.withServer { path in
            var client = try ControlClient(paths: [path])
            let refusal = ControlRefusal(
                failure: ControlFailure(.noSuchSession, "no such session"))
            #expect(throws: refusal) { try client.send(.purge(session: "x", .all)) { _ in true } }
            #expect(throws: ControlRefusal(failure: ControlFailure(.failed, "Trouble()"))) {
                try client.send(.reload) { _ in true }
            }
            try client.send(.status) { _ in true }
        }
    }

    @Test("says that it is still at work, so that nobody gives up")
    func pulse() async throws {
        let path = "/tmp/larder-\(UUID().uuidString.prefix(8))/control.sock"
        defer { try? FileManager.default.removeItem(atPath: String(path.dropLast(13))) }
        let (heard, hear) = AsyncStream.makeStream(of: Void.self)
        let server = try ControlServer(
            paths: [path], group: .singleton, responder: ScriptedResponder(isHeard: heard),
            pulse: .milliseconds(1))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try? await server.run() }
            try await NIOThreadPool.singleton.runIfActive {
                var client = try ControlClient(paths: [path], patience: .seconds(60))
                var seen: [ControlReply] = []
                try client.send(.compact(session: "a")) { reply in
                    seen.append(reply)
                    hear.yield()
                    return true
                }
                #expect(!seen.isEmpty)
                #expect(seen.allSatisfy { $0 == .progress(0) })
            }
            group.cancelAll()
        }
    }

    @Test("has places for so many, and an idle connection gives its own up, a silent one sooner")
    func places() async throws {
        // On a machine that is busy the third may count as idle itself: then all have more time.
        let long = Duration.seconds(600)
        for patience in [Duration.seconds(1), .seconds(5)] {
            do {
                try await self.thirdGetsPlace(idleness: patience, silence: long)
                return try await self.thirdGetsPlace(idleness: long, silence: patience)
            } catch {}
        }
        try await self.thirdGetsPlace(idleness: .seconds(25), silence: long)
        try await self.thirdGetsPlace(idleness: long, silence: .seconds(25))
    }

    private func thirdGetsPlace(idleness: Duration, silence: Duration) async throws {
        let path = "/tmp/larder-\(UUID().uuidString.prefix(8))/control.sock"
        defer { try? FileManager.default.removeItem(atPath: String(path.dropLast(13))) }
        let server = try ControlServer(
            paths: [path], group: .singleton, responder: ScriptedResponder(),
            pulse: .milliseconds(20), connections: 2, idleness: idleness, silence: silence)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try? await server.run() }
            defer { group.cancelAll() }
            try await NIOThreadPool.singleton.runIfActive {
                let idle = try (0..<2).map { _ in try ControlSocket.connect(to: path) }
                defer { for descriptor in idle { close(descriptor) } }
                var client = try ControlClient(paths: [path], patience: .seconds(300))
                try client.send(.status) { _ in true }
                // A place was free no sooner than one of them had ended.
                var byte: UInt8 = 0
                let ended = idle.filter { unsafe recv($0, &byte, 1, CInt(MSG_DONTWAIT)) == 0 }
                #expect(!ended.isEmpty)
            }
        }
    }

    @Test("outlives a client that leaves in the middle")
    func leaver() async throws {
        try await self.withServer { path in
            do {
                var client = try ControlClient(paths: [path])
                try client.send(.listMemory(session: "a")) { _ in false }
            }
            var client = try ControlClient(paths: [path])
            var replies = 0
            try client.send(.listMemory(session: "a")) { _ in
                replies += 1
                return true
            }
            #expect(replies == 10_000)
        }
    }

    @Test("is one at a time")
    func second() async throws {
        try await self.withServer { path in
            #expect {
                _ = try ControlServer(
                    paths: [path], group: .singleton, responder: ScriptedResponder())
            } throws: { ($0 as? ControlError)?.code == .inUse }
        }
    }
}
