import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import Testing

@testable import LarderEngine

@Suite("The disk tier of a cache that a program may change", .timeLimit(.minutes(1)))
struct DiskTierTests {
    private let key = CacheKey(
        method: .get, uri: TargetURI(scheme: .http, host: "a.example", pathAndQuery: "/"))

    private func isCertain(_ tier: DiskTier) async -> Bool {
        await withCheckedContinuation { continuation in
            tier.ask(for: self.key) { answer in
                #expect(answer.objects.isEmpty)
                continuation.resume(returning: answer.isCertain)
            }
        }
    }

    @Test("does not know what is stored where its file could not be opened")
    func unopened() async throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-tier-\(UUID().uuidString)").path
        try Data([1]).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        // Below what is no directory.
        let tier = DiskTier(
            directory: path + "/cache", capacity: .mebibytes(8),
            clock: { Timestamp(seconds: 1_700_000_000) }, report: { _ in })
        #expect(await self.isCertain(tier), "nothing was ever stored")
        let isOpen = await withCheckedContinuation { continuation in
            tier.withDisk(creating: true) { continuation.resume(returning: $0 != nil) }
        }
        #expect(!isOpen)
        #expect(await !self.isCertain(tier))
    }
}
