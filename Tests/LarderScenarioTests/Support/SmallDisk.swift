import Foundation
import Glibc
import Testing

@testable import LarderProcess

/// A file system of its own that a test can fill, or find read-only.
enum SmallDisk {
    /// Runs the body with a directory on it, and takes it away afterwards.
    ///
    /// Where that is not permitted, the test ends with a known issue.
    ///
    /// - Parameter options: of tmpfs(5).
    static func use(_ options: String, _ body: (String) async throws -> Void) async throws {
        let place = try Home()
        let path = place.path + "/disk"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard geteuid() == 0,
            try await Program(
                "/bin/mount", ["-t", "tmpfs", "-o", options, "larder-test", path],
                environment: [:]
            ).ended().status == 0
        else {
            return withKnownIssue("not permitted to mount a small disk", isIntermittent: true) {
                Issue.record("not permitted")
            }
        }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(path))
        } catch {
            result = .failure(error)
        }
        _ = try await Program("/bin/umount", ["-l", path], environment: [:]).ended()
        try result.get()
    }

    /// Writes a file of this name until nothing more fits.
    static func fill(_ path: String, name: String) async throws {
        let end = try await Program(
            "/bin/dd", ["if=/dev/zero", "of=\(path)/\(name)", "bs=4k"], environment: ["LC_ALL": "C"]
        ).ended()
        #expect(end.status == 1 && end.errText.contains("No space left"), "\(end.errText)")
    }
}
