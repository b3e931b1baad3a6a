package import LarderHTTP
package import LarderPolicy
package import LarderStore

/// Where a disk store lies and what it may take.
package struct DiskConfiguration: Sendable {
    /// Made with mode 0700, parents too, where it does not exist.
    package var directory: String
    /// The bound of the cache file's size, from ``minimumCapacity`` to ``maximumCapacity``; whole pages of
    /// it are used.
    package var capacity: ByteCount
    /// Larger bodies are refused; never more than half of the capacity.
    package var maximumObject: ByteCount
    /// Threads that read from the disk.
    package var readerThreads: Int
    /// Bytes of bodies that wait for the writer, over all sinks; beyond it a sink is abandoned as
    /// too slow.
    ///
    /// Enough for sixty-four fetches with a whole window of 2 MiB each on its way.
    package var outstanding: ByteCount
    /// Bodies up to this size are read together with their head.
    package var bodyWithHead: ByteCount
    /// Bytes of the file's map that may become resident in this process before they are given back
    /// to the kernel's page cache.
    package var residentBound: ByteCount
    /// For how long nothing is stored after the disk failed or was full.
    package var retryInterval: Duration
    /// The longest time for which the first use of a response stays in memory alone; later ones do
    /// for a minute.
    package var useFlushInterval: Duration
    /// What is stored at its first request.
    package var admission: AdmissionRules
    /// Slots for readers, over all processes that look into the file.
    package var maximumReaders: UInt32
    /// Says of what is in memory that it is not, so that tests need not empty the page cache; nil
    /// leaves it to the kernel.
    var isResident: (@Sendable (ReadPlace) -> Bool)?
    /// How long a removal that a full file refuses is tried again before it is acknowledged all the same.
    var owingPatience = Duration.seconds(2)
    /// Keys for which ``StoredKeys`` has room at the least: 32 KiB; 0: it knows of none, so that tests
    /// have every look-up ask the file.
    var fewestKeys: UInt64 = 16_384
    /// How long one step of taking back room may take.
    var reclaimTime = Duration.milliseconds(3)
    /// How long commands gather after each batch where nobody waits for them, so that tests find out
    /// whether somebody does; nil leaves it to ``CommitPacing``.
    var pause: Duration?

    package static let minimumCapacity = ByteCount.mebibytes(1)
    /// An eighth of what a process has addresses for on x86-64 (47 bits): each file is mapped whole, that
    /// into which another is compacted beside it, so that a few of them have room; and the largest file
    /// of ext4.
    package static let maximumCapacity = ByteCount.gibibytes(16 << 10)
    /// Slots for the threads of a usual program, and for others that look into the file.
    package static let usualReaders: UInt32 = 126

    /// Slots where so many event loops read in place: two for each, as one may be reading when it asks
    /// again, and 64 for all others.
    package static func readers(eventLoops: Int) -> UInt32 {
        UInt32(clamping: max(Int(Self.usualReaders), 2 * min(max(0, eventLoops), 1 << 16) + 64))
    }

    package init(
        directory: String, capacity: ByteCount,
        maximumObject: ByteCount = .gibibytes(1 << 30), readerThreads: Int = 2,
        outstanding: ByteCount = .mebibytes(128), bodyWithHead: ByteCount = .kibibytes(32),
        residentBound: ByteCount = .mebibytes(32),
        retryInterval: Duration = .seconds(10), useFlushInterval: Duration = .seconds(1),
        maximumReaders: UInt32 = Self.usualReaders, admission: AdmissionRules = AdmissionRules()
    ) {
        self.directory = directory
        self.capacity = capacity
        self.maximumObject = maximumObject
        self.readerThreads = readerThreads
        self.outstanding = outstanding
        self.bodyWithHead = bodyWithHead
        self.residentBound = residentBound
        self.retryInterval = retryInterval
        self.useFlushInterval = useFlushInterval
        self.maximumReaders = maximumReaders
        self.admission = admission
    }

    var objectLimit: UInt64 { min(self.maximumObject.bytes, self.capacity.bytes / 2) }

    /// Bytes that one write transaction takes at most.
    ///
    /// Pages that a transaction frees can be used again by the next but one, so three of them must
    /// fit into what eviction keeps free: see ``DiskMarks``.
    var batchLimit: Int {
        ByteCount(min(8 << 20, max(UInt64(Segment.valueSize), self.capacity.bytes / 32))).clamped
    }
}

/// What a disk store has to say, each thing once: to a person, but for what tells what happens now in a
/// trouble that a person knows of (``failedAgain(_:)``, ``recovered``).
package enum DiskEvent: Sendable, Equatable {
    /// The file could not be used, was renamed to `name`, and a new one was made.
    case setAside(name: String, reason: String)
    /// The file held what had been removed, and was taken away; a new one was made.
    case discarded(reason: String)
    /// A file that had been set aside was removed, to keep their number small.
    case asideRemoved(name: String, bytes: UInt64)
    /// The file was deleted or replaced while it was in use, and a new one was made.
    case lost(reason: String)
    /// The file was larger than the capacity, and has been made smaller.
    case shrunk(CompactionReport)
    /// The file is larger than the capacity and could not be made smaller; it is tried again later.
    case notShrunk(StoreError)
    /// The file system has no room for a larger file, whatever the capacity: new responses take the place
    /// of old ones.
    ///
    /// Told once an hour at most, while that goes on.
    case full(StoreError)
    /// An entry was dropped because what the disk gave back is not what was written.
    case damaged(key: CacheKey?, reason: String)
    /// Nothing is stored until later: a trouble begins.
    case failed(StoreError)
    /// Nothing is stored until later, once more: the trouble is not over, though it stored in between.
    case failedAgain(StoreError)
    /// It stores again; whether that lasts will be seen.
    case recovered
    /// It has stored again for so long that the trouble is over.
    case settled
    /// It could not be opened when its session began, and is open now.
    case opened
    /// What was removed may come back with the next process: it could not be written down anywhere.
    case removalNotKept(StoreError)
}
