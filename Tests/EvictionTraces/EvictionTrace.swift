/// A sequence of requests for objects of known sizes: what an eviction policy is measured with.
///
/// Objects are small numbers from 0 on, so that caches under test are arrays and no dictionaries.
package struct EvictionTrace: Sendable {
    package var name: String
    /// By object.
    package var sizes: [UInt64]
    package var requests: [Int32]
    /// The capacity to replay it with, in bytes.
    package var capacity: UInt64

    package init(name: String, sizes: [UInt64], requests: [Int32], capacity: UInt64) {
        self.name = name
        self.sizes = sizes
        self.requests = requests
        self.capacity = capacity
    }

    /// Whether all objects have the same size: only then the offline optimum is known exactly.
    package var isUniform: Bool {
        guard let first = self.sizes.first else { return true }
        return self.sizes.allSatisfy { $0 == first }
    }

    package var requestedBytes: UInt64 {
        self.requests.reduce(0) { $0 + self.sizes[Int($1)] }
    }
}

/// A cache that holds nothing but what its policy keeps.
package protocol TraceCache {
    /// Whether the request was a hit; otherwise the object may be taken in.
    mutating func request(_ object: Int, size: UInt64) -> Bool
}

/// The shares of requests, and of requested bytes, that were hits.
package struct HitRatio: Sendable, Equatable {
    package var objects: Double
    package var bytes: Double

    package init(objects: Double, bytes: Double) {
        self.objects = objects
        self.bytes = bytes
    }
}

extension TraceCache {
    package mutating func replay(_ trace: EvictionTrace) -> HitRatio {
        var hits = 0
        var bytes: UInt64 = 0
        for request in trace.requests {
            let object = Int(request)
            let size = trace.sizes[object]
            if self.request(object, size: size) {
                hits += 1
                bytes += size
            }
        }
        return HitRatio(
            objects: Double(hits) / Double(max(1, trace.requests.count)),
            bytes: Double(bytes) / Double(max(1, trace.requestedBytes)))
    }
}
