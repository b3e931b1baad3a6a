import Foundation
import Glibc
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
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

    @Test("has who came behind somebody that wants a file wait for it, and nobody who came before")
    func order() async {
        let tier = self.tier(NSTemporaryDirectory() + "larder-tier-\(UUID().uuidString)")
        // While it was being looked whether there is one.
        tier.state.withLock { $0.phase = .changing }
        let found = Mutex<[Bool]>([])
        await withCheckedContinuation { continuation in
            tier.withDisk { disk in found.withLock { $0.append(disk != nil) } }
            tier.withDisk(creating: true) { disk in found.withLock { $0.append(disk != nil) } }
            tier.withDisk { disk in
                found.withLock { $0.append(disk != nil) }
                continuation.resume()
            }
            tier.settle(.vacant)
        }
        #expect(found.withLock { $0 } == [false, true, true])
        await withCheckedContinuation { done in tier.close { done.resume() } }
        try? FileManager.default.removeItem(atPath: tier.directory)
    }

    @Test("takes no more than so much while its file is being opened, and goes on after that")
    func waitingBodies() throws {
        let tier = self.tier(NSTemporaryDirectory() + "larder-tier-\(UUID().uuidString)")
        tier.state.withLock { $0.phase = .changing }
        let ended = Mutex(0)
        func begin() -> (any ObjectSink)? {
            tier.store(
                self.head, for: self.key, length: nil, replacing: [],
                observer: End { ended.withLock { $0 += 1 } })
        }
        let piece = ByteBuffer(repeating: 1, count: 1 << 20)
        var sinks: [any ObjectSink] = []
        while sinks.count < 100, let sink = begin() {
            sink.write(piece)
            sinks.append(sink)
        }
        #expect(sinks.count == 64)
        // There is to be no file after all.
        tier.settle(.none)
        let count = ended.withLock { $0 }
        #expect(count == 64)
        #expect(tier.waitingBytes.hasRoom)
        tier.state.withLock { $0.phase = .changing }
        let another = begin()
        #expect(another != nil)
        tier.settle(.none)
    }

    // MARK: Removals without a file

    private final class End: ObjectSinkObserver {
        private let tell: @Sendable () -> Void

        init(_ tell: @escaping @Sendable () -> Void) {
            self.tell = tell
        }

        func sink(written offset: UInt64) {}
        func sinkEnded(_ outcome: SinkOutcome) { self.tell() }
    }

    enum Removal: CaseIterable {
        case never
        /// By the call for which it is tried to open the file.
        case whileOpening
        case afterwards
        /// Of all that was stored since a moment, which asks for names first.
        case byTime
    }

    private func tier(_ path: String, after predecessor: DiskTier? = nil) -> DiskTier {
        DiskTier(
            directory: path, capacity: .mebibytes(8), after: predecessor,
            clock: { Timestamp(seconds: 1_700_000_000) }, report: { _ in })
    }

    private var head: StoredHead {
        let now = Timestamp(seconds: 1_700_000_000)
        return StoredHead(
            status: .ok, fields: [:], varyingFields: [:], requestTime: now, responseTime: now)
    }

    private func store(in tier: DiskTier) async {
        await withCheckedContinuation { continuation in
            let sink = tier.store(
                self.head, for: self.key, length: 0, replacing: [],
                observer: End { continuation.resume() })
            sink?.commit(trailers: Fields())
        }
    }

    private func isOpen(_ tier: DiskTier) async -> Bool {
        await withCheckedContinuation { continuation in
            tier.withDisk(creating: true) { continuation.resume(returning: $0 != nil) }
        }
    }

    private func count(in tier: DiskTier) async -> Int {
        await withCheckedContinuation { continuation in
            tier.ask(for: self.key) { continuation.resume(returning: $0.objects.count) }
        }
    }

    private func close(_ tier: DiskTier) async {
        await withCheckedContinuation { continuation in
            tier.close { continuation.resume() }
        }
    }

    private func remove(_ removal: Removal, from tier: DiskTier) async {
        switch removal {
        case .never: break
        case .whileOpening, .afterwards:
            let count = await withCheckedContinuation { continuation in
                tier.remove(self.key, ids: nil) { continuation.resume(returning: $0) }
            }
            #expect(count == 0)
        case .byTime:
            await withCheckedContinuation { continuation in
                tier.removeAll(storedSince: Timestamp(seconds: 0)) { continuation.resume() }
            }
        }
    }

    @Test(
        "serves nothing that was removed while its file could not be opened, nor does the next process",
        arguments: Removal.allCases, [true, false])
    func removedUnopened(_ removal: Removal, isNextProcess: Bool) async throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-tier-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let former = self.tier(path)
        await self.store(in: former)
        await self.close(former)
        // Others may write to the directory now, so that it is not used.
        try #require(unsafe chmod(path + "/responses", 0o777) == 0)
        var tier = self.tier(path)
        if removal != .whileOpening { #expect(await !self.isOpen(tier)) }
        await self.remove(removal, from: tier)
        #expect(await !self.isOpen(tier))
        try #require(unsafe chmod(path + "/responses", 0o700) == 0)
        if isNextProcess {
            await self.close(tier)
            tier = self.tier(path)
        } else {
            tier.state.withLock { $0.phase = .failed(until: .now) }
        }
        #expect(await self.isOpen(tier))
        #expect(await self.count(in: tier) == (removal == .never ? 1 : 0))
        await self.close(tier)
    }

    @Test("names nothing by the ids of a file that was taken away", arguments: [false, true])
    func generations(owes: Bool) async throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-tier-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let tier = self.tier(path)
        await self.store(in: tier)
        let generation = tier.generation
        tier.state.withLock { $0.owesRemoval = owes }
        // Opens the file again, or another one in its place.
        await withCheckedContinuation { continuation in
            tier.resize(to: .mebibytes(16)) { continuation.resume() }
        }
        #expect(await self.count(in: tier) == (owes ? 0 : 1))
        #expect((tier.generation == generation) == !owes)
        await self.close(tier)
    }

    @Test("owes nothing for want of a place: what lies in those of others is theirs")
    func crowded() async throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-tier-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        // As so many processes have.
        var others: [DiskTier] = []
        for _ in 0..<DiskPlaces.limit {
            let other = self.tier(path)
            await self.store(in: other)
            others.append(other)
        }
        let tier = self.tier(path)
        #expect(await !self.isOpen(tier))
        await self.remove(.afterwards, from: tier)
        for other in others { await self.close(other) }
        tier.state.withLock { $0.phase = .crowded(until: .now) }
        #expect(await self.isOpen(tier))
        #expect(await self.count(in: tier) == 1)
        await self.close(tier)
    }

    @Test("leaves what it owes to who has the directory after it", arguments: [false, true])
    func debtLeft(isAtOnce: Bool) async throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-tier-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let former = self.tier(path)
        await self.store(in: former)
        await self.close(former)
        try #require(unsafe chmod(path + "/responses", 0o777) == 0)
        let owing = self.tier(path)
        await self.remove(.whileOpening, from: owing)
        // As on a disk that refuses the note beside the file.
        try Data("4711\nclosed\n".utf8).write(
            to: URL(fileURLWithPath: path + "/responses/cache.lock"))
        try #require(unsafe chmod(path + "/responses", 0o700) == 0)
        await self.close(owing)
        #expect(owing.isOver && !owing.isSettled)
        var last = owing
        if !isAtOnce {
            // One that never opens its file.
            last = self.tier(path, after: owing)
            last.state.withLock { $0.phase = .none }
            await self.close(last)
            #expect(owing.isSettled && !last.isSettled)
        }
        let next = self.tier(path, after: last)
        #expect(await self.isOpen(next))
        #expect(owing.isSettled && last.isSettled)
        #expect(await self.count(in: next) == 0)
        await self.close(next)
        #expect(next.isSettled)
    }

    @Test("serves nothing that was removed while it could not be told whether there is a file")
    func removedUnseen() async throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-tier-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let former = self.tier(path)
        await self.store(in: former)
        await self.close(former)
        // A link to itself has others look for ever.
        let place = path + "/responses"
        try FileManager.default.moveItem(atPath: place, toPath: place + ".away")
        try FileManager.default.createSymbolicLink(
            atPath: place, withDestinationPath: "responses")
        let tier = self.tier(path)
        await self.remove(.afterwards, from: tier)
        #expect(await !self.isCertain(tier))
        try FileManager.default.removeItem(atPath: place)
        try FileManager.default.moveItem(atPath: place + ".away", toPath: place)
        tier.state.withLock { $0.phase = .failed(until: .now) }
        #expect(await self.isOpen(tier))
        #expect(await self.count(in: tier) == 0)
        await self.close(tier)
    }
}
