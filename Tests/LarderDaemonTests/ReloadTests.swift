import Foundation
import LarderConfig
import LarderControl
import NIOPosix
import Synchronization
import Testing

@testable import LarderDaemon

@Suite("A configuration that is read again", .timeLimit(.minutes(10)))
struct ReloadTests {
    @Test("keeps nobody, where it has become wrong, from rotating the log")
    func log() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-reload-\(UUID().uuidString)").path
        let files = FileManager.default
        try files.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? files.removeItem(atPath: directory) }
        let log = "\(directory)/access.log"
        let loaded = try Configuration.parse(
            """
            listeners: [{ address: "127.0.0.1:0" }]
            log: { access: { to: "\(log)" } }
            """, file: "f", environment: ProcessEnvironment(["HOME": directory]))
        let level = DaemonLog.Level(.critical)
        let wrong = ConfigurationError(problems: [ConfigurationProblem(file: "f", message: "x")])
        let proxy = try await RunningProxy.start(
            loaded, log: quietLog(), level: level
        ) { () throws(ConfigurationError) in throw wrong }
        try files.moveItem(atPath: log, toPath: "\(log).1")
        await #expect(throws: wrong) { try await proxy.reload() }
        await proxy.stop(within: .seconds(5))
        #expect(files.fileExists(atPath: log))
    }

    /// A proxy that reads these texts, one after the other, as files of these names.
    private func withProxy(
        _ texts: [(file: String?, text: String)], read: @escaping @Sendable () -> Void = {},
        _ body: (RunningProxy) async throws -> Void
    ) async throws {
        let environment = ProcessEnvironment(["HOME": "/nowhere"])
        let all = try texts.map { file, text in
            guard let file else {
                return LoadedSettings(
                    settings: Settings(), file: nil, places: .of(environment, configuration: nil))
            }
            return try Configuration.parse(
                "listeners: [{ address: \"127.0.0.1:0\" }]\nsessions: { default: { cache: "
                    + "{ disk: 0 } } }\ncontrol: { socket: \"/tmp/larder-\(UUID().uuidString.prefix(8))"
                    + "/c\" }\n\(text)", file: file, environment: environment)
        }
        let rest = Mutex(all.dropFirst())
        let level = DaemonLog.Level(.critical)
        let proxy = try await RunningProxy.start(
            all[0], log: quietLog(), level: level
        ) { () throws(ConfigurationError) in
            read()
            return rest.withLock { $0.popFirst() } ?? all[0]
        }
        do {
            try await body(proxy)
        } catch {
            await proxy.stop(within: .zero)
            throw error
        }
        await proxy.stop(within: .seconds(5))
    }

    private static let closed = "access: [{ action: deny }]"
    private static let open = "access: [{ action: allow }]"

    @Test("is the same file: without it nothing is opened that its rules close")
    func gone() async throws {
        let texts: [(file: String?, text: String)] = [
            ("/a", Self.closed), (nil, ""), ("/b", Self.open), ("/a", Self.open),
        ]
        try await self.withProxy(texts) { proxy in
            for other in ["the defaults", "the file /b"] {
                let error = await #expect(throws: ConfigurationError.self) {
                    try await proxy.reload()
                }
                #expect(error?.problems.first?.message.contains(other) == true)
                #expect(await proxy.loaded.settings.access == [AccessRule(action: .deny)])
            }
            try await proxy.reload()
            #expect(await proxy.loaded.settings.access == [AccessRule(action: .allow)])
        }
    }

    @Test("makes a control socket anew that somebody has deleted, and leaves one that is there")
    func deletedSocket() async throws {
        try await self.withProxy([("/a", Self.closed)]) { proxy in
            let socket = try #require(
                (await proxy.loaded).controlSockets.first { ControlSocket.file($0) != nil })
            let first = ControlSocket.file(socket)
            try await proxy.reload()
            #expect(ControlSocket.file(socket) == first)
            try FileManager.default.removeItem(atPath: socket)
            try await proxy.reload()
            #expect(ControlSocket.file(socket) != nil)
            let outcome = try await NIOThreadPool.singleton.runIfActive {
                var client = try ControlClient(paths: [socket], patience: .seconds(60))
                var outcome: ReloadOutcome?
                try client.send(.reload) { reply in
                    if case .reloaded(let told) = reply { outcome = told }
                    return true
                }
                return outcome
            }
            #expect(outcome != nil)
        }
    }

    @Test("changes nothing where its access log cannot be opened, and says which setting that is")
    func unopenedLog() async throws {
        let texts: [(file: String?, text: String)] = [
            ("/a", Self.closed),
            ("/a", "log: { access: { to: /nowhere/a.log } }\n\(Self.open)"), ("/a", Self.open),
        ]
        try await self.withProxy(texts) { proxy in
            let error = await #expect(throws: ConfigurationError.self) { try await proxy.reload() }
            #expect(
                error?.description.hasPrefix(
                    "/a:4:1: log.access.to: cannot open the log /nowhere/a.log: ") == true)
            #expect(await proxy.loaded.settings.access == [AccessRule(action: .deny)])
            #expect(await proxy.loaded.settings.log.accessDestination == .none)
            try await proxy.reload()
            #expect(await proxy.loaded.settings.access == [AccessRule(action: .allow)])
        }
    }

    @Test("changes nothing where the directory of the log that it has is gone")
    func movedLog() async throws {
        let directory = NSTemporaryDirectory() + "larder-log-\(UUID().uuidString)"
        let files = FileManager.default
        try files.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer {
            try? files.removeItem(atPath: directory)
            try? files.removeItem(atPath: directory + ".old")
        }
        let log = "log: { access: { to: \(directory)/a.log } }\n"
        let texts: [(file: String?, text: String)] = [
            ("/a", log + Self.closed), ("/a", log + Self.open), ("/a", log + Self.open),
        ]
        try await self.withProxy(texts) { proxy in
            try files.moveItem(atPath: directory, toPath: directory + ".old")
            let error = await #expect(throws: ConfigurationError.self) { try await proxy.reload() }
            #expect(error?.description.contains("log.access.to: cannot open the log") == true)
            #expect(await proxy.loaded.settings.access == [AccessRule(action: .deny)])
            try files.moveItem(atPath: directory + ".old", toPath: directory)
            try await proxy.reload()
            #expect(await proxy.loaded.settings.access == [AccessRule(action: .allow)])
        }
    }

    @Test("comes into force after the one that was read before it")
    func order() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-reload-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let log = "log: { access: { to: \"\(directory)/1\" } }\ntimeouts: { drain: "
        let other = "log: { access: { to: \"\(directory)/2\" } }\ntimeouts: { drain: "
        let (reads, read) = AsyncStream.makeStream(of: Void.self)
        let texts: [(file: String?, text: String)] = [
            ("/a", log + "1s }"), ("/a", other + "2s }"), ("/a", log + "3s }"),
        ]
        try await self.withProxy(texts, read: { read.yield() }) { proxy in
            let first = Task { try await proxy.reload() }
            _ = await reads.first { true }
            // It is changing the log now.
            try await proxy.reload()
            _ = try await first.value
            #expect(await proxy.drainTime == .seconds(3))
        }
    }
}
