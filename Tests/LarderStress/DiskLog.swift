import Foundation
import SeededNumbers

/// What a program did to its cache file, as the library in scripts/soak.d wrote it down.
struct DiskLog {
    enum Change {
        /// The bytes lie in the log at `bytes`.
        case write(offset: Int, bytes: Range<Int>, isSynchronous: Bool)
        case truncate(Int)
        /// All that came before is on the disk.
        case sync
        /// A synchronisation failed: what came before may be on the disk or not, and the kernel will
        /// not write it again by itself (fsync(2), Notes).
        case failedSync
    }

    var changes: [Change] = []
    let data: Data

    private static let recordSize = 32

    init(path: String) throws {
        self.init(try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped))
    }

    init(_ data: Data) {
        self.data = data
        var place = 0
        while place + Self.recordSize <= self.data.count {
            let kind = self.number(place, 4)
            let isSynchronous = self.number(place + 4, 4) != 0
            let offset = self.number(place + 16, 8)
            let length = kind == 1 ? self.number(place + 24, 8) : 0
            place += Self.recordSize
            // The last record may have been cut off with the program.
            guard length <= self.data.count - place else { break }
            switch kind {
            case 1:
                self.changes.append(
                    .write(
                        offset: offset, bytes: place..<place + length,
                        isSynchronous: isSynchronous))
            case 2: self.changes.append(.sync)
            case 3: self.changes.append(.truncate(offset))
            default: self.changes.append(.failedSync)
            }
            place += length
        }
    }

    private func number(_ place: Int, _ width: Int) -> Int {
        var value: UInt64 = 0
        for index in (0..<width).reversed() {
            value = value << 8 | UInt64(self.data[place + index])
        }
        return Int(clamping: value)
    }
}

/// A disk that is losing its power: what is on it for sure, and what was on its way.
struct FailingDisk {
    private static let sector = 512

    let log: DiskLog
    /// What has been synchronised.
    private(set) var durable: [UInt8] = []
    /// Indices of changes that came after it.
    private(set) var pending: [Int] = []
    private var next = 0
    /// Decides what of a synchronisation that failed reached the disk.
    private var random: SplitMix64

    init(_ log: DiskLog, seed: UInt64) {
        self.log = log
        self.random = SplitMix64(seed: seed)
    }

    /// Goes on up to and without the change of this index.
    mutating func advance(to index: Int) {
        while self.next < min(index, self.log.changes.count) {
            Self.apply(self.log.changes[self.next], self.log.data, to: &self.current)
            switch self.log.changes[self.next] {
            case .write(_, _, let isSynchronous):
                self.pending.append(self.next)
                // O_DSYNC speaks of the bytes of this call alone.
                if isSynchronous {
                    Self.apply(self.log.changes[self.next], self.log.data, to: &self.durable)
                }
            case .truncate:
                self.pending.append(self.next)
            case .sync:
                for index in self.pending {
                    Self.apply(self.log.changes[index], self.log.data, to: &self.durable)
                }
                self.pending = []
            case .failedSync:
                // Pages that could not be written are clean afterwards, and no later
                // synchronisation knows of them: some reached the disk, the others never will.
                for index in self.pending where self.random.below(2) == 0 {
                    Self.apply(self.log.changes[index], self.log.data, to: &self.durable)
                }
                self.pending = []
            }
            self.next += 1
        }
    }

    /// What a reader finds who comes after no power failure at all.
    private(set) var current: [UInt8] = []

    /// What may be found after a power failure at this moment: some of what was on its way, in any
    /// order, a write torn between any two sectors.
    func afterPowerFailure(_ random: inout SplitMix64) -> [UInt8] {
        var image = self.durable
        let style = random.below(5)
        var chosen = self.pending
        switch style {
        case 0: chosen = []
        case 1: chosen = Array(chosen.suffix(1))
        case 2: chosen = Array(chosen.prefix(Int(random.below(UInt64(chosen.count + 1)))))
        default: chosen = chosen.filter { _ in random.below(2) == 0 }.shuffled(using: &random)
        }
        for index in chosen {
            guard case .write(let offset, let bytes, _) = self.log.changes[index], style == 4 else {
                Self.apply(self.log.changes[index], self.log.data, to: &image)
                continue
            }
            // Sector by sector, of the disk and not of the write.
            var place = 0
            while place < bytes.count {
                let count = min(
                    bytes.count - place, Self.sector - (offset + place) % Self.sector)
                if random.below(2) == 0 {
                    let start = bytes.lowerBound + place
                    Self.write(self.log.data, start..<start + count, at: offset + place, to: &image)
                }
                place += count
            }
        }
        return image
    }

    private static func apply(_ change: DiskLog.Change, _ data: Data, to image: inout [UInt8]) {
        switch change {
        case .write(let offset, let bytes, _): Self.write(data, bytes, at: offset, to: &image)
        case .truncate(let size): Self.resize(&image, size)
        case .sync, .failedSync: break
        }
    }

    private static func write(
        _ data: Data, _ bytes: Range<Int>, at offset: Int, to image: inout [UInt8]
    ) {
        if image.count < offset + bytes.count { Self.resize(&image, offset + bytes.count) }
        unsafe image.withUnsafeMutableBytes { image in
            unsafe data.withUnsafeBytes { data in
                guard let to = image.baseAddress, let from = data.baseAddress else {
                    return
                }
                unsafe (to + offset).copyMemory(
                    from: from + bytes.lowerBound, byteCount: bytes.count)
            }
        }
    }

    private static func resize(_ image: inout [UInt8], _ size: Int) {
        if size < image.count { image.removeLast(image.count - size) }
        if size > image.count {
            image.append(contentsOf: repeatElement(0, count: size - image.count))
        }
    }
}
