import LarderHTTP
import LarderLMDB
import LarderStore
import Synchronization

/// The invalidations of groups that a disk store knows, and those that the file does not know yet.
///
/// Answered from memory; the writer's thread alone writes what changed. They lie in `meta` beside
/// the state: `group` and the hash of the name, or `groups-floor`.
final class GroupTable: Sendable {
    /// What the file is to be told: nil removes a group that was folded.
    struct Unwritten: Sendable {
        var times: [KeyHash: Timestamp?] = [:]
        var floor: Timestamp?

        var isEmpty: Bool { self.times.isEmpty && self.floor == nil }
    }

    private struct State {
        var groups: GroupInvalidations<KeyHash>
        /// Bounded, however long the disk refuses: names that are known, or that the file knows.
        var unwritten = Unwritten()
        /// Names that the file knows.
        var written: Set<KeyHash>

        /// A group is no longer kept by name: nor is it in the file.
        mutating func fold(_ name: KeyHash) {
            if self.written.contains(name) {
                self.unwritten.times.updateValue(nil, forKey: name)
            } else {
                self.unwritten.times.removeValue(forKey: name)
            }
        }
    }

    private let state: Mutex<State>

    init(_ groups: GroupInvalidations<KeyHash>) {
        self.state = Mutex(State(groups: groups, written: Set(groups.times.keys)))
    }

    func time(of name: KeyHash) -> Timestamp? {
        self.state.withLock { $0.groups.time(of: name) }
    }

    /// Notes an invalidation; false where there is nothing to write for it.
    func note(_ name: KeyHash, at time: Timestamp) -> Bool {
        self.state.withLock { state in
            if let known = state.groups.time(of: name), known >= time { return false }
            let change = state.groups.note(name, at: time)
            state.unwritten.times.updateValue(time, forKey: name)
            for folded in change.folded { state.fold(folded) }
            if !change.folded.isEmpty { state.unwritten.floor = state.groups.floor }
            return true
        }
    }

    /// Another file has taken the place of the one that knew them: all are to be written.
    func forgetWritten() {
        self.state.withLock { state in
            state.unwritten.times = state.groups.times.mapValues { .some($0) }
            state.unwritten.floor = state.groups.floor
            state.written = []
        }
    }

    var unwritten: Unwritten { self.state.withLock { $0.unwritten } }

    /// The file knows `written` now; what was noted since stays to be written.
    func wrote(_ written: Unwritten) {
        self.state.withLock { state in
            for (name, time) in written.times where state.unwritten.times[name] == .some(time) {
                state.unwritten.times.removeValue(forKey: name)
            }
            for (name, time) in written.times {
                guard time != nil else {
                    state.written.remove(name)
                    continue
                }
                state.written.insert(name)
                // Folded while it was being written.
                if state.groups.times[name] == nil { state.fold(name) }
            }
            if state.unwritten.floor == written.floor { state.unwritten.floor = nil }
        }
    }
}

/// Invalidations of groups as they lie in `meta`: checksum, then microseconds since 1970.
enum GroupCoding {
    static let prefix = Array("group".utf8)
    static let floorKey = Array("groups-floor".utf8)

    static func key(_ name: KeyHash) -> [UInt8] { Self.prefix + name.bytes.span.copied }

    static func name(_ key: Span<UInt8>) -> KeyHash? {
        guard key.hasPrefix(Self.prefix), key.count == Self.prefix.count + KeyHash.length,
            let high: UInt64 = key.bigEndian(Self.prefix.count),
            let low: UInt64 = key.bigEndian(Self.prefix.count + 8)
        else { return nil }
        return KeyHash(high: high, low: low)
    }

    static func encode(_ time: Timestamp) -> [UInt8] {
        var out: [UInt8] = []
        out.append(littleEndian: UInt32(0))
        out.append(littleEndian: time.microseconds)
        out.replace(littleEndian: Checksum.record(out.span.extracting(4...)), at: 0)
        return out
    }

    /// nil where the value is damaged.
    static func time(_ value: Span<UInt8>) -> Timestamp? {
        guard value.count == 12, let sum: UInt32 = value.littleEndian(0),
            Checksum.record(value.extracting(4...)) == sum,
            let microseconds: Int64 = value.littleEndian(4)
        else { return nil }
        return Timestamp(microseconds: microseconds)
    }
}

extension Schema {
    /// Reads the invalidations of groups, which are bounded in number.
    ///
    /// - Parameter now: counts for every group where one of them is damaged: which it was and when
    ///   is not known any more.
    func readGroups(
        _ transaction: borrowing ReadTransaction, now: Timestamp
    ) throws(LMDBError) -> GroupInvalidations<KeyHash> {
        try transaction.withCursor(self.meta) { (cursor) throws(LMDBError) in
            var groups = GroupInvalidations<KeyHash>()
            let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                guard key.hasPrefix(GroupCoding.prefix) else { return false }
                let time = GroupCoding.time(value)
                if let time, key.count == GroupCoding.floorKey.count,
                    key.hasPrefix(GroupCoding.floorKey)
                {
                    groups.raiseFloor(to: time)
                } else if let time, let name = GroupCoding.name(key) {
                    groups.note(name, at: time)
                } else {
                    groups.raiseFloor(to: now)
                }
                return true
            }
            var goesOn = try cursor.seek(atOrAfter: GroupCoding.prefix.span, visit) ?? false
            while goesOn { goesOn = try cursor.next(visit) ?? false }
            return groups
        }
    }

    func writeGroups(
        _ unwritten: GroupTable.Unwritten, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        for (name, time) in unwritten.times {
            let key = GroupCoding.key(name)
            if let time {
                try transaction.put(self.meta, key.span, GroupCoding.encode(time).span)
            } else {
                try transaction.delete(self.meta, key.span)
            }
        }
        if let floor = unwritten.floor {
            try transaction.put(
                self.meta, GroupCoding.floorKey.span, GroupCoding.encode(floor).span)
        }
    }
}
