import CLMDB
import Glibc
import Synchronization

/// Whether a walk through a tree may wait for the disk.
enum Waiting {
    case allowed
    /// Ask before each page whether it is in memory.
    case forbidden
}

/// LMDB's map of its file, lent page by page and never beyond the file.
///
/// The map is LMDB's own, so that a page costs one page table entry in a process. What is lent is
/// valid for as long as the environment is in use.
@safe final class PageMap: Sendable {
    let pageSize: Int
    /// LMDB's own descriptor: "it should be treated as opaque", so it is read from and never
    /// closed.
    let descriptor: Int32
    /// Where the map begins and how far it reaches; both change only while nobody uses the map.
    private let start: Atomic<UInt>
    private let count: Atomic<UInt>
    /// The file's size when it was last asked for.
    private let fileSize = Atomic<UInt64>(0)
    /// The places of the map and of the lock file's in the table of ``MapGuard``.
    private let guarded = Atomic<Int32>(-1)
    private let guardedLock = Atomic<Int32>(-1)
    /// Pages of trees that are asked for all the time.
    private let often = FrequentPages()
    /// Whether the file system knows RWF_NOWAIT.
    private let knowsNoWait = Atomic<Bool>(true)

    /// The map of an environment that was just opened; ``release()`` must end it.
    @unsafe convenience init(
        _ handle: OpaquePointer, _ identity: FileIdentity, lock: FileIdentity?
    ) throws(LMDBError) {
        let descriptor = try unsafe Environment.descriptor(of: handle)
        var statistics = MDB_stat()
        try unsafe LMDBError.check(mdb_env_stat(handle, &statistics), "mdb_env_stat")
        let map = try MapFinder.map(of: identity)
        self.init(map: map, pageSize: Int(statistics.ms_psize), descriptor: descriptor)
        self.guarded.store(try MapGuard.add(map, isWritable: false), ordering: .releasing)
        // The table of readers, which LMDB writes to, can be cut short as well.
        guard let lock, let range = MapFinder.find(lock) else { return }
        do throws(LMDBError) {
            self.guardedLock.store(
                try MapGuard.add(range, isWritable: true), ordering: .releasing)
        } catch {
            self.release()
            throw error
        }
    }

    /// Ends the guarding, before the map ends.
    func release() {
        MapGuard.remove(self.guarded.exchange(-1, ordering: .acquiringAndReleasing))
        MapGuard.remove(self.guardedLock.exchange(-1, ordering: .acquiringAndReleasing))
    }

    /// Whether some page could not be read; it reads as zeros since.
    var hasFaulted: Bool {
        MapGuard.faults(self.guarded.load(ordering: .acquiring)) > 0
            || MapGuard.faults(self.guardedLock.load(ordering: .acquiring)) > 0
    }

    init(map: Range<UInt>, pageSize: Int, descriptor: Int32) {
        self.start = Atomic(map.lowerBound)
        self.count = Atomic(map.upperBound &- map.lowerBound)
        self.pageSize = pageSize
        self.descriptor = descriptor
    }

    /// Takes over where the map lies after it was made anew.
    func move(to map: Range<UInt>) throws(LMDBError) {
        let slot = try MapGuard.add(map, isWritable: false)
        MapGuard.remove(self.guarded.exchange(slot, ordering: .acquiringAndReleasing))
        self.start.store(map.lowerBound, ordering: .releasing)
        self.count.store(map.upperBound &- map.lowerBound, ordering: .releasing)
    }

    var range: Range<UInt> {
        let start = self.start.load(ordering: .acquiring)
        let (end, overflow) = start.addingReportingOverflow(self.count.load(ordering: .acquiring))
        return overflow ? start..<start : start..<end
    }

    /// `count` bytes from the beginning of page `number`: never beyond the map or the file.
    ///
    /// A file that is cut short after this was asked is the affair of ``MapGuard``.
    @unsafe @inline(__always)
    func bytes(
        ofPage number: UInt64, count: Int, lastPage: UInt64
    ) throws(TreeFailure) -> UnsafeBufferPointer<UInt8> {
        guard number <= lastPage, count >= 0 else {
            throw .damaged(page: number, .outside)
        }
        // Below 2^63: lastPage was checked with the meta page that it comes from.
        let offset = number &* UInt64(self.pageSize)
        let end = offset &+ UInt64(count)
        guard end <= UInt64(self.count.load(ordering: .relaxed)) else {
            throw .damaged(page: number, .outside)
        }
        if end > self.fileSize.load(ordering: .relaxed), end > self.askFileSize() {
            throw .damaged(page: number, .cutShort)
        }
        let address = self.start.load(ordering: .relaxed) &+ UInt(offset)
        return unsafe UnsafeBufferPointer(
            start: UnsafePointer<UInt8>(bitPattern: address), count: count)
    }

    /// One page.
    @unsafe @inline(__always)
    func page(_ number: UInt64, lastPage: UInt64) throws(TreeFailure) -> UnsafeBufferPointer<UInt8>
    {
        try unsafe self.bytes(ofPage: number, count: self.pageSize, lastPage: lastPage)
    }

