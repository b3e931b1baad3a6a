import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderDisk

@Suite("When the writer commits")
struct CommitPacingTests {
    private static let limit = 4096

    private static let head = StoredHead(
        status: .ok, fields: [:], requestTime: Timestamp(seconds: 0),
        responseTime: Timestamp(seconds: 0))
    private static let key = ObjectKey(hash: KeyHash(high: 1, low: 2), id: ObjectID(rawValue: 3))

    private static func update(isInvalidated: Bool) -> WriteCommand {
        var head = Self.head
        head.isInvalidated = isInvalidated
        return .update(Self.key, head, written: nil)
    }

    @Test(
        "waits where responses come several at a time, for longer the longer a commit takes",
        arguments: [
            (1, 5, nil), (2, 1, 9), (2, 5, 45), (900, 11, 99), (2, 12, 100), (900, 300, 100),
        ] as [(Int, Int, Int?)])
    func pause(commands: Int, took: Int, pause: Int?) {
        let began = ContinuousClock.now
        let ended = began + .milliseconds(took)
        var pacing = CommitPacing()
        pacing.ended(commands: commands, began: began, at: ended)
        #expect(pacing.notBefore == pause.map { ended + .milliseconds($0) })
        pacing.ended(commands: 1, began: began, at: ended)
        #expect(pacing.notBefore == nil, "one that comes alone waits for nothing")
    }

    @Test("is urgent where somebody waits for it, or where there is much of it")
    func urgency() throws {
        let mailbox = try WriteMailbox(limit: 1 << 20, urgentHaste: Self.limit)
        for _ in 0..<7 {
            mailbox.post(Self.update(isInvalidated: false))
            #expect(!mailbox.look().isUrgent)
        }
        mailbox.post(Self.update(isInvalidated: false))
        #expect(mailbox.look().isUrgent, "eight of 512")
        _ = mailbox.take()
        #expect(!mailbox.look().isUrgent)
        for command in [
            Self.update(isInvalidated: true), .remove(CacheKey(bytes: [1]), ids: nil, nil),
            .removeExactly([Self.key], isPromise: false, nil), .groups, .barrier {},
        ] {
            mailbox.post(command)
            #expect(mailbox.look().isUrgent)
            while mailbox.take() != nil {}
            #expect(!mailbox.look().isUrgent)
        }
    }

    @Test("takes no more than so many bytes, heads and commands counted, but what must not be lost")
    func bound() throws {
        let mailbox = try WriteMailbox(limit: 32_768, urgentHaste: Self.limit)
        var taken = 0
        while mailbox.post(Self.update(isInvalidated: false)) == .accepted { taken += 1 }
        #expect(taken == 16)
        #expect(mailbox.post(Self.update(isInvalidated: true)) == .full)
        #expect(mailbox.post(.removeExactly([Self.key], isPromise: false, nil)) == .accepted)
        #expect(mailbox.post(.barrier {}) == .accepted)
        mailbox.release(Self.update(isInvalidated: false).bytes * 3)
        #expect(mailbox.post(Self.update(isInvalidated: false)) == .accepted)
        var long = Self.head
        long.fields = ["X-Long": String(repeating: "x", count: 40_000)]
        #expect(
            try WriteMailbox(limit: 32_768, urgentHaste: 1)
                .post(.update(Self.key, long, written: nil)) == .full)
    }

    @Test("stays as small as what waits, though it is never empty", arguments: [1, 3000])
    func neverEmpty(waiting: Int) throws {
        let mailbox = try WriteMailbox(limit: 1 << 20, urgentHaste: Self.limit)
        func post(_ number: Int) {
            mailbox.post(.remove(CacheKey(bytes: [UInt8(number % 251)]), ids: nil, nil))
        }
        for number in 0..<waiting { post(number) }
        for number in 0..<20_000 {
            post(number + waiting)
            guard case .remove(let key, _, _)? = mailbox.take() else {
                Issue.record("nothing waits")
                return
            }
            #expect(key.bytes == [UInt8(number % 251)])
        }
        #expect(mailbox.places <= 2 * max(waiting, 1024) + 2)
    }

    @Test("is hurried until all that was there is taken")
    func hurry() throws {
        let mailbox = try WriteMailbox(limit: 1 << 20, urgentHaste: Self.limit)
        mailbox.hurry()
        #expect(!mailbox.look().isUrgent, "there is nothing to hurry with")
        for _ in 0..<2 { mailbox.post(Self.update(isInvalidated: false)) }
        mailbox.hurry()
        _ = mailbox.take()
        #expect(mailbox.look().isUrgent)
        _ = mailbox.take()
        mailbox.post(Self.update(isInvalidated: false))
        #expect(!mailbox.look().isUrgent)
    }

    @Test("gathers no longer than until something urgent comes, or the store closes")
    func gathering() async throws {
        for ends in [
            { $0.hurry() }, { $0.post(.groups) }, { $0.nudge() }, { _ = $0.close() },
        ] as [@Sendable (WriteMailbox) -> Void] {
            let mailbox = try WriteMailbox(limit: 1 << 20, urgentHaste: Self.limit)
            mailbox.post(Self.update(isInvalidated: false))
            await withCheckedContinuation { continuation in
                do {
                    try NamedThread.start("gathering") {
                        mailbox.gather(until: .now + .seconds(3600))
                        continuation.resume()
                    }
                } catch {
                    Issue.record(error)
                    continuation.resume()
                }
                mailbox.post(Self.update(isInvalidated: false))
                ends(mailbox)
            }
        }
    }
}

