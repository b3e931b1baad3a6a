import LarderConfig
import LarderControl

/// What both tiers of a session hold, seen as one: every stored response once.
///
/// Memory first, of which the running proxy tells, then the disk, read by this process. Of what is in
/// both only the name on disk and the number of hits are held meanwhile, sixteen bytes each.
struct CacheListing {
    let view: CacheView
    let filter: ListFilter

    /// Calls `body` with each row that fits, until it answers false.
    ///
    /// - Parameter step: called now and then with how many responses were come by since.
    func forEach(
        step: (Int) throws -> Void, _ body: (CacheRow) throws -> Bool
    ) throws {
        guard let disk = self.view.disk, self.filter.tier != .memory else {
            _ = try self.forEachInMemory(copiesInFull: true, step: step) { object in
                try body(CacheRow(object))
            }
            return
        }
        var both = ResidentTable()
        let goesOn = try self.forEachInMemory(
            copiesInFull: false, step: step, copies: { both.add($0) }
        ) { object in
            both.addLanding(object)
            return self.filter.tier == .disk ? true : try body(CacheRow(object))
        }
        guard goesOn else { return }
        both.settle()
        var onDisk = self.filter
        onDisk.tier = nil
        try disk.forEach(onDisk, step: step) { stored in
            var row = stored.row
            // It came down while we read: it has been told of already.
            if self.filter.tier != .disk, both.hasLanded(stored) { return true }
            if let hits = both.hits(of: row.id) {
                row.tier = .both
                row.hits = max(row.hits, hits)
            }
            return try body(row)
        }
    }

    /// - Returns: false where `body` has heard enough.
    private func forEachInMemory(
        copiesInFull: Bool, step: (Int) throws -> Void,
        copies: (ResidentCopies) -> Void = { _ in }, _ body: (MemoryObject) throws -> Bool
    ) throws -> Bool {
        var goesOn = true
        let name = self.view.session.name.text
        try self.view.askIfServed(.listMemory(session: name, copiesInFull: copiesInFull)) { reply in
            switch reply {
            case .objects(let objects):
                for object in objects where goesOn && self.filter.matches(CacheRow(object)) {
                    goesOn = try body(object)
                }
                try step(objects.count)
            case .copies(let table): copies(table)
            default: break
            }
            return goesOn
        }
        return goesOn
    }
}

/// The names on disk of what lies in memory, too.
struct ResidentTable {
    private struct Copy {
        var id: UInt64
        var hits: UInt64
    }

    /// What the disk tier is about to have: it may have it by the time it is read.
    private struct Landing: Hashable {
        var url: String
        var storedMicroseconds: Int64
        var bytes: UInt64
    }

    private var copies: [Copy] = []
    private var landings: Set<Landing> = []

    mutating func add(_ copies: ResidentCopies) {
        for (id, hits) in zip(copies.ids, copies.hits) {
            self.copies.append(Copy(id: id, hits: hits))
        }
    }

    mutating func addLanding(_ object: MemoryObject) {
        guard let stored = object.landingMicroseconds else { return }
        self.landings.insert(
            Landing(url: object.url, storedMicroseconds: stored, bytes: object.bytes))
    }

    /// To be called once all are added.
    mutating func settle() { self.copies.sort { $0.id < $1.id } }

    func hasLanded(_ stored: StoredRow) -> Bool {
        guard !self.landings.isEmpty else { return false }
        return self.landings.contains(
            Landing(
                url: stored.row.url, storedMicroseconds: stored.storedMicroseconds,
                bytes: stored.row.bytes))
    }

    /// How often the copy in memory was used; nil where there is none.
    func hits(of id: UInt64) -> UInt64? {
        var low = 0
        var high = self.copies.count
        while low < high {
            let middle = low + (high - low) / 2
            if self.copies[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < self.copies.count && self.copies[low].id == id ? self.copies[low].hits : nil
    }
}

extension CachePartial {
    init(_ partial: PartialObject) {
        self.init(
            ranges: partial.ranges.map { CacheRange(first: $0.lowerBound, last: $0.upperBound) },
            storedBytes: partial.ranges.reduce(0) { sum, range in
                sum &+ (range.upperBound - range.lowerBound) &+ 1
            },
            completeLength: partial.completeLength)
    }
}

extension CacheRow {
    init(_ object: MemoryObject) {
        self.init(
            id: object.id, partition: object.partition, method: object.method, url: object.url,
            status: object.status, bytes: object.bytes, ageMilliseconds: object.ageMilliseconds,
            freshForMilliseconds: object.freshForMilliseconds, hits: object.hits,
            lastUsedMicroseconds: object.lastUsedMicroseconds ?? 0,
            tier: object.isOnDisk ? .both : .memory,
            partial: object.partial.map { CachePartial($0) },
            variant: (object.variant ?? []).map(CacheField.init))
    }
}
