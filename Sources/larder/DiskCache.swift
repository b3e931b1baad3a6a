import LarderConfig
import LarderControl
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore

/// A session's cache on disk, read from its file.
final class DiskCache: CacheReading {
    /// Opened for every look, and not held: a file may be open once in a process, and a purge
    /// opens it to write.
    private var inspector: DiskInspector {
        get throws(StoreError) { try DiskInspector(directory: self.directory) }
    }
    private let directory: String
    private let session: SessionSettings
    private let policy: PolicyConfiguration
    /// Whose responses are looked up by URL; a listing is of all.
    ///
    /// nil: those of anybody.
    private let principal: String?
    /// What `objects` has found, by name, for `readBody`.
    ///
    /// Looking for the URL again takes a decoding of all its variants for the body of each.
    private var found: [UInt64: InspectedObject] = [:]

    /// Opens the cache for looking; nil where there is none yet.
    ///
    /// - Parameter policy: what freshness is reckoned by; that of the session without cache rules
    ///   where nil.
    init?(
        directory: String, session: SessionSettings, policy: PolicyConfiguration? = nil,
        principal: String? = nil
    ) throws(CommandFailure) {
        do throws(StoreError) {
            _ = try DiskInspector(directory: directory)
        } catch {
            if error.code == .missing { return nil }
            throw CommandFailure(store: error)
        }
        self.directory = directory
        self.session = session
        self.policy = policy ?? session.policy
        self.principal = principal
    }

    func forEach(
        _ filter: ListFilter, step: (Int) throws -> Void, _ body: (StoredRow) throws -> Bool
    ) throws {
        let now = Timestamp(microseconds: wallClockMicroseconds())
        try self.translating {
            let inspector = try self.inspector
            let invalidation = try Interruption.held { () throws(StoreError) in
                try inspector.groupInvalidations(now: now)
            }
            var place: ListingPlace? = .start
            while let here = place {
                let found = try Interruption.held { () throws(StoreError) in
                    try inspector.list(from: here, where: filter.mayMatch)
                }
                for object in found.objects {
                    let row = self.row(object, at: now, invalidation)
                    guard filter.matches(row) else { continue }
                    let stored = object.head.storedTime.microseconds
                    guard try body(StoredRow(row: row, storedMicroseconds: stored)) else { return }
                }
                try step(found.walked)
                place = found.next
            }
        }
    }

    private func row(
        _ object: InspectedObject, at now: Timestamp, _ invalidation: ([UInt8]) -> Timestamp?
    ) -> CacheRow {
        let freshness = self.freshness(of: object.head, object.key, at: now)
        let (partition, method, uri) = object.key.parts
        let url = object.head.pathAndQuery == nil ? uri : object.key.url(of: object.head)
        let isInvalidated =
            object.head.isInvalidated
            || CacheGroups.isInvalidated(object.head) { group in
                TargetURI(text: url).flatMap {
                    invalidation(CacheGroups.name(of: group, at: $0, partition: partition))
                }
            }
        let remaining = freshness.remainingMilliseconds
        return CacheRow(
            id: object.id.rawValue, partition: partition, method: method, url: url,
            status: Int(object.head.status.rawValue), bytes: object.bodyLength,
            ageMilliseconds: freshness.currentAgeMilliseconds,
            freshForMilliseconds: isInvalidated ? min(0, remaining) : remaining,
            hits: object.hits, lastUsedMicroseconds: object.lastUsed.microseconds, tier: .disk,
            partial: CachePartial(object), variant: object.head.cacheVariant)
    }

    func objects(for url: String) throws -> [CacheObject] {
        let now = Timestamp(microseconds: wallClockMicroseconds())
        let objects = try self.variants(of: url)
        for object in objects { self.found[object.id.rawValue] = object }
        return objects.map { self.object($0, at: now) }
    }

    func heads(
        for uri: TargetURI, principal: String = ""
    ) throws -> [(head: StoredHead, bodyLength: UInt64)] {
        try self.variants(of: uri, principal: principal).map { ($0.head, $0.bodyLength) }
    }

    func readBody(of object: CacheObject, _ piece: ([UInt8]) throws -> Void) throws {
        try self.translating {
            let removed = CommandFailure(.nothingFound, "\(object.url) was removed meanwhile")
            guard let found = self.found[object.id] else { throw removed }
            do {
                try self.inspector.readBody(of: found) { span in
                    try piece(span.indices.map { span[$0] })
                }
            } catch let error as StoreError where error.code == .closed {
                throw removed
            }
        }
    }

    func figures() throws -> CacheFigures {
        try self.translating {
            let figures = try self.inspector.statistics()
            return CacheFigures(
                objects: figures.objects, bodyBytes: figures.bodyBytes,
                usedBytes: figures.usedBytes,
                fileBytes: figures.fileBytes, capacityBytes: self.session.cache.disk.bytes,
                hits: figures.hits, evictions: figures.evictions, damaged: figures.damaged,
                failures: figures.failures, pending: figures.pending, garbage: figures.garbage,
                writer: figures.writer,
                freeBytes: figures.fileBytes > figures.usedBytes
                    ? figures.fileBytes - figures.usedBytes : 0)
        }
    }

    func purge(_ selection: CacheSelection, principal: String? = nil) async throws -> Int {
        let filter = try PurgeFilter(selection, principal: principal)
        let store = try DiskStore.openHere(in: self.directory, for: self.session)
        let removed = await filter.purge(store)
        // What the disk has refused is tried once more at the end.
        await store.close()
        if let unkept = store.unkeptRemoval { throw unkept }
        return removed
    }

