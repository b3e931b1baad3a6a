import Glibc
import SeededNumbers

/// Makes traces: each a pattern that caches meet, or that breaks a policy.
package struct TraceBuilder {
    private var random: SplitMix64
    private var requests: [Int32] = []
    private var sizes: [UInt64] = []

    package init(seed: UInt64) {
        self.random = SplitMix64(seed: seed)
    }

    package enum Sizes: Sendable {
        case fixed(UInt64)
        /// `exp(mean + deviation · N(0, 1))`, cut at `limit`: what files and responses look like.
        case lognormal(mean: Double, deviation: Double, limit: UInt64)
        /// `least / u^(1/alpha)`, cut at `limit`: a few objects hold most bytes.
        case pareto(least: UInt64, alpha: Double, limit: UInt64)
    }

    /// Objects that take their popularity from their rank.
    package struct Population: Sendable {
        var first: Int
        /// Sums of the weights up to each rank.
        var sums: [Double]
    }

    /// Takes in `count` objects, the most popular first; weight `1 / rank^skew`.
    package mutating func population(
        _ count: Int, skew: Double, sizes: Sizes
    ) -> Population {
        let first = self.sizes.count
        for _ in 0..<count { _ = self.object(sizes) }
        var sum = 0.0
        let sums = (1...max(1, count)).map { rank -> Double in
            sum += 1 / pow(Double(rank), skew)
            return sum
        }
        return Population(first: first, sums: sums)
    }

    /// One more object.
    package mutating func object(_ sizes: Sizes) -> Int {
        let size: UInt64
        switch sizes {
        case .fixed(let bytes): size = bytes
        case .lognormal(let mean, let deviation, let limit):
            let u = Double.random(in: 0x1p-53..<1, using: &self.random)
            let v = Double.random(in: 0..<1, using: &self.random)
            let normal = (-2 * log(u)).squareRoot() * cos(2 * .pi * v)
            size = UInt64(min(Double(limit), max(64, exp(mean + deviation * normal))))
        case .pareto(let least, let alpha, let limit):
            let u = Double.random(in: 0x1p-53..<1, using: &self.random)
            size = UInt64(min(Double(limit), Double(least) / pow(u, 1 / alpha)))
        }
        self.sizes.append(size)
        return self.sizes.count - 1
    }

    /// Requests by popularity; a share `oncePart` of them for objects never seen before or again.
    package mutating func zipf(
        _ population: Population, count: Int, oncePart: Double = 0, onceSizes: Sizes = .fixed(4096)
    ) {
        for _ in 0..<count {
            if oncePart > 0, Double.random(in: 0..<1, using: &self.random) < oncePart {
                let object = self.object(onceSizes)
                self.ask(object)
            } else {
                self.ask(self.pick(population))
            }
        }
    }

    /// An object of `population`, by popularity.
    package mutating func pick(_ population: Population) -> Int {
        guard let sum = population.sums.last else { return population.first }
        let point = Double.random(in: 0..<sum, using: &self.random)
        var low = 0
        var high = population.sums.count - 1
        while low < high {
            let middle = (low + high) / 2
            if population.sums[middle] > point { high = middle } else { low = middle + 1 }
        }
        return population.first + low
    }

    /// New objects, each asked for once.
    package mutating func scan(_ count: Int, sizes: Sizes) {
        for _ in 0..<count { self.ask(self.object(sizes)) }
    }

    /// The same objects in the same order again and again.
    package mutating func loop(_ population: Population, rounds: Int) {
        for _ in 0..<rounds {
            for i in population.sums.indices { self.ask(population.first + i) }
        }
    }

    /// Each request is for what was asked for a short while ago, the shorter the likelier (a stack
    /// of recency with geometric depths), or for something new: LRU is made for this.
    package mutating func recency(count: Int, depth: Double, newPart: Double, sizes: Sizes) {
        var stack: [Int] = []
        for _ in 0..<count {
            let u = Double.random(in: 0x1p-53..<1, using: &self.random)
            let place = Int(-log(u) * depth)
            let isNew = Double.random(in: 0..<1, using: &self.random) < newPart
            if isNew || place >= stack.count {
                let object = self.object(sizes)
                stack.append(object)
                self.ask(object)
            } else {
                let object = stack.remove(at: stack.count - 1 - place)
                stack.append(object)
                self.ask(object)
            }
            if stack.count > Int(depth * 12) { stack.removeFirst(stack.count / 4) }
        }
    }

    package mutating func chance(_ part: Double) -> Bool {
        Double.random(in: 0..<1, using: &self.random) < part
    }

    package mutating func ask(_ object: Int) { self.requests.append(Int32(object)) }

    package func trace(_ name: String, capacity: UInt64) -> EvictionTrace {
        EvictionTrace(
            name: name, sizes: self.sizes, requests: self.requests, capacity: capacity)
    }
}