    /// Throws where `count` bytes from an address in the map reach beyond it or the file, or are
    /// not those of overflow pages where they should be; other addresses are not the map's affair.
    func check(address: UInt, count: Int) throws(TreeFailure) {
        let start = self.start.load(ordering: .relaxed)
        guard address >= start, address &- start < self.count.load(ordering: .relaxed) else {
            return
        }
        let number = UInt64(address &- start) / UInt64(self.pageSize)
        let within = Int(UInt64(address &- start) % UInt64(self.pageSize))
        let bytes = try unsafe self.bytes(
            ofPage: number, count: within &+ max(0, count), lastPage: number)
        // A node's value lies behind the node's header and its key.
        guard within == PageFormat.headerSize else { return }
        guard let header = PageHeader(unsafe bytes.span), header.number == number else {
            throw .damaged(page: number, .number)
        }
        let pages = PageFormat.overflowPages(UInt64(count), pageSize: self.pageSize)
        guard header.flags == PageFormat.overflowFlag, header.overflowCount >= pages else {
            throw .damaged(page: number, .overflow)
        }
    }

    /// The size of the file now; 0 where that cannot be told.
    @discardableResult
    func askFileSize() -> UInt64 {
        self.askFile().map { UInt64(clamping: $0.st_size) } ?? 0
    }

    /// When the file was last written to; nil where that cannot be told.
    func askStamp() -> FileStamp? { self.askFile().map { FileStamp($0) } }

    private func askFile() -> stat? {
        var status = stat()
        guard unsafe fstat(self.descriptor, &status) == 0 else { return nil }
        self.fileSize.store(UInt64(clamping: status.st_size), ordering: .relaxed)
        return status
    }

    // MARK: Residency

    /// Whether touching these bytes would not wait for the disk.
    ///
    /// mincore(2): the pages of the file are looked for in the page cache, whether or not this
    /// process has them mapped. It tells the truth to the file's owner and to whoever may write it
    /// (Linux 5.2 and later), and says "resident" to others.
    func isResident(page number: UInt64, count: Int) -> Bool {
        let offset = UInt(clamping: number) &* UInt(self.pageSize)
        let systemPage = Self.systemPage
        let first = (self.start.load(ordering: .relaxed) &+ offset) & ~(systemPage &- 1)
        var address = first
        let end = self.start.load(ordering: .relaxed) &+ offset &+ UInt(max(0, count))
        var states = InlineArray<64, UInt8>(repeating: 0)
        while address < end {
            let length = min(end &- address, 64 &* systemPage)
            let pages = Int((length &+ systemPage &- 1) / systemPage)
            var span = states.mutableSpan
            let code = unsafe span.withUnsafeMutableBufferPointer { buffer in
                unsafe mincore(
                    UnsafeMutableRawPointer(bitPattern: address), Int(length), buffer.baseAddress)
            }
            guard code == 0 else { return false }
            for i in 0..<pages where states[i] & 1 == 0 { return false }
            address &+= length
        }
        return true
    }

    /// Whether a page of a tree is one of the few that are asked for all the time: in memory, and
    /// worth its place in this process.
    func isOftenUsed(_ number: UInt64) -> Bool {
        switch self.often.ask(for: number) {
        case .often: return true
        case .rarely: return false
        case .candidate:
            guard self.isResident(page: number, count: self.pageSize) else { return false }
            return self.often.take(number)
        }
    }

    /// To be called after a commit of this process's.
    func committed() { self.often.committed() }

    /// How many pages became such since this was last asked.
    func takeNewOftenUsed() -> Int { self.often.takeNew() }

    private static let systemPage: UInt = {
        let size = sysconf(Int32(_SC_PAGESIZE))
        return size > 0 ? UInt(size) : 4096
    }()

    // MARK: Reading past the map

    /// Reads bytes of the file by the descriptor; fewer only at the end of the file, nil where it
    /// would have to wait and must not.
    ///
    /// So a body's bytes go from the page cache to where they are wanted: the map's page tables do
    /// not grow, and what the disk cannot give is EIO and not a signal.
    @unsafe func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, waits: Bool
    ) throws(LMDBError) -> Int? {
        // Nothing lies where the system's offsets end.
        guard offset < UInt64(off_t.max) &- UInt64(buffer.count) else { return 0 }
        var done = 0
        while done < buffer.count {
            let place = off_t(offset) &+ off_t(done)
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let got = unsafe self.readOnce(at: place, into: rest, waits: waits)
            if got > 0 {
                done += got
                continue
            }
            if got == 0 { return done }
            switch errno {
            case EINTR: continue
            case EAGAIN where !waits: return nil
            case EOPNOTSUPP where !waits, ENOSYS where !waits:
                guard self.knowsNoWait.exchange(false, ordering: .relaxed) else { return nil }
            default: throw LMDBError(returnCode: errno, operation: "preadv2")
            }
        }
        return done
    }

    @unsafe private func readOnce(
        at place: off_t, into buffer: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> Int {
        if waits {
            return unsafe pread(self.descriptor, buffer.baseAddress, buffer.count, place)
        }
        guard self.knowsNoWait.load(ordering: .relaxed) else {
            // The file system (tmpfs, some network ones) cannot be asked: the page cache is, and
            // what it says is true for long enough.
            let page = UInt64(clamping: place) / UInt64(self.pageSize)
            let within = Int(clamping: UInt64(clamping: place) % UInt64(self.pageSize))
            let end = UInt64(clamping: place) &+ UInt64(buffer.count)
            let mapped = UInt64(self.count.load(ordering: .relaxed))
            guard end <= mapped, self.isResident(page: page, count: within + buffer.count) else {
                errno = EAGAIN
                return -1
            }
            return unsafe pread(self.descriptor, buffer.baseAddress, buffer.count, place)
        }
        var vector = unsafe iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
        return unsafe preadv2(self.descriptor, &vector, 1, place, larder_rwf_nowait)
    }
}
