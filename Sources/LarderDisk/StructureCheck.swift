import LarderLMDB

/// What is wrong with the pages of a cache file, below all records.
package struct StructureReport: Sendable, Equatable {
    package struct Problem: Sendable, Equatable {
        package var page: UInt64
        package var reason: String
    }

    package var pages: UInt64 = 0
    package var usedPages: UInt64 = 0
    /// Neither used nor free: room lost, and nothing worse.
    package var leakedPages: UInt64 = 0
    package var problemCount: UInt64 = 0
    /// The first of them.
    package var problems: [Problem] = []

    package var isSound: Bool { self.problemCount == 0 }

    init(_ report: FileReport) {
        self.pages = report.lastPage &+ 1
        self.usedPages = report.usedPages
        self.leakedPages = report.leakedPages
        self.problemCount = report.problemCount
        self.problems = report.problems.map {
            Problem(page: $0.page, reason: $0.damage.rawValue)
        }
    }
}

/// Checks the pages of a cache file without LMDB, which trusts them.
package enum StructureCheck {
    /// Reads all pages of the trees; nil where another process writes to the file, or may begin to, so
    /// that they would change meanwhile.
    ///
    /// No process can begin to write while it runs. Waits for the disk.
    package static func run(
        directory: String, progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(StoreError) -> StructureReport? {
        let files = DiskFiles(directory: directory)
        let lock: WriterLock
        do throws(StoreError) {
            lock = try WriterLock.acquire(files)
        } catch {
            switch error.code {
            // Without the right to hold writers off nobody can say that the pages stay as they are.
            case .inUse, .notWritable: return nil
            default: throw error
            }
        }
        lock.noteChecking()
        defer {
            lock.withdraw()
            lock.release()
        }
        do throws(LMDBError) {
            return StructureReport(
                try FileStructure.check(path: files.data, progress: progress))
        } catch {
            throw StoreError(error, path: files.data)
        }
    }
}
