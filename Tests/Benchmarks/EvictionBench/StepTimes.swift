import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Fills a disk tier with bodies of one size to twice its capacity, and tells how long the steps were
/// that took back room, how fast it wrote, and how much was turned away.
struct StepTimes {
    let directory: String
    let mebibytes: UInt64
    let body: Int

    /// Bodies on their way at a time, as of so many fetches.
    private static let together = 64

    func run() async {
        let store: DiskStore
        do throws(StoreError) {
            store = try DiskStore.open(
                DiskConfiguration(directory: self.directory, capacity: .mebibytes(self.mebibytes)),
                clock: { Timestamp(seconds: 1_700_000_000) }, report: { print("reported: \($0)") })
        } catch {
            return print("\(error)")
        }
        let count = Int(self.mebibytes << 20) / (self.body + 2048) * 2
        let tally = Tally()
        let started = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<Self.together {
                group.addTask {
                    while true {
                        let number = tally.next.add(1, ordering: .relaxed).oldValue
                        guard number < count else { return }
                        if await !self.put(number, into: store) {
                            tally.refused.add(1, ordering: .relaxed)
                        }
                    }
                }
            }
        }
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        let written = Double(count) * Double(self.body) / 1_048_576
        print(
            "\(count) bodies of \(self.body) bytes in \(Int(seconds)) s, "
                + "\(Int(written / seconds)) MiB/s; refused \(tally.refused.load(ordering: .relaxed)); "
                + "evicted \(store.statistics().disk?.evictions ?? 0), "
                + "holds \(store.statistics().disk?.objects ?? 0), "
                + "failures \(store.statistics().storeFailures)")
        print("file \(store.statistics().fileBytes >> 20) MiB")
        self.show(store.reclaimTimes)
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
    }

    private func show(_ histogram: [UInt64]) {
        let total = histogram.reduce(0, +)
        var sum: UInt64 = 0
        for (index, count) in histogram.enumerated() where count > 0 {
            sum += count
            print(
                "steps below \(64 << index) µs: \(count), "
                    + "\(Int((Double(sum) / Double(max(1, total)) * 1000).rounded())) ‰ so far")
        }
    }

    private func put(_ number: Int, into store: DiskStore) async -> Bool {
        await withCheckedContinuation { continuation in
            let key = CacheKey(
                method: .get,
                uri: TargetURI(scheme: .http, host: "example.org", pathAndQuery: "/\(number)"))
            let time = Timestamp(seconds: 1_700_000_000)
            let head = StoredHead(
                status: .ok, reason: "OK",
                fields: ["Content-Type": "text/plain", "Cache-Control": "max-age=60"],
                varyingFields: Fields(), requestTime: time, responseTime: time)
            let sink = store.store(
                head, for: key, length: UInt64(self.body), replacing: [],
                observer: End { continuation.resume(returning: $0) })
            guard let sink else { return continuation.resume(returning: false) }
            var rest = self.body
            while rest > 0 {
                let size = min(rest, 65_536)
                sink.write(ByteBuffer(repeating: UInt8(truncatingIfNeeded: number), count: size))
                rest -= size
            }
            sink.commit(trailers: Fields())
        }
    }
}

/// Counts over all that write.
private final class Tally: Sendable {
    let next = Atomic(0)
    let refused = Atomic(0)
}

/// Hears how a body's storing ended.
private final class End: ObjectSinkObserver {
    private let heard: @Sendable (Bool) -> Void

    init(_ heard: @escaping @Sendable (Bool) -> Void) {
        self.heard = heard
    }

    func sink(written offset: UInt64) {}

    func sinkEnded(_ outcome: SinkOutcome) {
        if case .visible = outcome { self.heard(true) } else { self.heard(false) }
    }
}
