import Dispatch
import Foundation
import Glibc
import LarderConfig
import LarderEngine
import Synchronization
import Testing

@testable import LarderControl
@testable import LarderDaemon

@Suite("A proxy that stops", .timeLimit(.minutes(10)))
struct StoppingTests {
    /// One moment that threads wait for, each at most for as long as a test may hang.
    private final class Moment: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)

        func comes() { self.semaphore.signal() }
        func wait() -> Bool { self.semaphore.wait(timeout: .now() + 20) == .success }
        func waited() async -> Bool {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: self.wait()) }
            }
        }
    }

    private func start(_ directory: String) async throws -> RunningProxy {
        let loaded = try Configuration.parse(
            """
            listeners: [{ address: "127.0.0.1:0" }]
            """, file: "f", environment: ProcessEnvironment(["HOME": directory]))
        let level = DaemonLog.Level(.critical)
        return try await RunningProxy.start(loaded, log: quietLog(), level: level) {
            () throws(ConfigurationError) in loaded
        }
    }

    @Test("does not wait for a command that waits for a cache")
    func command() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-stop-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (isCopying, isAsked, isClosing) = (Moment(), Moment(), Moment())
        // The way to origins is closed before the caches: the origin sees that.
        let origin = try TextOrigin({ _ in
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n"
        }) { isClosing.comes() }
        defer { origin.stop() }
        let proxy = try await self.start(directory)
        let port = try #require(await proxy.url.split(separator: ":").last.flatMap { UInt16($0) })
        let answer = await TextOrigin.ask(
            port,
            "GET http://127.0.0.1:\(origin.port)/ HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
                + "Connection: close\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 200"))

        // The cache is being compacted until the way to origins is closed, so that the command waits.
        let member = await proxy.members[0]
        let isFirst = Atomic(true)
        let wasClosing = Atomic(false)
        let copying = Task {
            _ = try? await member.open.compact { _, _ in
                guard isFirst.exchange(false, ordering: .relaxed) else { return }
                isCopying.comes()
                wasClosing.store(isClosing.wait(), ordering: .relaxed)
            }
        }
        #expect(await isCopying.waited())
        let socket = try #require(await proxy.loaded.controlSockets.first)
        let connection = try ControlSocket.connect(to: socket)
        defer { close(connection) }
        // Two requests at once: when the first is answered, the second is next.
        let lines =
            try ControlCodec.line(ControlRequest.status)
            + ControlCodec.line(ControlRequest.compact(session: "default"))
        #expect(unsafe write(connection, lines, lines.count) == lines.count)
        let mark = String(decoding: try ControlCodec.line(ControlReply.end), as: UTF8.self)
        Thread.detachNewThread {
            var text = ""
            var piece = [UInt8](repeating: 0, count: 4096)
            while !text.contains(mark) {
                let count = unsafe read(connection, &piece, piece.count)
                guard count > 0 else { return }
                text += String(decoding: piece[..<count], as: UTF8.self)
            }
            isAsked.comes()
        }
        #expect(await isAsked.waited())
        await proxy.stop(within: .zero)
        await copying.value
        let isInTime = wasClosing.load(ordering: .relaxed)
        #expect(isInTime)
    }
}
