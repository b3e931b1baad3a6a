import Foundation
import LarderConfig
import Testing

@testable import LarderDaemon

@Suite("A Unix socket that clients connect to")
struct ListenerModeTests {
    @Test("has the permissions of its listener's mode", arguments: ["0600", "0660", "0666"])
    func mode(_ mode: String) async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-mode-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let loaded = try Configuration.parse(
            """
            listeners: [{ address: "unix:\(directory)/s", session: ephemeral, mode: "\(mode)" }]
            """, file: "f", environment: ProcessEnvironment(["HOME": directory]))
        var options = RunningProxy.Options()
        options.hasControl = false
        let level = DaemonLog.Level(.critical)
        let proxy = try await RunningProxy.start(
            loaded, options: options, log: quietLog(), level: level
        ) { () throws(ConfigurationError) in loaded }
        let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/s")
        #expect(attributes[.posixPermissions] as? Int == Int(mode, radix: 8))
        await proxy.stop(within: .zero)
    }
}
