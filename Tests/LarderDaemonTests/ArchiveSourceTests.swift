import Foundation
import LarderControl
import Testing

@testable import LarderDaemon

@Suite("An archive that cannot be opened")
struct ArchiveSourceTests {
    @Test(
        "is told with whose view it is that lacks it",
        arguments: [
            (
                "/tmp", true,
                "the proxy opens it itself, as user \(getuid()), and a service has a /tmp"
            ),
            ("/nowhere", true, "as user \(getuid()): give that user a copy elsewhere"),
            ("/nowhere", true, "or run this as that user (sudo -u '#\(getuid())')"),
            ("/tmp", false, "No such file or directory"),
        ])
    func told(_ directory: String, _ isAsked: Bool, _ told: String) {
        let path = "\(directory)/\(UUID().uuidString).warc"
        let refusal = #expect(throws: ControlRefusal.self) {
            try ArchiveSource(path: path, isAsked: isAsked)
        }
        #expect(refusal?.failure.code == .noInput)
        let text = refusal?.failure.message ?? ""
        #expect(text.hasPrefix("cannot open \(path): No such file or directory"))
        #expect(text.contains(told))
        #expect(isAsked || text.hasSuffix(told))
    }
}
