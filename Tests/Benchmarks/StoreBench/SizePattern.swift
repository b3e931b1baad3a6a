import Glibc

/// How large bodies are: a function of their number, so that a later run knows it again.
enum SizePattern: Equatable {
    /// All of this size.
    case fixed(UInt64)
    /// 1 to 8 KiB.
    case small
    /// A third of the bytes each in bodies of 1 to 8 KiB, 256 KiB to 2 MiB, and 20 to 150 MiB.
    case mixed
    /// Other sizes with every capacity that is written: 1 to 8 KiB, 20 to 110 KiB, 256 KiB
    /// to 2 MiB, 20 to 150 MiB, and again.
    case phases
    /// 1 KiB to 1 GiB, the number of bodies falling as their size grows: density proportional to
    /// size to the power of −1.6.
    case zipf

    init?(name: String) {
        switch name {
        case "small": self = .small
        case "mixed": self = .mixed
        case "phases": self = .phases
        case "zipf": self = .zipf
        default: return nil
        }
    }

    /// - Parameters:
    ///   - phase: how many capacities have been written before.
    ///   - bound: the largest size that the store takes.
    func size(of number: UInt64, phase: UInt64, bound: UInt64) -> UInt64 {
        let random = Self.mix(number)
        let size: UInt64
        switch self {
        case .fixed(let bytes): size = bytes
        case .small: size = Self.between(1 << 10, 8 << 10, random)
        case .mixed: size = Self.mixedSize(number, random)
        case .phases:
            let range: (UInt64, UInt64) =
                switch phase % 4 {
                case 0: (1 << 10, 8 << 10)
                case 1: (20 << 10, 110 << 10)
                case 2: (256 << 10, 2 << 20)
                default: (20 << 20, 150 << 20)
                }
            size = Self.between(range.0, range.1, random)
        case .zipf:
            // The inverse of the distribution function of a bounded Pareto distribution.
            let alpha = 0.6
            let low = 1024.0
            let high = Double(1 << 30)
            let u = Double(random >> 11) / Double(1 << 53)
            let ratio = pow(low / high, alpha)
            size = UInt64(low / pow(1 - u * (1 - ratio), 1 / alpha))
        }
        return min(size, bound)
    }

    /// So many small ones come on each large one that their bytes are about the same.
    private static func mixedSize(_ number: UInt64, _ random: UInt64) -> UInt64 {
        switch Self.mix(random) % 18_500 {
        case 0: Self.between(20 << 20, 150 << 20, random)
        case 1...74: Self.between(256 << 10, 2 << 20, random)
        default: Self.between(1 << 10, 8 << 10, random)
        }
    }

    private static func between(_ low: UInt64, _ high: UInt64, _ random: UInt64) -> UInt64 {
        low + random % (high - low)
    }

    /// Spreads consecutive numbers over all 64-bit numbers (the finalizer of SplitMix64).
    static func mix(_ number: UInt64) -> UInt64 {
        var z = number &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }
}
