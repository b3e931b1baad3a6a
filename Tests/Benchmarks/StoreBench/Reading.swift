import Glibc
import LarderDisk
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

extension StoreBench {
    /// Reads stored responses whole, one after the other.
    static func read(_ options: Options) async throws {
        if options.isCold { dropCaches() }
        let store = try openStore(options)
        let responses = Responses()
        let held = max(1, store.statistics().disk?.objects ?? 1)
        var times: [Double] = []
        var bytes: UInt64 = 0
        var missing = 0
        var wrong = 0
        // What else happens on the first of them is not theirs.
        _ = await lookup(store, responses.key(0))
        let before = Usage()
        for turn in 0..<options.objects {
            let number = SizePattern.mix(turn &+ 77) % held
            let started = ContinuousClock.now
            guard let found = await lookup(store, responses.key(number)).first else {
                missing += 1
                continue
            }
            let length = options.pattern.size(of: number, phase: 0, bound: bound(options))
            var position: UInt64 = 0
            for await piece in pieces(of: found) {
                if options.verifies,
                    length != found.bodyLength
                        || !responses.matches(piece, number, at: position, length: length)
                {
                    wrong += 1
                }
                position += UInt64(piece.readableBytes)
            }
            if position != found.bodyLength { wrong += 1 }
            bytes += position
            times.append((ContinuousClock.now - started).seconds * 1e6)
            if options.bytes > 0, bytes >= options.bytes { break }
        }
        let used = Usage().since(before)
        times.sort()
        let mebibytes = Double(bytes) / Double(1 << 20)
        print(
            "read \(options.isCold ? "cold" : "warm"): \(times.count) responses, "
                + "\(mebibytes.text(1)) MiB, missing \(missing), wrong \(wrong)\n"
                + "CPU \((used.processor * 1e6 / Double(max(1, times.count))).text(1)) µs/response, "
                + "\((used.processor * 1e6 / max(1e-9, mebibytes)).text(0)) µs/MiB; "
                + "\((mebibytes / used.wall).text(0)) MiB/s; wall µs p50 \(quantile(times, 0.5)), "
                + "p99 \(quantile(times, 0.99)), max \(quantile(times, 1)); load \(loadAverage)")
        print("memory: \(memoryText)")
        await close(store)
        if wrong > 0 { throw UsageError(message: "\(wrong) wrong bodies") }
    }

    /// Opens the store, and finds one response.
    static func open(_ options: Options) async throws {
        let started = ContinuousClock.now
        let store = try openStore(options)
        let opened = ContinuousClock.now
        let found = await lookup(store, Responses().key(1))
        let ended = ContinuousClock.now
        print(
            "open \((opened - started).milliseconds.text(2)) ms, first lookup "
                + "\((ended - opened).milliseconds.text(2)) ms, found \(found.count) of "
                + "\(store.statistics().disk?.objects ?? 0); load \(loadAverage)")
        print("memory: \(memoryText)")
        await close(store)
    }

    static var memoryText: String {
        let memory = memory()
        return ["VmRSS", "RssAnon", "RssFile", "VmHWM"].map {
            "\($0) \(memory[$0] ?? 0) KiB"
        }.joined(separator: ", ")
    }

    static func quantile(_ sorted: [Double], _ share: Double) -> String {
        guard let last = sorted.indices.last else { return "–" }
        return sorted[Int(Double(last) * share)].text(0)
    }

    static func lookup(_ store: DiskStore, _ key: CacheKey) async -> [StoredObject] {
        await withCheckedContinuation { continuation in
            store.lookup(key) { continuation.resume(returning: $0) }
        }
    }

    /// The pieces of a body, as they come.
    static func pieces(of object: StoredObject) -> AsyncStream<ByteBuffer> {
        if let resident = object.body.resident {
            return AsyncStream { continuation in
                continuation.yield(resident)
                continuation.finish()
            }
        }
        let source = object.body.reader(range: 0..<object.bodyLength)
        let (wakes, continuation) = AsyncStream<Void>.makeStream(
            bufferingPolicy: .bufferingNewest(1))
        source.attach { continuation.yield() }
        return AsyncStream {
            var wakes = wakes.makeAsyncIterator()
            while true {
                switch source.next() {
                case .piece(let piece): return piece
                case .pending: _ = await wakes.next()
                case .end, .failed: return nil
                }
            }
        }
    }

    /// Writes everything to the disk and empties the kernel's page cache, where that is permitted.
    static func dropCaches() {
        sync()
        guard let file = unsafe fopen("/proc/sys/vm/drop_caches", "we") else {
            return print("the page cache could not be dropped")
        }
        unsafe _ = fputs("3", file)
        unsafe _ = fclose(file)
    }
}
