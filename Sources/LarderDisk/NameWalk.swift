import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore

/// Collects the names of all entries that were first stored at a moment or after it, a bounded part
/// of the file at a time.
struct NameWalk: Sendable {
    let core: DiskCore
    let time: Timestamp
    let completion: @Sendable ([StoredName]) -> Void

    private static let stepSize = 512

    /// Goes on with the entries behind `place`.
    func step(after place: [UInt8], _ names: [StoredName]) {
        if !self.core.reads.submit(for: .body, { self.run(after: place, names) }) {
            self.completion(names)
        }
    }

    private func run(after place: [UInt8], _ names: [StoredName]) {
        var names = names
        let part: (last: ObjectKey?, names: [StoredName])
        let file = self.core.file
        do throws(LMDBError) {
            part = try file.schema.names(
                in: file.environment, storedSince: self.time, after: place,
                limit: Self.stepSize)
        } catch {
            self.core.readFailed(error, with: file.environment)
            // Who asks wants them removed: what cannot be looked at is not to be served.
            let command = WriteCommand.giveUp(file) { [names] isGone in
                if isGone { self.completion(names) } else { self.step(after: place, names) }
            }
            if self.core.mailbox.post(command) != .accepted { self.completion(names) }
            return
        }
        names += part.names
        guard let last = part.last else { return self.completion(names) }
        self.step(after: last.bytes, names)
    }
}

extension Schema {
    /// What was stored at `time` or after among up to `limit` entries behind `place`, and where to go
    /// on; nil at the end.
    fileprivate func names(
        in environment: Environment, storedSince time: Timestamp, after place: [UInt8], limit: Int
    ) throws(LMDBError) -> (last: ObjectKey?, names: [StoredName]) {
        try environment.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(self.objects) { (cursor) throws(LMDBError) in
                var names: [StoredName] = []
                var last: ObjectKey?
                var count = 0
                let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    guard let objectKey = ObjectKey(key), objectKey.bytes != place else {
                        return true
                    }
                    last = objectKey
                    count += 1
                    if let stored = ObjectRecord.storedTime(value), stored >= time,
                        let record = try? ObjectRecord.decode(value)
                    {
                        names.append(
                            StoredName(
                                key: record.key, id: objectKey.id, lastUsed: record.lastUsed,
                                bytes: record.room(ofRecord: value.count)))
                    }
                    return count < limit
                }
                var goesOn = try cursor.seek(atOrAfter: place.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
                return (last, names)
            }
        }
    }
}
