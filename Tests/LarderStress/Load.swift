import Glibc
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers

/// Stores, replaces, extends, freshens, invalidates, removes and reads, all at once, and says before
/// and after each what it does.
///
/// Each task has URLs of its own, so that what it says of one is in order.
struct Load: Sendable {
    var keys: Int
    var tasks: Int
    var seed: UInt64
    /// Where the versions of this process begin: none is used twice.
    var firstVersion: UInt64
    /// How many operations each task does; nil for as long as it lives.
    var operations: Int?
    var largest: UInt64
    let say: @Sendable (JournalLine) -> Void

    /// Runs on the store; throws where it read a wrong byte.
    func run(_ store: DiskStore) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<self.tasks {
                group.addTask {
                    var random = SplitMix64(seed: self.seed &* 1_000 &+ UInt64(task))
                    var version = self.firstVersion + UInt64(task)
                    var done = 0
                    while self.operations.map({ done < $0 }) ?? true {
                        let key =
                            Int(random.below(UInt64(self.keys / self.tasks))) * self.tasks + task
                        version += UInt64(self.tasks)
                        try await self.act(store, key, version, &random)
                        done += 1
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func act(
        _ store: DiskStore, _ key: Int, _ version: UInt64, _ random: inout SplitMix64
    ) async throws {
        let objects = await store.found(Content.key(key))
        let present = objects.first.flatMap { object in
            Entry(object.head, of: key).map { (object, $0) }
        }
        if objects.count > 1 { throw Wrong("/\(key): \(objects.count) responses") }
        switch (random.below(100), present) {
        case (0..<40, _), (_, nil):
            await self.store(store, key, version, replacing: objects.map(\.id), &random)
        case (40..<62, let (object, entry)?) where entry.ranges != nil:
            await self.extend(store, key, object, entry, &random)
        case (40..<74, let (object, entry)?):
            await self.freshen(store, key, object, entry, invalidates: random.below(3) == 0)
        case (74..<82, let (object, _)?):
            self.say(.begin(key, nil))
            _ = await store.removed(
                Content.key(key), ids: random.below(2) == 0 ? nil : [object.id])
            self.say(.done(key))
        case (_, let (object, entry)?):
            store.noteUse(object.id, of: Content.key(key), at: Timestamp(seconds: 1_800_000_000))
            try await self.read(object, key, entry, &random)
        }
    }

    private func read(
        _ object: StoredObject, _ key: Int, _ entry: Entry, _ random: inout SplitMix64
    ) async throws {
        let length = Content.length(key, entry.version)
        var range = entry.ranges?.first ?? 0..<length
        if !range.isEmpty, random.below(2) == 0 {
            let a = UInt64.random(in: range, using: &random)
            range = a..<UInt64.random(in: a...range.upperBound, using: &random)
        }
        if case .wrong(let what) = await compare(object, key, entry, range) {
            throw Wrong("/\(key) \(entry.text): \(what)")
        }
    }

    // MARK: Storing

    private func store(
        _ store: DiskStore, _ key: Int, _ version: UInt64, replacing: [ObjectID],
        _ random: inout SplitMix64
    ) async {
        let length = Content.length(key, version, largest: self.largest)
        guard length == Content.length(key, version) else { return }
        var entry = Entry(version: version)
        var range = 0..<length
        // A range of it, as of a 206; or it breaks off, and what came is kept.
        let isPart = random.below(4) == 0 && length > 1
        let breaksOff = !isPart && random.below(8) == 0 && length > 1
        if isPart {
            let a = UInt64.random(in: range, using: &random)
            range = a..<UInt64.random(in: a + 1...length, using: &random)
            entry.ranges = [range]
        } else if breaksOff {
            range = 0..<UInt64.random(in: 1..<length, using: &random)
            entry.ranges = [range]
        }
        if entry.ranges == [0..<length] { entry.ranges = nil }
        var head = Content.head(key, entry)
        head.extent = isPart ? StoredExtent(completeLength: length, ranges: [range]) : nil
        let comesToNothing = random.below(10) == 0
        if !comesToNothing { self.say(.begin(key, entry)) }
        let watch = SinkWatch()
        var sink = store.store(
            head, for: Content.key(key),
            length: isPart ? range.upperBound - range.lowerBound : length,
            replacing: replacing, observer: watch)
        guard sink != nil else { return comesToNothing ? () : self.say(.left(key)) }
        await self.write(key, version, range, to: sink, watch, &random)
        if comesToNothing {
            sink = nil
            _ = await watch.end()
            return
        }
        breaksOff ? sink?.keep(completeLength: nil) : sink?.commit(trailers: Fields())
        await self.settle(key, watch)
    }

    private func write(
        _ key: Int, _ version: UInt64, _ range: Range<UInt64>, to sink: (any ObjectSink)?,
        _ watch: SinkWatch, _ random: inout SplitMix64
    ) async {
        var position = range.lowerBound
        while position < range.upperBound {
            let end = min(range.upperBound, position + 1 + random.below(100_000))
            sink?.write(Content.bytes(key, version, position..<end))
            position = end
            let sent = position - range.lowerBound
            if sent > 1 << 20 { await watch.wrote(sent - 1 << 20) }
        }
    }

    private func settle(_ key: Int, _ watch: SinkWatch) async {
        if case .visible = await watch.end() {
            self.say(.done(key))
        } else {
            self.say(.left(key))
        }
    }

    private func extend(
        _ store: DiskStore, _ key: Int, _ object: StoredObject, _ entry: Entry,
        _ random: inout SplitMix64
    ) async {
        let length = Content.length(key, entry.version)
        let a = UInt64.random(in: 0..<length, using: &random)
        let range = a..<UInt64.random(in: a + 1...length, using: &random)
        var extent = StoredExtent(completeLength: length, ranges: entry.ranges ?? [])
        extent.insert(range)
        var after = entry
        after.ranges = extent.isComplete ? nil : extent.ranges
        self.say(.begin(key, after))
        let watch = SinkWatch()
        let sink = store.extend(
            object.id, of: Content.key(key), at: range.lowerBound,
            length: range.upperBound - range.lowerBound, completeLength: length,
            begun: store.removalMark(), observer: watch)
        guard let sink else { return self.say(.left(key)) }
        await self.write(key, entry.version, range, to: sink, watch, &random)
        sink.commit(trailers: Fields())
        await self.settle(key, watch)
    }

    private func freshen(
        _ store: DiskStore, _ key: Int, _ object: StoredObject, _ entry: Entry, invalidates: Bool
    ) async {
        var after = entry
        if invalidates { after.isInvalid = true } else { after.freshened += 1 }
        self.say(.begin(key, after))
        store.update(object.id, of: Content.key(key), head: Content.head(key, after))
        await store.flushed()
        self.say(.done(key))
    }
}

/// What must never be.
struct Wrong: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Writes a line to standard output at once, in one piece.
func sayLine(_ line: JournalLine) { sayText(line.text) }

/// The same of any text.
func sayText(_ text: String) {
    let bytes = Array(text.utf8)
    // A pipe takes up to 4096 bytes as one (pipe(7)).
    _ = unsafe Glibc.write(1, bytes, bytes.count)
}
