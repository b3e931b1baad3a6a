import CLinux
import Glibc
import NIOCore

/// The processors that this process may run on.
enum UsableProcessors {
    /// How many there are, and thus how many event loops are worth having.
    ///
    /// The quota of a container, as NIO finds it, and no more than the kernel would run us on: more
    /// loops than that only take turns (taskset(1), `CPUAffinity=` and cpusets of systemd and
    /// containers). Hits on one core: a p99 of 2.7 to 3.5 ms with one loop, of 5.0 ms with two.
    static var count: Int {
        max(1, min(System.coreCount, self.inAffinityMask ?? .max))
    }

    /// The processors in the calling thread's affinity mask; nil where the kernel does not say.
    ///
    /// sched_getaffinity(2): EINVAL where the kernel's own mask is longer than the one it is given.
    static var inAffinityMask: Int? {
        var words = 1_024 / UInt.bitWidth
        while words <= Self.longestMask / UInt.bitWidth {
            var mask = [UInt](repeating: 0, count: words)
            let filled = unsafe mask.withUnsafeMutableBytes { bytes in
                unsafe larder_get_affinity(bytes.baseAddress, UInt(bytes.count))
            }
            if filled > 0 { return mask.reduce(0) { $0 + $1.nonzeroBitCount } }
            guard errno == EINVAL else { return nil }
            words *= 2
        }
        return nil
    }

    /// Bits; Linux has at most 8,192 processors.
    private static let longestMask = 65_536
}