    func compact(_ progress: @escaping @Sendable (UInt64) -> Void) async throws -> CompactionReport
    {
        let store = try DiskStore.openHere(in: self.directory, for: self.session)
        let result = await withCheckedContinuation { done in
            store.compact(progress: { bytes, _ in progress(bytes) }) { done.resume(returning: $0) }
        }
        await store.close()
        return try self.translating { try result.get() }
    }
}

extension DiskCache {
    private func variants(of url: String) throws -> [InspectedObject] {
        guard let uri = TargetURI(text: url) else {
            throw CommandFailure(
                .data, "\"\(url)\" is no URL", remedy: "one begins with http://, https:// or ftp://"
            )
        }
        if let principal = self.principal {
            return try self.variants(of: uri, principal: principal)
        }
        let found = try self.variants(of: uri, principal: "")
        return found.isEmpty ? try self.variantsOfAll(of: uri) : found
    }

    /// What principals have stored of a URI, where a session is split by them: takes a walk through
    /// the whole file.
    private func variantsOfAll(of uri: TargetURI) throws -> [InspectedObject] {
        try self.translating {
            let inspector = try self.inspector
            var found: [InspectedObject] = []
            var place: ListingPlace? = .start
            while let here = place {
                let step = try Interruption.held { () throws(StoreError) in
                    try inspector.list(from: here) { $0.key.isOfPrincipal }
                }
                found += step.objects.filter {
                    $0.key.isAbout(uri) && (!$0.key.leavesOutSearch || $0.head.answers(uri))
                }
                place = step.next
            }
            return try self.judged(found, at: uri, inspector)
        }
    }

    /// What may answer a URI, marked as invalid where one of its groups has been invalidated.
    private func variants(
        of uri: TargetURI, principal: String
    ) throws -> [InspectedObject] {
        try self.translating {
            let key = CacheKey(
                method: .get, uri: uri, partition: CacheKey.partition(of: principal))
            let inspector = try self.inspector
            let exact = try inspector.objects(for: key)
            // What answers several queries lies where the query does not count.
            let others = try inspector.objects(for: key.withoutSearch).filter {
                $0.head.answers(uri)
            }
            return try self.judged(exact + others, at: uri, inspector)
        }
    }

    private func judged(
        _ objects: [InspectedObject], at uri: TargetURI, _ inspector: DiskInspector
    ) throws(StoreError) -> [InspectedObject] {
        let now = Timestamp(microseconds: wallClockMicroseconds())
        let invalidation = try inspector.groupInvalidations(now: now)
        return objects.map { object in
            var object = object
            let isInvalidated = CacheGroups.isInvalidated(object.head) { group in
                invalidation(
                    CacheGroups.name(of: group, at: uri, partition: object.key.parts.partition))
            }
            if isInvalidated { object.head.isInvalidated = true }
            return object
        }
    }

    private func object(_ object: InspectedObject, at now: Timestamp) -> CacheObject {
        let head = object.head
        let (partition, method, _) = object.key.parts
        return CacheObject(
            id: object.id.rawValue, partition: partition, method: method,
            url: object.key.url(of: head),
            variant: head.cacheVariant, status: Int(head.status.rawValue), reason: head.reason,
            fields: head.fields.pairs.map { CacheField(name: $0.name, value: $0.value) },
            trailers: object.trailers.pairs.map { CacheField(name: $0.name, value: $0.value) },
            requestTimeMicroseconds: head.requestTime.microseconds,
            responseTimeMicroseconds: head.responseTime.microseconds,
            storedTimeMicroseconds: head.storedTime.microseconds,
            lastUsedMicroseconds: object.lastUsed.microseconds,
            freshness: self.freshness(of: head, object.key, at: now),
            isInvalidated: head.isInvalidated, bodyBytes: object.bodyLength,
            partial: CachePartial(object), hits: object.hits, tier: .disk, sha256: nil)
    }

    private func freshness(
        of head: StoredHead, _ key: CacheKey, at now: Timestamp
    ) -> CacheObject.Freshness {
        let freshness = Freshness.of(
            head, at: now, configuration: self.policy.resolved(forKey: key))
        return CacheObject.Freshness(
            lifetimeMilliseconds: freshness.lifetime.inMicroseconds / 1000,
            source: freshness.source.rawValue,
            currentAgeMilliseconds: freshness.currentAge.inMicroseconds / 1000)
    }

    /// Turns the store's failures into the command's.
    private func translating<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError {
            throw CommandFailure(store: error)
        }
    }
}

extension CacheKey {
    /// Whether a principal owns it: then it does not begin with the space.
    fileprivate var isOfPrincipal: Bool { self.bytes.first != UInt8(ascii: " ") }
}

extension CachePartial {
    /// nil where the response is complete.
    fileprivate init?(_ object: InspectedObject) {
        guard let extent = object.head.extent else { return nil }
        self.init(
            ranges: extent.ranges.map { CacheRange(first: $0.lowerBound, last: $0.upperBound - 1) },
            storedBytes: object.storedBytes, completeLength: extent.completeLength)
    }
}

extension CommandFailure {
    init(store error: StoreError) {
        let status: ExitStatus =
            switch error.code {
            case .inUse, .closed, .cancelled: .unavailable
            case .missing: .nothingFound
            case .notWritable, .untrusted: .notPermitted
            case .noSpace: .cannotCreate
            case .damaged, .incomplete: .data
            case .invalidConfiguration: .configuration
            case .failed: .inputOutput
            }
        self.init(status, "\(error.path): \(error.cause)", remedy: error.remedy)
        // It was not found as the proxy of this configuration.
        if case .inUse = error.code {
            self.remedy =
                "if that is a proxy, give the --config or --system that it was started with; else stop "
                + "it, or name another directory"
        }
    }
}

extension StoredHead {
    fileprivate var cacheVariant: [CacheField] {
        self.variant.map { CacheField(name: $0.name, value: $0.value) }
    }
}