extension EvictionTrace {
    /// The traces of the comparison.
    ///
    /// - Parameter scale: objects, requests and capacity grow with it; 1 has some 40,000 requests
    ///   a trace.
    package static func library(scale: Int, seed: UInt64 = 1) -> [EvictionTrace] {
        [
            Self.oneHitWonders(scale, seed), Self.scanned(scale, seed), Self.looped(scale, seed),
            Self.shifting(scale, seed), Self.lognormal(scale, seed), Self.pareto(scale, seed),
            Self.contentDelivery(scale, seed), Self.recency(scale, seed),
        ]
    }

    private static func oneHitWonders(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 1)
        let objects = builder.population(4000 * scale, skew: 0.9, sizes: .fixed(4096))
        builder.zipf(objects, count: 40_000 * scale, oncePart: 0.3)
        return builder.trace("zipf with one-hit wonders", capacity: 1_638_400 * UInt64(scale))
    }

    private static func scanned(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 2)
        let objects = builder.population(2000 * scale, skew: 0.9, sizes: .fixed(4096))
        for _ in 0..<4 {
            builder.zipf(objects, count: 10_000 * scale)
            builder.scan(2000 * scale, sizes: .fixed(4096))
        }
        return builder.trace("zipf with scans across", capacity: 1_638_400 * UInt64(scale))
    }

    private static func looped(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 3)
        let objects = builder.population(1100 * scale, skew: 1, sizes: .fixed(4096))
        builder.loop(objects, rounds: 36)
        return builder.trace("loop over 1.1 capacities", capacity: 4_096_000 * UInt64(scale))
    }

    private static func shifting(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 4)
        for _ in 0..<5 {
            let objects = builder.population(2000 * scale, skew: 0.9, sizes: .fixed(4096))
            builder.zipf(objects, count: 8000 * scale, oncePart: 0.1)
        }
        return builder.trace("working set that shifts", capacity: 1_638_400 * UInt64(scale))
    }

    private static func lognormal(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 5)
        let sizes = TraceBuilder.Sizes.lognormal(mean: 9.3, deviation: 1.6, limit: 64 << 20)
        let objects = builder.population(4000 * scale, skew: 0.8, sizes: sizes)
        builder.zipf(objects, count: 40_000 * scale, oncePart: 0.2, onceSizes: sizes)
        return builder.trace("lognormal sizes", capacity: (16 << 20) * UInt64(scale))
    }

    private static func pareto(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 6)
        let sizes = TraceBuilder.Sizes.pareto(least: 1024, alpha: 0.9, limit: 32 << 20)
        let objects = builder.population(4000 * scale, skew: 0.8, sizes: sizes)
        builder.zipf(objects, count: 40_000 * scale, oncePart: 0.2, onceSizes: sizes)
        return builder.trace("zipf sizes", capacity: (16 << 20) * UInt64(scale))
    }

    /// Pages and pictures, of which the popular change slowly; large files in few requests, each
    /// asked for a few times in a while; a third is asked for once.
    private static func contentDelivery(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 7)
        let small = TraceBuilder.Sizes.lognormal(mean: 9, deviation: 1.3, limit: 4 << 20)
        let large = TraceBuilder.Sizes.lognormal(mean: 13.8, deviation: 0.8, limit: 32 << 20)
        var pages: [TraceBuilder.Population] = (0..<4).map { _ in
            builder.population(800 * scale, skew: 0.85, sizes: small)
        }
        var files = builder.population(60 * scale, skew: 0.7, sizes: large)
        for i in 0..<40_000 * scale {
            if i > 0, i % (5000 * scale) == 0 {
                pages[(i / (5000 * scale)) % 4] = builder.population(
                    800 * scale, skew: 0.85, sizes: small)
                files = builder.population(60 * scale, skew: 0.7, sizes: large)
            }
            if builder.chance(0.03) {
                builder.ask(builder.pick(files))
            } else if builder.chance(0.33) {
                let object = builder.object(small)
                builder.ask(object)
            } else {
                builder.ask(builder.pick(pages[builder.chance(0.5) ? 0 : i % 4]))
            }
        }
        return builder.trace("content delivery", capacity: (32 << 20) * UInt64(scale))
    }

    private static func recency(_ scale: Int, _ seed: UInt64) -> EvictionTrace {
        var builder = TraceBuilder(seed: seed &* 31 &+ 8)
        builder.recency(
            count: 40_000 * scale, depth: 150 * Double(scale), newPart: 0.1, sizes: .fixed(4096))
        return builder.trace("recency alone (LRU is optimal)", capacity: 1_638_400 * UInt64(scale))
    }
}
