import Foundation
import Testing

@testable import LarderHTTP

@Suite("A thread for work that waits", .timeLimit(.minutes(1)))
struct NamedThreadTests {
    @Test(
        "has a name of at most 15 bytes, and the signals of others blocked",
        arguments: [("probe", "probe"), ("a-name-that-is-too-long", "a-name-that-is-")])
    func status(_ name: String, _ shown: String) async throws {
        let status = await withCheckedContinuation { continuation in
            do {
                try NamedThread.start(name) {
                    let status = try? String(
                        contentsOfFile: "/proc/thread-self/status", encoding: .utf8)
                    continuation.resume(returning: status ?? "")
                }
            } catch {
                continuation.resume(returning: "\(error)")
            }
        }
        let lines = status.split(separator: "\n")
        #expect(lines.first == "Name:\t\(shown)")
        let line = try #require(lines.first { $0.hasPrefix("SigBlk:\t") })
        let mask = try #require(UInt64(line.dropFirst(8), radix: 16))
        #expect(mask & 1 << UInt64(SIGTERM - 1) != 0)
        #expect(mask & 1 << UInt64(SIGBUS - 1) == 0, "a page of the map that cannot be read")
    }
}
