import EvictionTraces

/// Object and byte hit ratio of each policy on each trace, as Markdown.
struct PolicyTable {
    let traces: [EvictionTrace]

    init(scale: Int, seed: UInt64) {
        self.traces = EvictionTrace.library(scale: scale, seed: seed)
    }

    private static let policies: [(name: String, replay: @Sendable (EvictionTrace) -> HitRatio)] = [
        (
            "**Larder, memory tier**",
            {
                var cache = MemoryTierCache(capacity: $0.capacity)
                return cache.replay($0)
            }
        ),
        (
            "**Larder, disk tier**",
            {
                var cache = DiskTierCache(capacity: $0.capacity, reserve: $0.capacity / 50)
                return cache.replay($0)
            }
        ),
        (
            "LRU",
            {
                var cache = LRUCache(capacity: $0.capacity)
                return cache.replay($0)
            }
        ),
        (
            "FIFO",
            {
                var cache = FIFOCache(capacity: $0.capacity, givesSecondChance: false)
                return cache.replay($0)
            }
        ),
        (
            "second chance",
            {
                var cache = FIFOCache(capacity: $0.capacity, givesSecondChance: true)
                return cache.replay($0)
            }
        ),
        (
            "ARC",
            {
                var cache = ARCCache(capacity: $0.capacity)
                return cache.replay($0)
            }
        ),
        (
            "W-TinyLFU",
            {
                let mean = $0.sizes.reduce(0, +) / UInt64(max(1, $0.sizes.count))
                var cache = TinyLFUCache(
                    capacity: $0.capacity, objects: Int($0.capacity / max(1, mean)))
                return cache.replay($0)
            }
        ),
        ("optimum (≤: a bound)", { Optimum.ratio($0) }),
    ]

    func write() {
        print("Object / byte hit ratio in per cent.\n")
        print("| policy | " + self.traces.map(\.name).joined(separator: " | ") + " |")
        print("| --- |" + String(repeating: " --- |", count: self.traces.count))
        for (name, replay) in Self.policies {
            let cells = self.traces.map { trace -> String in
                let ratio = replay(trace)
                let bound = name.hasPrefix("optimum") && !trace.isUniform ? "≤ " : ""
                return "\(bound)\(Self.percent(ratio.objects)) / \(Self.percent(ratio.bytes))"
            }
            print("| \(name) | " + cells.joined(separator: " | ") + " |")
        }
        print("")
        for trace in self.traces {
            print(
                "- \(trace.name): \(trace.requests.count) requests for \(trace.sizes.count) "
                    + "objects, \(trace.requestedBytes >> 20) MiB; "
                    + "capacity \(trace.capacity >> 10) KiB")
        }
    }

    private static func percent(_ ratio: Double) -> String {
        let tenths = Int((ratio * 1000).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
