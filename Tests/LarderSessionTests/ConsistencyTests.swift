import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import SeededNumbers
import Synchronization
import Testing

import class Foundation.FileManager
import struct Foundation.UUID

/// A client that waits for what it is told.
private final class WaitingClient: ExchangeClient {
    enum Heard: Sendable {
        case answer(Answer)
        case failure(ExchangeFailure)
    }

    private let heard = AsyncStream<Heard>.makeStream()
    private let wakes = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    func exchange(informational head: ResponseHead) {}

    func exchange(answered answer: Answer) {
        if case .source(let source) = answer.body {
            let continuation = self.wakes.continuation
            source.attach { continuation.yield() }
        }
        self.heard.continuation.yield(.answer(answer))
    }

    func exchange(failed failure: ExchangeFailure) {
        self.heard.continuation.yield(.failure(failure))
    }

    func outcome() async -> Heard? {
        for await heard in self.heard.stream { return heard }
        return nil
    }

    /// Reads up to `limit` bytes; whether the end was seen.
    func read(_ body: Answer.Body, limit: Int) async -> (bytes: ByteBuffer, isWhole: Bool) {
        switch body {
        case .none: return (ByteBuffer(), true)
        case .resident(let buffer): return (buffer, true)
        case .source(let source):
            var bytes = ByteBuffer()
            var wakes = self.wakes.stream.makeAsyncIterator()
            while bytes.readableBytes < limit {
                switch source.next() {
                case .piece(let piece): bytes.writeImmutableBuffer(piece)
                case .pending: await wakes.next()
                case .end: return (bytes, true)
                case .failed: return (bytes, false)
                }
            }
            source.cancel()
            return (bytes, false)
        }
    }
}

/// What a client asked for.
private struct Asked: Sendable {
    var fields = Fields()
    var isHead = false
    var leavesAt = Int.max
    var ifRange: String?
    var noCache = false

    init(_ random: inout SplitMix64, _ version: Int) {
        let most = 349_999
        func place(_ random: inout SplitMix64) -> (Int, Int) {
            let first = Int.random(in: 0..<most, using: &random)
            let length = Int.random(in: 1...(random.chance(50) ? 300 : 120_000), using: &random)
            return (first, min(most, first + length))
        }
        switch Int.random(in: 0..<20, using: &random) {
        case 0, 1: break
        case 5: self.isHead = true
        case 6: self.fields.append("Range", "bytes=-\(Int.random(in: 1...90_000, using: &random))")
        case 7: self.fields.append("Range", "bytes=\(place(&random).0)-")
        case 8, 9, 10:
            let (a, b) = (place(&random), place(&random))
            self.fields.append("Range", "bytes=\(a.0)-\(a.1), \(b.0)-\(b.1)")
        default:
            let (first, last) = place(&random)
            self.fields.append("Range", "bytes=\(first)-\(last)")
        }
        let known = Version.tag(max(0, version - (random.chance(30) ? 1 : 0)))
        if random.chance(15), !self.isHead {
            self.ifRange = known
            self.fields.append("If-Range", known)
        } else if random.chance(10) {
            self.fields.append("If-None-Match", known)
        }
        if random.chance(8) {
            self.noCache = true
            self.fields.append("Cache-Control", "no-cache")
        }
        if random.chance(15) { self.leavesAt = Int.random(in: 0..<100_000, using: &random) }
    }
}

/// Every answer is one version of the representation, never two put together.
@Suite("Answers are consistent while the representation changes", .timeLimit(.minutes(10)))
struct ConsistencyTests {
    enum Kind: String, Sendable, CaseIterable { case memory, disk }

    private static let tasks: UInt64 = 4

