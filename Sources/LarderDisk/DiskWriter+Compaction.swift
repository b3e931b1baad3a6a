import LarderHTTP
import LarderLMDB
import LarderStore
import Synchronization

// Compaction: all that is stored goes into a new file without holes, which takes the old one's place.
//
// The old file is whole until rename(2) puts the new one, which is whole on the disk by then, in its
// place: whenever the process dies, one of them is there. Readers of the old file go on with it.
extension DiskWriter {
    /// How often it is tried to make a file smaller that is larger than the capacity.
    private static let shrinkInterval = Duration.seconds(600)

    /// Does what was asked for, or what the capacity demands; false where there is nothing to do.
    mutating func compactIfWanted() -> Bool {
        let requests = self.core.compactions.take()
        let shrinks = requests.isEmpty && self.mayShrink
        guard shrinks || !requests.isEmpty else { return false }
        self.collectAllGarbage()
        let result = self.compact { done, whole in
            for request in requests { request.progress(done, whole) }
        }
        if shrinks { self.tellShrinking(result) }
        for request in requests { request.completion(result) }
        return true
    }

    /// Whether the file is larger than its bound, and what is stored is not, any more.
    private var mayShrink: Bool {
        guard self.isOversized, !self.isEvicting, !self.hasGarbage || self.isStuck,
            self.pages <= self.marks.highPages
        else { return false }
        guard let notBefore = self.shrinkNotBefore else { return true }
        let now = self.core.clock()
        // A wait longer than any is one that began before the clock was set back.
        return now >= notBefore || notBefore - now > Self.shrinkInterval
    }

    private mutating func tellShrinking(_ result: Result<CompactionReport, StoreError>) {
        switch result {
        case .success(let report):
            self.core.report(.shrunk(report))
            // What is in use may need more than the capacity for a while: not in turns for ever.
            self.shrinkNotBefore = self.core.clock() + Self.shrinkInterval
        case .failure(let error):
            if !self.hasToldNoShrinking, error.code != .closed {
                self.core.report(.notShrunk(error))
                self.hasToldNoShrinking = true
            }
            self.shrinkNotBefore = self.core.clock() + Self.shrinkInterval
        }
    }

    private mutating func collectAllGarbage() {
        self.isStuck = false
        while self.hasGarbage, !self.isStuck, self.core.file.trouble == nil { self.reclaimStep() }
    }

    private mutating func compact(
        _ progress: (UInt64, UInt64) -> Void
    ) -> Result<CompactionReport, StoreError> {
        // It takes as long as the disk takes: who waits for a response to be committed asks without.
        self.core.compactions.isRunning = true
        defer { self.core.compactions.isRunning = false }
        for lookup in self.core.takeWaitingLookups() { lookup() }
        do throws(StoreError) {
            return .success(try self.copyAndExchange(progress))
        } catch {
            self.core.files.removeNext()
            return .failure(error)
        }
    }

    private mutating func copyAndExchange(
        _ progress: (UInt64, UInt64) -> Void
    ) throws(StoreError) -> CompactionReport {
        let old = self.core.file
        let files = self.core.files
        do throws(LMDBError) {
            let needed = try Self.bytesInUse(old)
            try Self.requireRoom(needed, files)
            let (environment, schema) = try OpenedCache.makeNext(
                files, self.core.configuration, meta: nil, mapSize: needed)
            do throws(LMDBError) {
                try self.copy(from: old, to: (environment, schema), of: needed, progress)
                try environment.extendFileToLastPage()
                // All of it, the meta page too, before it gets its name.
                try environment.synchronize()
                let report = CompactionReport(
                    before: try old.environment.fileSize(),
                    after: try environment.fileSize())
                try self.install(environment, schema)
                return report
            } catch {
                environment.close()
                throw error
            }
        } catch {
            throw self.explain(error, with: old)
        }
    }

    private func copy(
        from old: CacheFile, to new: (Environment, Schema), of whole: UInt64,
        _ progress: (UInt64, UInt64) -> Void
    ) throws(LMDBError) {
        var copy = FileCopy(from: (old.environment, old.schema), to: new)
        var before: UInt64 = 0
        while try copy.step() {
            old.residency.touched(values: 0, bytes: Int(clamping: copy.bytes &- before))
            before = copy.bytes
            progress(min(copy.bytes, whole), whole)
            if self.core.mailbox.look().isClosed {
                throw LMDBError(.closed, operation: "compact")
            }
        }
    }

    /// The new file takes the old one's place, for others and for this store.
    private mutating func install(
        _ environment: Environment, _ schema: Schema
    ) throws(LMDBError) {
        self.pages = try self.core.exchange(for: environment, schema).pages
        self.forgetFragmentation()
        self.publish()
    }

    /// Room on the disk for the copy beside the file.
    private static func bytesInUse(_ file: CacheFile) throws(LMDBError) -> UInt64 {
        let (pages, size) = try file.environment.read { (transaction) throws(LMDBError) in
            (
                try transaction.pagesInUse(file.schema.all),
                try transaction.statistics(of: file.schema.objects).pageSize
            )
        }
        // Each step frees the pages that its paths through the trees had before.
        let (bytes, overflow) = (pages &+ pages / 64 &+ 64).multipliedReportingOverflow(by: size)
        return overflow ? .max : bytes
    }

    private static func requireRoom(_ needed: UInt64, _ files: DiskFiles) throws(LMDBError) {
        if try files.freeBytes() < needed { throw LMDBError(.noSpace, operation: "compact") }
    }

    /// Says what a person can do about it; what is wrong with the old file the writer sees to.
    private func explain(_ error: LMDBError, with old: CacheFile) -> StoreError {
        let path = self.core.files.data
        if let trouble = FileTrouble(error) {
            _ = old.note(trouble)
        }
        guard error.code == .noSpace, let needed = try? Self.bytesInUse(old),
            let free = try? self.core.files.freeBytes(), free < needed
        else { return StoreError(error, path: path) }
        return StoreError(
            .noSpace, path: path,
            cause: "the copy takes \(ByteCount(needed)) beside it, and the disk has "
                + "\(ByteCount(free)) free",
            remedy: "free \(ByteCount(needed - free)) more, or lower the cache's capacity")
    }
}

extension DiskCore {
    /// Gives a new file, whole and on the disk, the name of the one in use, and goes on with it.
    ///
    /// The writer's thread alone calls it, between two transactions.
    @discardableResult
    func exchange(
        for environment: Environment, _ schema: Schema
    ) throws(LMDBError) -> OpenedCache {
        let opened = try OpenedCache.describe(
            environment, schema, self.files, OpenedCache.capacity(self.configuration), self.clock())
        guard let opened else {
            throw LMDBError(.corrupted, operation: "the new file cannot be read back")
        }
        self.isExchanging.store(true, ordering: .sequentiallyConsistent)
        defer { self.isExchanging.store(false, ordering: .sequentiallyConsistent) }
        do throws(LMDBError) {
            try self.files.installNext()
        } catch {
            // The table of readers may be the new one's already, where others look for it.
            _ = self.file.note(.panicked(error))
            throw error
        }
        self.exchange(opened)
        return opened
    }
}
