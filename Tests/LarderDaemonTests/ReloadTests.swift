import Foundation
import LarderConfig
import Testing

@testable import LarderDaemon

@Suite("A configuration that has become wrong", .timeLimit(.minutes(10)))
struct ReloadTests {
    @Test("keeps nobody from rotating the log")
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
            """, file: "f", environment: Environment(["HOME": directory]))
        let level = DaemonLog.Level(.critical)
        let wrong = ConfigurationError(problems: [ConfigurationProblem(file: "f", message: "x")])
        let proxy = try await RunningProxy.start(
            loaded, log: DaemonLog.make(level), level: level
        ) { () throws(ConfigurationError) in throw wrong }
        try files.moveItem(atPath: log, toPath: "\(log).1")
        await #expect(throws: wrong) { try await proxy.reload() }
        await proxy.stop(within: .seconds(5))
        #expect(files.fileExists(atPath: log))
    }
}
