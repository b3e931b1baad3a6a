import Dispatch
import LarderHTTP
import LarderLMDB
import Testing

@testable import LarderDisk

@Suite("The end of a disk store", .timeLimit(.minutes(1)))
struct ClosingTests {
    /// Ends a stream when it is released.
    private final class Witness: Sendable {
        let end: AsyncStream<Void>.Continuation

        init(_ end: AsyncStream<Void>.Continuation) { self.end = end }

        deinit { self.end.finish() }
    }

    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func useOnce(_ witness: Witness) async throws {
        let store = try DiskStore.open(
            DiskConfiguration(directory: self.directory.path, capacity: .mebibytes(16)),
            clock: { Timestamp(seconds: 0) }, report: { _ in withExtendedLifetime(witness) {} })
        await store.put(cacheKey("a"), [1])
        await store.closed()
    }

    @Test("leaves nothing of it in memory")
    func released() async throws {
        let (ends, end) = AsyncStream<Void>.makeStream()
        try await self.useOnce(Witness(end))
        for await _ in ends {}
    }

    /// Closes a store while its file is read; whether the end was told meanwhile.
    private func closeWhileRead(_ store: DiskStore) throws -> Bool {
        let told = DispatchSemaphore(value: 0)
        return try store.core.environment.read { (_) throws(LMDBError) in
            store.close { told.signal() }
            return told.wait(timeout: .now() + .milliseconds(300)) == .success
        }
    }

    @Test("is told when nobody reads from its file, which can be opened again then")
    func readMeanwhile() async throws {
        let store = try self.world.open(self.directory)
        #expect(try !self.closeWhileRead(store))
        await store.closed()
        try await self.world.open(self.directory).closed()
    }
}
