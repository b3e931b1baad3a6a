import LarderLMDB

/// A cache file that was opened for looking, while its writer may exchange it for another.
struct InspectedFile {
    /// What comes next in an opening.
    enum Step: Sendable, CaseIterable {
        /// The names of the files are looked at.
        case names
        /// The file is looked at without LMDB.
        case header
        /// The file and its table of readers are opened, each by its name.
        case map
        /// The first transactions read what the file says of itself.
        case read
        /// It is waited for until no exchange is under way, and compared with the names.
        case compare
    }

    let environment: Environment
    /// Whether this process has the file open for another purpose, too.
    let isShared: Bool
    let schema: Schema
    let seed: UInt64

    /// Each but a few was spoiled by another exchange.
    private static let attempts = 64
    /// So often the same file is looked at that looks unsound.
    private static let looks = 8

    /// Opens the file for reading, together with the table of readers that is its own.
    ///
    /// The writer may exchange both between our two steps. With the table of another file, it would
    /// not know of what is read here, and write over it; and LMDB would look for the last transaction
    /// of the one among those of the other. So the names must lead to what was opened after a moment
    /// at which no exchange was under way, or it is begun anew. Nor is the first look at the file one
    /// step: while it grows, its meta page may name pages beyond the size seen a moment before, and a
    /// root page may be written over once two commits have followed. So what looks unsound is looked
    /// at again.
    static func open(
        _ files: DiskFiles, _ step: (Step) -> Void
    ) throws(StoreError) -> InspectedFile {
        var failure = StoreError(LMDBError(.exchanged, operation: "open"), path: files.data)
        var looks = 0
        for _ in 0..<Self.attempts {
            step(.names)
            let before = files.named
            let result = Self.attempt(files, step)
            step(.compare)
            files.awaitExchange()
            let after = files.named
            // Where there was no table, nobody wrote, and this has made one.
            let isSame =
                after.data == before.data
                && (before.readerTable == nil || after.readerTable == before.readerTable)
            switch result {
            case .success(let opened):
                if isSame { return opened }
                if !opened.isShared { opened.environment.close() }
            case .failure(let found):
                failure = found.told
                looks += isSame ? 1 : 0
                if isSame, !found.mayPass || looks == Self.looks { throw failure }
            }
        }
        throw failure
    }

    /// Why an attempt has failed.
    private struct Failure: Error {
        var told: StoreError
        /// Whether the next one may find it otherwise, though the file is the same.
        var mayPass = false

        init(_ error: LMDBError, _ files: DiskFiles) {
            self.told = StoreError(error, path: files.data)
            switch error.code {
            case .corrupted, .mapResized, .exchanged: self.mayPass = true
            default: break
            }
        }

        init(format: UInt64, _ files: DiskFiles) {
            self.told = StoreError(ofFormat: format, path: files.data)
        }
    }

    private static func attempt(
        _ files: DiskFiles, _ step: (Step) -> Void
    ) -> Result<InspectedFile, Failure> {
        do throws(LMDBError) {
            if let shared = Environment.shared(path: files.data) {
                return try Self.describe(shared, isShared: true, files)
            }
            step(.header)
            switch try FileHeader.check(path: files.data) {
            case .sound: break
            case .absent: throw LMDBError(.noSuchFile, operation: "open")
            case .unsound(let reason), .short(let reason):
                throw LMDBError(.corrupted, operation: reason)
            }
            let environment = try Environment.open(
                path: files.data, options: EnvironmentOptions(isReadOnly: true)
            ) { step(.map) }
            step(.read)
            do throws(LMDBError) {
                return try Self.describe(environment, isShared: false, files)
            } catch {
                environment.close()
                throw error
            }
        } catch {
            return .failure(Failure(error, files))
        }
    }

    private static func describe(
        _ environment: Environment, isShared: Bool, _ files: DiskFiles
    ) throws(LMDBError) -> Result<InspectedFile, Failure> {
        let schema = try Schema(environment, creating: false)
        let (meta, format) = try environment.read { (transaction) throws(LMDBError) in
            (try schema.readMeta(transaction), try schema.readFormat(transaction))
        }
        if let meta {
            return .success(
                InspectedFile(
                    environment: environment, isShared: isShared, schema: schema, seed: meta.seed))
        }
        guard let format, format != StoreMeta.format else {
            throw LMDBError(.corrupted, operation: "no record of the cache's state")
        }
        if !isShared { environment.close() }
        return .failure(Failure(format: format, files))
    }
}
