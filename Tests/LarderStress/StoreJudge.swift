import Glibc
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// What a look at a whole cache found.
struct Findings: Sendable {
    var entries: [Int: Entry] = [:]
    var objections: [String] = []
    var events: [DiskEvent] = []
    var openingTime = Duration.zero
    var evictions: UInt64 = 0
    var fileBytes: UInt64 = 0
    /// Bytes of bodies that were read and compared.
    var bytes: UInt64 = 0
}

/// Opens a cache as a new process would, reads every byte of it, and closes it.
struct StoreJudge: Sendable {
    var directory: String
    var capacity: ByteCount

    /// - Throws: where the store cannot be opened.
    func look() async throws -> Findings {
        let events = Mutex<[DiskEvent]>([])
        var findings = Findings()
        let started = ContinuousClock.now
        let store = try Self.open(self.directory, self.capacity) { event in
            events.withLock { $0.append(event) }
        }
        findings.openingTime = ContinuousClock.now - started
        do {
            try await self.look(into: store, &findings)
        } catch {
            findings.objections.append("\(error)")
        }
        await store.closed()
        findings.events = events.withLock { $0 }
        for event in findings.events {
            if case .damaged(let key, let reason) = event {
                findings.objections.append("damaged: \(key.map { "\($0)" } ?? "?"): \(reason)")
            }
        }
        return findings
    }

    private static func now() -> Timestamp {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(
            microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }

    static func open(
        _ directory: String, _ capacity: ByteCount,
        _ report: @escaping @Sendable (DiskEvent) -> Void
    ) throws -> DiskStore {
        var configuration = DiskConfiguration(directory: directory, capacity: capacity)
        configuration.retryInterval = .milliseconds(2)
        configuration.useFlushInterval = .milliseconds(20)
        return try DiskStore.open(
            configuration, clock: Self.now, report: report)
    }

    private func look(into store: DiskStore, _ findings: inout Findings) async throws {
        let inspector = try DiskInspector(directory: self.directory)
        var keys: [CacheKey] = []
        try inspector.forEachObject { object in
            keys.append(object.key)
            return true
        }
        let statistics = try inspector.statistics()
        findings.evictions = statistics.evictions
        findings.fileBytes = statistics.fileBytes
        if statistics.fileBytes > self.capacity.bytes {
            findings.objections.append("the file has \(statistics.fileBytes) bytes")
        }
        for cacheKey in keys {
            guard let key = Content.number(of: cacheKey) else {
                findings.objections.append("a key of no one's: \(cacheKey)")
                continue
            }
            let objects = await store.found(cacheKey)
            // With eviction at work it may have gone since it was listed.
            guard let object = objects.first else { continue }
            guard objects.count == 1, findings.entries[key] == nil,
                let entry = Entry(object.head, of: key)
            else {
                findings.objections.append("/\(key): \(objects.count) responses, or a wrong head")
                continue
            }
            findings.entries[key] = entry
            if let objection = await objection(to: object, key, entry) {
                findings.objections.append(objection)
            }
            findings.bytes += (entry.ranges ?? [0..<object.bodyLength]).reduce(0) {
                $0 + ($1.upperBound - $1.lowerBound)
            }
        }
    }
}
