import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// How what a look-up has found is found again, for an answer that stands: with nothing made of it but
/// the body that is sent.
extension DiskCore {
    /// The body of what `place` names, where a look-up in place would find what that found before, and
    /// would read this body along with its head.
    func bodyAgain(at place: FoundPlace, of key: CacheKey) -> ByteBuffer? {
        guard self.mayBeResident(.records) else { return nil }
        // As for a look-up: what was found must still be there when its body has been read.
        for _ in 0..<Self.attemptsInPlace {
            let mark = self.entries.withLock { $0.removals }
            guard let body = self.snapshotBody(at: place, of: key) else { return nil }
            let (isSame, isAdmitted) = self.entries.withLock { entries in
                (entries.removals == mark, entries.admits(place, of: key))
            }
            guard isSame else { continue }
            guard isAdmitted else { return nil }
            self.counts.lookupsInPlace.add(1, ordering: .relaxed)
            return body
        }
        return nil
    }

    private func snapshotBody(at place: FoundPlace, of key: CacheKey) -> ByteBuffer? {
        let environment = self.environment
        defer { self.touchedTrees(1, waits: false) }
        do throws(LMDBError) {
            return try environment.read { (transaction) throws(LMDBError) in
                guard let found = try self.recordAgain(at: place, of: key, transaction),
                    self.isSmall(found.record),
                    case .piece(let body) = try self.smallBody(
                        of: found, transaction, waits: false)
                else { return nil }
                return body
            }
        } catch {
            self.readFailed(error, with: environment)
            return nil
        }
    }

    /// The record that `place` names, where the snapshot has all that it found, and nothing else.
    private func recordAgain(
        at place: FoundPlace, of key: CacheKey, _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> DecodedRecord? {
        var wanted: DecodedRecord?
        var count = 0
        var isSame = true
        let isWhole = try self.schema.forEachVariant(
            transaction, of: Checksum.key(key.bytes, seed: self.seed), waits: false
        ) { objectKey, value in
            // Whoever looks it up finds what is damaged, and says so.
            guard let found = try? self.records.record(objectKey.id, value) else {
                isSame = false
                return false
            }
            guard found.record.key == key else { return true }
            let known = place.place(of: found.id, found.record.head)
            if known == place.index { wanted = found }
            count += 1
            isSame = known != nil
            return isSame
        }
        return isWhole && isSame && count == place.count ? wanted : nil
    }
}
