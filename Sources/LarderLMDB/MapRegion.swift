import Glibc
import Synchronization

/// Where the map of an environment lies in this process's memory, found in /proc/self/maps.
///
/// LMDB tells nobody. Where the map is not found nothing is given back, and nothing else changes.
@safe struct MapRegion: Sendable, Equatable {
    let start: UInt
    let end: UInt

    /// The shared, read-only map of the file with this inode, of at least `size` bytes.
    static func find(inode: UInt64, size: UInt64) -> MapRegion? {
        guard let text = Self.readMaps() else { return nil }
        // proc_pid_maps(5): "address perms offset dev inode pathname".
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard words.count >= 5, words[1].elementsEqual("r--s".utf8),
                UInt64(String(decoding: words[4], as: UTF8.self)) == inode
            else { continue }
            let ends = words[0].split(separator: UInt8(ascii: "-")).map {
                UInt(String(decoding: $0, as: UTF8.self), radix: 16) ?? 0
            }
            guard ends.count == 2, ends[0] > 0, ends[1] > ends[0], ends[1] - ends[0] >= size else {
                continue
            }
            return MapRegion(start: ends[0], end: ends[1])
        }
        return nil
    }

    private static func readMaps() -> [UInt8]? {
        let descriptor = unsafe open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count == 0 ? text : nil }
            text += piece[..<count]
        }
    }

    /// Takes all pages of the map out of this process's memory; the kernel's page cache keeps them.
    ///
    /// madvise(2), `MADV_DONTNEED`, of a shared map of a file: later accesses are served "from the
    /// up-to-date contents of the underlying mapped file". The map is never written through
    /// (`MDB_WRITEMAP` is not used), so nothing is lost, and readers may be at work meanwhile.
    func release() {
        guard let address = unsafe UnsafeMutableRawPointer(bitPattern: self.start) else { return }
        // A failure costs memory, nothing else.
        _ = unsafe madvise(address, Int(clamping: self.end - self.start), MADV_DONTNEED)
    }
}

/// Keeps the map of an environment from counting as this process's memory, more and more of it.
///
/// What was read of a map is resident until it is given back: without this a process grows by all
/// that it ever reads, or that LMDB reads for it. How much one look brings in is the kernel's choice
/// (what lies around it in the page cache, 64 KiB up to 2 MiB), so looks are counted, and after
/// 64 of them the whole map is given back. Whatever is in use comes back by itself, for less than
/// a microsecond a page. Any thread may use it.
final class MapMemory: Sendable {
    /// What is done with the map, in looks: a step of a cursor, mostly, stays on the page where it was.
    static let step = 1
    static let look = 8
    static let commit = 64
    /// Few enough for the worst case: 64 looks at 2 MiB are 128 MiB.
    private static let most = 64 * look

    private let sum = Atomic(0)
    private let region = Mutex<MapRegion?>(nil)

    /// Says where the map is now; nil where that is not known.
    func moved(to region: MapRegion?) {
        self.region.withLock { $0 = region }
    }

    /// Notes what was done with the map, as one of the numbers above.
    ///
    /// Only while it is mapped.
    func note(_ looks: Int) {
        let sum = self.sum.wrappingAdd(looks, ordering: .relaxed).newValue
        guard sum >= Self.most else { return }
        self.sum.store(0, ordering: .relaxed)
        self.region.withLock { $0 }?.release()
    }
}
