import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore

/// An entry of a snapshot.
struct FoundEntry: Sendable {
    var id: ObjectID
    var record: ObjectRecord
    /// Where its body lies, if that is small enough to be read along with the head.
    var place: ValuePlace?
    /// That body, once it is read.
    var body: ByteBuffer?
}

/// What look-ups found lately, found again as long as nothing was committed.
///
/// What lies on disk and is asked for often is looked up many times between two commits. In one
/// snapshot a key leads to the same records at the same places, so the two trees need not be walked
/// each time: of a hit of 4 KiB that took an eighth. Bodies are read, and their checksums compared,
/// all the same.
final class RecentFinds: Sendable {
    /// What the file looked like: an environment, and a commit of it.
    struct Moment: Equatable {
        let environment: UInt64
        let commit: UInt64
    }

    private final class Entry: Sendable {
        let moment: Moment
        let key: CacheKey
        let found: [FoundEntry]

        init(_ moment: Moment, _ key: CacheKey, _ found: [FoundEntry]) {
            self.moment = moment
            self.key = key
            self.found = found
        }
    }

    /// A power of two; with ``largest`` what is kept takes some 8 MiB more than ``DecodedRecords``, where
    /// none of it is the same.
    static let count = 2048
    /// Keys with more variants are walked each time.
    static let variants = 4

    private let entries = RecentTable<Entry>(count: RecentFinds.count)

    /// What was found under `key` when the file looked like this; nil where nobody looked.
    func found(_ hash: KeyHash, _ key: CacheKey, at moment: Moment) -> [FoundEntry]? {
        guard let entry = self.entries[hash.low], entry.moment == moment, entry.key == key else {
            return nil
        }
        return entry.found
    }

    /// - Parameter found: all that is stored under `key`, without bodies.
    func note(_ found: [FoundEntry], _ hash: KeyHash, _ key: CacheKey, at moment: Moment) {
        // What is not there is asked for once: it is there then.
        guard 1...Self.variants ~= found.count else { return }
        self.entries.put(Entry(moment, key, found), at: hash.low)
    }
}