    @Test("whatever is asked for", arguments: Telling.allCases, Kind.allCases)
    func consistent(_ telling: Telling, _ kind: Kind) async throws {
        let seed: UInt64 = 11
        let clock = StandingClock()
        let origin = ChangingOrigin(telling, seed: seed, clock: clock)
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-session-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(64)))
        let disk =
            kind == .memory
            ? nil
            : try DiskStore.open(
                DiskConfiguration(directory: directory.path, capacity: .mebibytes(64)),
                clock: { clock.now() }, report: { Issue.record("the disk reports \($0)") })
        let store: any ObjectStore = disk.map { TieredStore(memory: memory, disk: $0) } ?? memory
        let session = Session(
            configuration: SessionConfiguration(
                policy: PolicyConfiguration(), window: .kibibytes(256),
                finishAfterClientLeft: .kibibytes(64)),
            store: store, upstream: origin, clock: clock, timers: ManualTimers())
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<Self.tasks {
                group.addTask {
                    var random = SplitMix64(seed: seed << 8 | task)
                    // What has no strong validator is never put together.
                    for _ in 0..<(telling == .strongTag ? 60 : 15) {
                        await Self.exchange(session, origin, clock, &random)
                    }
                }
            }
        }
        // What nobody waits for any more ends by itself.
        var turns = 0
        while turns < 1_000_000,
            !session.openFetches().isEmpty || session.counters().openFetches > 0
                || session.counters().openExchanges > 0
        {
            turns += 1
            await Task.yield()
        }
        let counters = session.counters()
        #expect(counters.openFetches == 0)
        #expect(counters.openExchanges == 0)
        #expect(session.openFetches().isEmpty)
        #expect(counters.hits > 0)
        #expect(telling == .strongTag || counters.gapFetches + counters.bodiesResumed == 0)
        if telling == .strongTag, kind == .memory { #expect(counters.gapFetches > 0) }
        #expect(store.statistics().damaged == 0)
        #expect(store.statistics().storeFailures == 0)
        await withCheckedContinuation { done in store.close { done.resume() } }
    }

    private static func exchange(
        _ session: Session, _ origin: ChangingOrigin, _ clock: StandingClock,
        _ random: inout SplitMix64
    ) async {
        let asked = Asked(&random, origin.version)
        let uri = TargetURI(
            scheme: .http, host: "origin.example",
            pathAndQuery: "/\(Int.random(in: 0..<4, using: &random))")
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<3: session.remove(CacheKey(method: .get, uri: uri, partition: ""))
        case 3..<6 where origin.telling != .weakDate: clock.advance(.seconds(61))
        default: break
        }
        let before = origin.version
        let client = WaitingClient()
        let exchange = session.perform(
            Request(method: asked.isHead ? .head : .get, uri: uri, fields: asked.fields),
            body: nil, options: ExchangeOptions(), client: client)
        if random.chance(5) { return exchange.cancel() }
        guard case .answer(let answer)? = await client.outcome() else { return }
        let (bytes, isWhole) = await client.read(answer.body, limit: asked.leavesAt)
        if !isWhole { exchange.cancel() }
        let check = Check(
            answer: answer, asked: asked, bytes: bytes, isWhole: isWhole, telling: origin.telling,
            versions: (asked.noCache && origin.telling != .weakTag && origin.telling != .weakDate
                ? before : 0)...origin.version)
        if let wrong = check.wrong {
            Issue.record(
                "\(wrong): \(asked.fields) got \(answer.head), \(bytes.readableBytes) bytes, \(isWhole)"
            )
        }
    }
}

/// Compares an answer with the versions that it may be of.
private struct Check {
    let answer: Answer
    let asked: Asked
    let bytes: ByteBuffer
    let isWhole: Bool
    let telling: Telling
    let versions: ClosedRange<Int>

