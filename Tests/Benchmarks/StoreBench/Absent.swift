import Glibc
import LarderDisk
import LarderHTTP
import LarderLMDB
import LarderStore

extension StoreBench {
    /// Asks for what is not there with an empty page cache, then looks which pages of the file came
    /// into it.
    ///
    /// Reading ahead is switched off for the file, so that a page is there only if it was touched.
    static func lookupAbsent(_ options: Options) async throws {
        dropCaches()
        let store = try openStore(options)
        let path = options.directory + "/cache.mdb"
        let file = try CacheFile(path)
        file.adviseRandomAccess()
        _ = await lookup(store, Responses().key(1 << 60))
        file.dropPages()
        let before = Usage()
        for turn in 0..<options.objects {
            let found = await lookup(store, Responses().key(1 << 60 + turn))
            if !found.isEmpty { throw UsageError(message: "something absent was found") }
        }
        let used = Usage().since(before)
        let kinds = file.residentPages()
        let share = 1e6 / Double(max(1, options.objects))
        print(
            "\(options.objects) absent keys: \((used.processor * share).text(1)) "
                + "µs CPU each, \((used.wall * share).text(1)) µs wall; "
                + "pages touched: meta \(kinds.meta), branch \(kinds.branch), leaf \(kinds.leaf), "
                + "of bodies \(kinds.other)")
        await close(store)
        if kinds.other > 0 { throw UsageError(message: "pages of bodies were touched") }
    }
}

/// The file of a cache, mapped once more to see what of it lies in the page cache.
@safe struct CacheFile {
    struct Kinds {
        var meta = 0
        var branch = 0
        var leaf = 0
        /// Pages without a header of LMDB's trees: those of values.
        var other = 0
    }

    private let descriptor: Int32
    private let size: Int
    private let address: UnsafeMutableRawPointer
    private static let pageSize = 4096

    init(_ path: String) throws {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, unsafe fstat(descriptor, &status) == 0, status.st_size > 0,
            let address = unsafe mmap(
                nil, Int(status.st_size), PROT_READ, MAP_SHARED, descriptor, 0),
            unsafe address != MAP_FAILED
        else { throw UsageError(message: "\(path) cannot be mapped") }
        self.descriptor = descriptor
        self.size = Int(status.st_size)
        unsafe self.address = address
    }

    /// Switches reading ahead off, for every map of the file: the store's own is the one that counts.
    func adviseRandomAccess() { Self.advise(MADV_RANDOM) }

    func dropPages() {
        Self.advise(MADV_DONTNEED)
        _ = posix_fadvise(self.descriptor, 0, 0, POSIX_FADV_DONTNEED)
    }

    private static func advise(_ advice: Int32) {
        for line in lines("/proc/self/maps") where line.hasSuffix("/cache.mdb") {
            let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap {
                UInt($0, radix: 16)
            }
            guard ends.count == 2, let start = unsafe UnsafeMutableRawPointer(bitPattern: ends[0])
            else { continue }
            _ = unsafe madvise(start, Int(ends[1] - ends[0]), advice)
        }
    }

    /// Which pages lie in the page cache, by what they are.
    func residentPages() -> Kinds {
        let count = (self.size + Self.pageSize - 1) / Self.pageSize
        var states = [UInt8](repeating: 0, count: count)
        var kinds = Kinds()
        guard unsafe mincore(self.address, self.size, &states) == 0 else { return kinds }
        for (index, state) in states.enumerated() where state & 1 != 0 {
            let page = unsafe self.address + index * Self.pageSize
            let number = unsafe page.loadUnaligned(as: UInt64.self)
            let flags = unsafe page.loadUnaligned(fromByteOffset: 10, as: UInt16.self)
            switch (number == UInt64(index), flags) {
            case (true, 0x08): kinds.meta += 1
            case (true, 0x01): kinds.branch += 1
            case (true, 0x02): kinds.leaf += 1
            default: kinds.other += 1
            }
        }
        return kinds
    }
}
