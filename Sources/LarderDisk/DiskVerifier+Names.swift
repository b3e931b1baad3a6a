import LarderLMDB
import LarderPolicy
import LarderStore

// What the small tables say: the queue of eviction, the bodies being written or deleted, the sums.
extension DiskVerifier {
    private static let numbersPerStep = 256

    /// No entry of a round may be named among the bodies that are being written or deleted.
    ///
    /// - Parameter entries: in the order of their ids.
    func checkNames(among entries: [Expected]) throws {
        let schema = self.inspector.schema
        for table in [schema.pending, schema.garbage] {
            var place: [UInt8] = []
            while let (numbers, last) = try self.numbers(in: table, after: place) {
                for number in numbers {
                    let index = entries.partitioningIndex { $0.key.id.rawValue >= number }
                    guard index < entries.count, entries[index].key.id.rawValue == number else {
                        continue
                    }
                    try self.look(againAtName: entries[index].key)
                }
                place = last
            }
        }
    }

    private func look(againAtName key: ObjectKey) throws {
        let schema = self.inspector.schema
        let named: CacheKey? = try self.inspector.read { (transaction) throws(LMDBError) in
            guard try schema.isNamed(key.id, transaction),
                case .success(let record)? = try schema.judgedRecord(key, transaction)
            else { return nil }
            return record.key
        }
        guard let named else {
            self.state.changed += 1
            return
        }
        try self.report(
            DiskDamage(.named, key), of: named, "is named among the bodies that are not entries")
    }

    /// A bounded number of keys that are numbers behind `place`; nil where there are none.
    private func numbers(
        in table: Database, after place: [UInt8]
    ) throws -> ([UInt64], [UInt8])? {
        try self.inspector.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(table) { (cursor) throws(LMDBError) in
                var numbers: [UInt64] = []
                var last: [UInt8]?
                let visit = { (key: Span<UInt8>, _: Span<UInt8>) -> Bool in
                    let bytes = key.copied
                    guard bytes != place else { return true }
                    last = bytes
                    if let number = NumberKey.number(key) { numbers.append(number) }
                    return numbers.count < Self.numbersPerStep
                }
                var goesOn = try cursor.seek(atOrAfter: place.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
                return last.map { (numbers, $0) }
            }
        }
    }

    // MARK: The queue

    /// Each entry's own place has been looked at; where there are as many places as entries, there
    /// are no others.
    func checkQueue() throws {
        let schema = self.inspector.schema
        let agrees = try self.inspector.read { (transaction) throws(LMDBError) in
            var places: UInt64 = 0
            for queue in schema.queues {
                places &+= try transaction.statistics(of: schema.database(of: queue)).entries
            }
            return try places == transaction.statistics(of: schema.objects).entries
        }
        if agrees { return }
        for queue in schema.queues {
            var place: [UInt8] = []
            while let (strays, last) = try self.strays(in: queue, after: place) {
                for number in strays {
                    try self.report(
                        DiskDamage(.stray, number: number), of: nil,
                        "place \(number) in the queue of eviction belongs to no entry")
                }
                place = last
            }
        }
    }

    private func strays(
        in queue: EvictionRules.Queue, after place: [UInt8]
    ) throws -> ([UInt64], [UInt8])? {
        let schema = self.inspector.schema
        return try self.inspector.read { (transaction) throws(LMDBError) in
            var places: [(UInt64, ObjectKey?)] = []
            var last: [UInt8]?
            try transaction.withCursor(schema.database(of: queue)) { (cursor) throws(LMDBError) in
                let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    let bytes = key.copied
                    guard bytes != place else { return true }
                    last = bytes
                    if let number = NumberKey.number(key) {
                        places.append((number, QueueEntry(value)?.key))
                    }
                    return places.count < Self.numbersPerStep
                }
                var goesOn = try cursor.seek(atOrAfter: place.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
            }
            guard let last else { return nil }
            var strays: [UInt64] = []
            for (number, key) in places
            where try schema.isStray(place: number, in: queue, of: key, transaction) {
                strays.append(number)
            }
            return (strays, last)
        }
    }

    // MARK: Sums

    /// Compares the sum of all bodies, where nobody wrote meanwhile.
    ///
    /// Not where a record cannot be read: what it has in the sum goes with it when it is mended.
    func checkSum(against counted: UInt64?) throws {
        guard self.state.isQuiet, !self.foundDamagedRecord else { return }
        guard let counted, counted != self.sum else { return }
        try self.report(
            DiskDamage(counted: counted, sum: self.sum), of: nil,
            "the store counts \(counted) bytes of bodies, and there are \(self.sum)")
    }

    /// The bytes of bodies that the store counts; nil where the file has no state.
    func countedBytes() throws -> UInt64? {
        try self.inspector.read { (transaction) throws(LMDBError) in
            try self.inspector.schema.readMeta(transaction)?.bodyBytes
        }
    }
}

extension Schema {
    /// Whether the place in the queue that a record names is its own.
    func isQueued(
        _ key: ObjectKey, _ record: ObjectRecord, _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> Bool {
        let place = NumberKey.bytes(record.sequence)
        let database = self.database(of: record.standing.queue)
        return try transaction.get(database, place.span) { QueueEntry($0)?.key == key } ?? false
    }

    /// Whether a place in the queue is of no use: its entry has gone or has another one.
    func isStray(
        place: UInt64, in queue: EvictionRules.Queue, of key: ObjectKey?,
        _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> Bool {
        guard let key else { return true }
        switch try self.judgedRecord(key, transaction) {
        case nil: return true
        case .success(let record)?:
            return record.sequence != place || record.standing.queue != queue
        // It goes with its record.
        case .failure?: return false
        }
    }

    func hasSegments(
        _ id: ObjectID, _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> Bool {
        let start = SegmentKey(id: id, index: 0).bytes
        return try transaction.withCursor(self.segments) { (cursor) throws(LMDBError) in
            try cursor.seek(atOrAfter: start.span) { key, _ in SegmentKey(key)?.id == id } ?? false
        }
    }
}

extension Array {
    /// The first index at which `isBehind` holds, where it holds for all after it.
    fileprivate func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
        var low = 0
        var high = self.count
        while low < high {
            let middle = low + (high - low) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