    /// What is wrong with the answer; nil: nothing.
    var wrong: String? {
        let fields = self.answer.head.fields
        if case .known(let length) = self.answer.bodyLength, self.isWhole, !self.asked.isHead,
            self.answer.head.status.rawValue != 304, length != UInt64(self.bytes.readableBytes)
        {
            return "another length than announced"
        }
        switch self.answer.head.status.rawValue {
        case 200 where self.asked.isHead: return self.head
        case 200: return self.part(0, self.bytes, total: nil, isEnd: self.isWhole)
        case 206:
            if fields.string("Content-Type")?.hasPrefix("multipart/") == true {
                return self.multipart
            }
            guard let range = fields.string("Content-Range"), let told = Self.told(range) else {
                return "no range"
            }
            if self.isWhole, told.range.count != self.bytes.readableBytes {
                return "range and length"
            }
            return self.part(told.range.lowerBound, self.bytes, total: told.total, isEnd: false)
        case 304:
            guard self.telling == .strongTag, let tag = fields.string("ETag") else { return nil }
            return self.asked.fields.string("If-None-Match") == tag ? nil : "another's 304"
        case 416, 502, 504: return nil
        default: return "status"
        }
    }

    private var head: String? {
        guard self.telling == .strongTag, let tag = self.answer.head.fields.string("ETag"),
            let version = self.versions.first(where: { Version.tag($0) == tag })
        else { return self.telling == .strongTag ? "no version" : nil }
        return self.answer.bodyLength == .known(UInt64(Version.length(version)))
            ? nil : "length of another version"
    }

    private static func told(_ value: String) -> (range: Range<Int>, total: Int?)? {
        guard case .bytes(let range, let total)? = ContentRange(parsing: Array(value.utf8)[...])
        else { return nil }
        return (Int(range.lowerBound)..<Int(range.upperBound), total.map { Int($0) })
    }

    /// The version whose bytes these are, where there is one.
    private func version(_ start: Int, _ bytes: ByteBuffer) -> Int? {
        self.versions.first { bytes == Version.bytes($0, start, bytes.readableBytes) }
    }

    private func part(_ start: Int, _ bytes: ByteBuffer, total: Int?, isEnd: Bool) -> String? {
        let count = bytes.readableBytes
        if count == 0 { return isEnd ? "empty" : nil }
        guard let version = self.version(start, bytes) else { return "mixture" }
        return self.agrees(version, total, isEnd ? start + count : nil)
    }

    private func agrees(_ version: Int, _ total: Int?, _ end: Int?) -> String? {
        let length = Version.length(version)
        if total ?? length != length || end ?? length != length { return "length" }
        guard self.telling == .strongTag else { return nil }
        if self.answer.head.fields.string("ETag") != Version.tag(version) { return "tag" }
        if self.answer.head.status.rawValue == 206, let condition = self.asked.ifRange,
            condition != Version.tag(version)
        {
            return "If-Range"
        }
        return nil
    }

    private var multipart: String? {
        guard self.isWhole else { return nil }
        guard let type = self.answer.head.fields.string("Content-Type"),
            let boundary = type.split(separator: "=").last.map(String.init)
        else { return "no boundary" }
        var rest = self.bytes
        var found: Set<Int> = []
        let closing = ByteBuffer(string: "\r\n--\(boundary)--\r\n")
        while rest != closing {
            guard let text = Self.readFields(&rest), text.contains("--\(boundary)\r\n"),
                let line = text.split(separator: "\r\n").first(where: {
                    $0.hasPrefix("Content-Range: ")
                }), let told = Self.told(String(line.dropFirst(15))),
                let bytes = rest.readSlice(length: told.range.count)
            else { return "framing" }
            guard let version = self.version(told.range.lowerBound, bytes) else {
                return "mixture in a part"
            }
            if let wrong = self.agrees(version, told.total, nil) { return wrong }
            found.insert(version)
        }
        return found.count == 1 ? nil : "parts of several versions"
    }

    /// Takes all up to an empty line.
    private static func readFields(_ bytes: inout ByteBuffer) -> String? {
        var text = ""
        while !text.hasSuffix("\r\n\r\n"), text.utf8.count < 1000 {
            guard let byte = bytes.readInteger(as: UInt8.self) else { return nil }
            text.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return text
    }
}
