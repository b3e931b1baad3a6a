import Foundation
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("Answers that stand on what the disk alone has")
struct StandingOnDiskTests {
    /// A session that keeps nothing in memory, and has a response for `/` in its file.
    private func play(
        _ extra: Fields = Fields(), _ body: (Bench, DiskStore) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-standing-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let clock = StandingClock()
        let disk = try DiskStore.open(
            DiskConfiguration(directory: directory.path, capacity: .mebibytes(64)),
            clock: { clock.now() }, report: { Issue.record("the disk reports \($0)") })
        let store = TieredStore(
            memory: MemoryStore(MemoryConfiguration(capacity: .zero)), disk: disk)
        let bench = Bench(store: store)
        await self.fill(bench, disk, extra, with: "hello")
        do {
            try await body(bench, disk)
        } catch {
            Issue.record(error)
        }
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
    }

    private func fill(
        _ bench: Bench, _ disk: DiskStore, _ extra: Fields = Fields(), with text: String
    ) async {
        let number = bench.upstream.fetches.count
        bench.perform("/", ["Cache-Control": "no-cache"])
        var fields = bench.fresh
        fields.append(contentsOf: extra)
        bench.upstream.fetches[number].answer(200, fields, text)
        await self.flush(disk)
    }

    private func flush(_ disk: DiskStore) async {
        await withCheckedContinuation { continuation in disk.flush { continuation.resume() } }
    }

    /// Asks for `/`, and returns once that is answered: where the disk is busy, a page is not to be had
    /// at once, and a thread that reads has to answer.
    private func ask(_ bench: Bench, _ fields: Fields = Fields()) async -> RecordingClient {
        let client = RecordingClient()
        var options = ExchangeOptions()
        options.keepsStanding = true
        let uri = TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/")
        _ = bench.session.perform(
            Request(method: .get, uri: uri, fields: fields), body: nil, options: options,
            client: client)
        await client.answered()
        return client
    }

    /// What is given again, which takes a moment in which the pages are to be had at once.
    private func givenAgain(
        _ standing: StandingAnswer, _ bench: Bench, _ disk: DiskStore
    ) async -> StandingAnswer.Repetition? {
        for _ in 0..<1000 {
            if let answer = bench.session.again(standing, cachePolicy: nil) { return answer }
            await self.flush(disk)
        }
        return nil
    }

    @Test("say what the same request would be told anew, and are uses of it")
    func again() async throws {
        try await self.play { bench, disk in
            let standing = try #require(await self.ask(bench).answer?.standing)
            #expect(standing.isByGist)
            #expect(standing.heldBytes > 0)
            bench.clock.advance(.seconds(7))
            let (before, hits) = (bench.session.counters(), disk.statistics().disk?.hits ?? 0)
            let again = try #require(await self.givenAgain(standing, bench, disk))
            var expected = before
            expected.requests += 1
            expected.hits += 1
            expected.bytesFromStore += 5
            expected.reasons[.fresh, default: 0] += 1
            #expect(bench.session.counters() == expected)
            #expect(disk.statistics().disk?.hits == hits + 1)
            let anew = await self.ask(bench)
            #expect("\(again.moment.age)" == anew.field("Age"))
            #expect("larder; hit; ttl=\(again.moment.ttl)" == anew.cacheStatus)
            #expect(again.body.map { String(buffer: $0) } == anew.wholeBody)
            // The record is written anew when uses are: it says the same.
            await self.flush(disk)
            #expect(await self.givenAgain(standing, bench, disk) != nil)
        }
    }

    @Test(
        "are of the bytes that were asked for",
        arguments: [("bytes=1-2", "el"), ("bytes=-1", "o"), ("bytes=0-", "hello")])
    func ranges(_ range: String, _ text: String) async throws {
        try await self.play { bench, disk in
            let first = await self.ask(bench, ["Range": range])
            let standing = try #require(first.answer?.standing)
            #expect(first.status == 206)
            let again = try #require(await self.givenAgain(standing, bench, disk))
            #expect(again.body.map { String(buffer: $0) } == text)
        }
    }

    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (StandingOnDiskTests, Bench, DiskStore) async -> Void

        init(
            _ name: String,
            _ make: @escaping @Sendable (StandingOnDiskTests, Bench, DiskStore) async -> Void
        ) {
            self.testDescription = name
            self.make = make
        }
    }

    @Test(
        "fall with what they stand on, and count nothing",
        arguments: [
            Change("a purge") { _, bench, _ in bench.session.remove(bench.key) },
            Change("a purge that is done") { test, bench, disk in
                bench.session.remove(bench.key)
                await test.flush(disk)
            },
            Change("the disk's own removal") { test, bench, disk in
                disk.remove(bench.key, ids: nil, nil)
                await test.flush(disk)
            },
            Change("an unsafe request") { test, bench, disk in
                let number = bench.upstream.fetches.count
                bench.perform(method: .post)
                bench.upstream.fetches[number].answer(200)
                await test.flush(disk)
            },
            Change("another response") { test, bench, disk in
                await test.fill(bench, disk, with: "world")
            },
            Change("the same response once more") { test, bench, disk in
                await test.fill(bench, disk, with: "hello")
            },
            Change("another variant") { test, bench, disk in
                await test.fill(bench, disk, ["Vary": "Accept"], with: "hello")
            },
            Change("a freshening that changes no field") { test, bench, disk in
                let number = bench.upstream.fetches.count
                bench.clock.advance(.seconds(1))
                bench.perform("/", ["Cache-Control": "no-cache"])
                bench.upstream.fetches[number].answer(304)
                await test.flush(disk)
            },
            Change("a purge by predicate") { _, bench, _ in
                bench.session.removeAll(in: .all) { _ in }
            },
            Change("the disk's own removal by predicate") { _, _, disk in
                await withCheckedContinuation { continuation in
                    disk.removeAll(where: { _ in true }) { _ in continuation.resume() }
                }
            },
            Change("their freshness") { _, bench, _ in bench.clock.advance(.seconds(61)) },
        ])
    func fall(_ change: Change) async throws {
        try await self.play { bench, disk in
            let standing = try #require(await self.ask(bench).answer?.standing)
            #expect(await self.givenAgain(standing, bench, disk) != nil)
            await change.make(self, bench, disk)
            let before = bench.session.counters()
            #expect(bench.session.again(standing, cachePolicy: nil) == nil)
            #expect(bench.session.counters() == before)
        }
    }

    @Test(
        "are for all requests of a gist where nothing varies by what that leaves out",
        arguments: [("Accept", true), ("User-Agent", false), ("X-Id", false), ("*", false)])
    func gist(_ vary: String, _ isByGist: Bool) async throws {
        try await self.play(["Vary": vary]) { bench, _ in
            bench.upstream.onFetch { $0.answer(200, ["Vary": "*"]) }
            let standing = await self.ask(bench).answer?.standing
            #expect(standing?.isByGist ?? false == isByGist)
        }
    }
}