/// A disk whose writer lets commands gather for an hour after each batch, unless somebody waits.
@Suite("A writer that lets commands gather", .timeLimit(.minutes(5)))
struct GatheringTests {
    private func open(_ directory: TemporaryDirectory) throws -> DiskStore {
        try World().open(directory) { $0.pause = .seconds(3600) }
    }

    @Test("takes what has come of a body when whoever writes it can do no more")
    func window() async throws {
        let directory = try TemporaryDirectory()
        let store = try self.open(directory)
        let observer = Observer()
        let sink = try #require(
            store.store(
                storedHead(), for: cacheKey("a"), length: nil, replacing: [], observer: observer))
        for written in [196_608, 458_752] as [UInt64] {
            sink.write(ByteBuffer(repeating: 1, count: 262_144))
            sink.hurry()
            await observer.wrote(written)
        }
        #expect(observer.ends == 0)
    }

    @Test("commits at once what a lookup waits for, also where that came before the commit")
    func lookup() async throws {
        let directory = try TemporaryDirectory()
        let store = try self.open(directory)
        let key = cacheKey("a")
        let sink = SinkState(
            id: store.core.newID(), key: key, role: .new(storedHead(), replacing: []),
            expected: 0, observer: Observer(), core: store.core)
        store.core.sinkBegan(sink)
        store.core.landingBegan(sink)
        let answers = AsyncStream<Int>.makeStream()
        store.lookup(key) { answers.continuation.yield($0.count) }
        // Its own beginning of the landing changes nothing any more.
        sink.commit(trailers: Fields())
        var found = answers.stream.makeAsyncIterator()
        #expect(await found.next() == 1)
        withExtendedLifetime(store) {}
    }

    @Test("commits at once what a removal waits for")
    func removal() async throws {
        let directory = try TemporaryDirectory()
        let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(8)))
        let store = TieredStore(memory: memory, disk: try self.open(directory))
        let key = cacheKey("a")
        #expect(await store.looked(key).isEmpty)
        let sink = store.store(
            storedHead(), for: key, length: nil, replacing: [], observer: Observer())
        sink?.commit(trailers: Fields())
        let id = try #require(store.lookupResident(key)?.first?.id)
        let removed = await withCheckedContinuation { done in
            store.remove(key, ids: [id]) { done.resume(returning: $0) }
        }
        #expect(removed == 1)
    }

    @Test("keeps the order of what was asked for, though it enters new responses together")
    func order() async throws {
        let directory = try TemporaryDirectory()
        let store = try self.open(directory)
        func begin(_ name: String, _ seed: UInt64, replacing: [ObjectID] = []) throws -> ObjectID {
            let id = ObjectID(rawValue: store.core.nextID)
            let sink = try #require(
                store.store(
                    storedHead(), for: cacheKey(name), length: nil, replacing: replacing,
                    observer: Observer()))
            sink.write(ByteBuffer(bytes: pattern(5_000, seed: seed)))
            sink.commit(trailers: Fields())
            return id
        }
        let ids = try ["a", "b", "c", "d", "e"].map { try begin($0, 1) }
        store.update(ids[2], of: cacheKey("c"), head: storedHead("new"), written: nil)
        _ = try begin("a", 2, replacing: [ids[0]])
        _ = try begin("f", 1)
        #expect(await store.removed(cacheKey("b"), ids: [ids[1]]) == 1)
        let audit = try QueueAudit(directory)
        audit.expectSound()
        let keys = audit.records.values.sorted { $0.sequence < $1.sequence }.map(\.key)
        #expect(keys == ["c", "d", "e", "a", "f"].map { cacheKey($0) })
        #expect(audit.record(cacheKey("c"))?.head.fields == storedHead("new").fields)
        let replaced = try #require(await store.find(cacheKey("a")).first)
        #expect(await store.body(replaced).bytes == pattern(5_000, seed: 2))
        await store.closed()
    }
}
