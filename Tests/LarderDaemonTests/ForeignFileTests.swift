import Foundation
import Glibc
import LarderConfig
import LarderControl
import Testing

@testable import LarderDaemon

@Suite("Files of a service that is stopped")
struct ForeignFileTests {
    @Test(
        "are refused to the superuser alone, where they are somebody else's",
        arguments: [(0, 0, false), (0, 65_000, true), (1000, 1000, false), (1000, 65_000, false)]
            as [(uid_t, uid_t, Bool)])
    func refusal(_ user: uid_t, _ owner: uid_t, _ isRefused: Bool) {
        let refusal = ForeignFile.refusal(to: user, in: "/var/lib/larder", ownedBy: owner)
        #expect((refusal != nil) == isRefused)
        guard let refusal else { return }
        #expect(refusal.code == .notPermitted)
        #expect(refusal.description.contains("user \(owner)"))
        #expect(refusal.description.contains("sudo -u '#\(owner)'"))
    }

    @Test("keep the superuser from leaving something behind", .enabled(if: geteuid() == 0))
    func nothingLeft() async throws {
        let place = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-foreign-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: place) }
        #expect(unsafe chown(place, 65_000, 65_000) == 0)
        let loaded = try Configuration.parse(
            "", file: "f",
            environment: ProcessEnvironment(["HOME": "/h", "XDG_STATE_HOME": place]))
        let session = try #require(loaded.settings.sessions.first)
        let record = CredentialRecord(
            name: .named("x"), kind: "bearer", persistence: "permanent")
        let error = await #expect(throws: DaemonError.self) {
            try await StateAnswers(loaded, session, environment: [:]) { _ in }.answer(
                .credentials(
                    session: session.name.text, principal: nil,
                    .put(record, secret: ControlSecret([1])))
            ) { _ in }
        }
        #expect(error?.code == .notPermitted)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place).isEmpty)
        // What is his already he may go on with.
        try ForeignFile.check("/", holding: "nothing")
    }
}
