import LarderLMDB

/// What a walk through all entries does that could not read some of them.
///
/// What it was to remove must not be served afterwards, so that a file that cannot be read is given up
/// as a whole. But only where the file is to blame: that there was no slot for a reader, or no memory, at
/// one moment is no reason.
enum WalkRemedy: Equatable {
    /// Reads the same part once more.
    case again
    case giveUp

    /// Reads of one part that may fail, one after the other, each behind what else waits to be read.
    static let mostRepeats = 8

    init(_ error: LMDBError, repeats: Int) {
        let isTransient = FileTrouble(error) == nil && repeats < Self.mostRepeats
        self = isTransient ? .again : .giveUp
    }
}

extension DiskCore {
    /// Notes that a walk failed with `file`, and says what it is to do.
    func walkFailed(_ error: LMDBError, with file: CacheFile, repeats: Int) -> WalkRemedy {
        self.readFailed(error, with: file.environment)
        let remedy = WalkRemedy(error, repeats: repeats)
        if remedy == .again { _ = try? file.environment.clearStaleReaders() }
        return remedy
    }
}
