import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// Collects the names of all entries that were first stored at a moment or after it, a bounded part
/// of the file at a time.
struct NameWalk: Sendable {
    private let core: DiskCore
    private let time: Timestamp
    /// Whether what cannot be looked at is not to be served any more.
    private let givesUp: Bool
    private let completion: @Sendable ([StoredName]?) -> Void
    private let found = FoundNames()

    private static let stepSize = 512

    /// - Parameters:
    ///   - givesUp: give the file up where it cannot be read.
    ///   - completion: gets nil where it cannot be read otherwise.
    init(
        core: DiskCore, time: Timestamp, givesUp: Bool,
        _ completion: @escaping @Sendable ([StoredName]?) -> Void
    ) {
        self.core = core
        self.time = time
        self.givesUp = givesUp
        self.completion = completion
    }

    /// Begins when what is being committed is there; once.
    func start() {
        if self.givesUp { self.core.walks.withLock { $0.began() } }
        let begin = { @Sendable in self.step(after: nil) }
        if self.core.mailbox.post(.barrier(begin)) != .accepted { begin() }
    }

    /// Goes on with the entries behind `place`.
    private func step(after place: ObjectKey?, _ tries: WalkTries = WalkTries()) {
        if !self.core.reads.submit(for: .body, { self.run(after: place, tries) }) {
            self.cutShort()
        }
    }

    private func end() {
        let names = self.found.take()
        guard self.givesUp else { return self.completion(names) }
        // Who asks removes them, which is not done any more either.
        if !names.isEmpty, self.core.mailbox.look().isClosed {
            return self.core.walkCutShort { self.completion(names) }
        }
        // Not over before the removals are posted: the store could close in between, and owe nothing.
        self.completion(names)
        self.core.walks.withLock { $0.ended() }
    }

    private func cutShort() {
        guard self.givesUp else { return self.completion(nil) }
        let names = self.found.take()
        self.core.walkCutShort { self.completion(names) }
    }

    private func run(after place: ObjectKey?, _ tries: WalkTries) {
        let part: (last: ObjectKey?, names: [StoredName])
        let file = self.core.file
        do throws(LMDBError) {
            part = try file.schema.names(
                in: file.environment, storedSince: self.time, after: place,
                limit: Self.stepSize)
        } catch {
            switch self.core.walkFailed(error, with: file, tries) {
            case .again: return self.step(after: place, tries.again)
            case .later where self.givesUp:
                return self.core.later { self.step(after: place, tries.later) }
            case .later, .giveUp: break
            }
            guard self.givesUp else { return self.completion(nil) }
            let command = WriteCommand.giveUp(file) { isGone in
                if isGone { self.end() } else { self.step(after: place) }
            }
            if self.core.mailbox.post(command) != .accepted { self.cutShort() }
            return
        }
        self.found.add(part.names)
        guard let last = part.last else { return self.end() }
        self.step(after: last)
    }
}

/// The names that a walk has met so far: behind a reference, so that no step copies those of all before.
private final class FoundNames: Sendable {
    private let names = Mutex<[StoredName]>([])

    func add(_ names: [StoredName]) { self.names.withLock { $0 += names } }

    func take() -> [StoredName] {
        self.names.withLock { names in
            defer { names = [] }
            return names
        }
    }
}

extension Schema {
    /// What was stored at `time` or after among up to `limit` entries behind `place`, and where to go
    /// on; nil at the end.
    fileprivate func names(
        in environment: Environment, storedSince time: Timestamp, after place: ObjectKey?,
        limit: Int
    ) throws(LMDBError) -> (last: ObjectKey?, names: [StoredName]) {
        try environment.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(self.objects) { (cursor) throws(LMDBError) in
                var names: [StoredName] = []
                var last: ObjectKey?
                var count = 0
                let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    guard let objectKey = ObjectKey(key), objectKey != place else {
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
                let start = place?.bytes.span.copied ?? []
                var goesOn = try cursor.seek(atOrAfter: start.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
                return (last, names)
            }
        }
    }
}
