import Dispatch
import LarderLMDB

/// What a walk through all entries does that could not read some of them.
///
/// What it was to remove must not be served afterwards, so that a file that cannot be read is given up
/// as a whole. But only where the file is to blame: that there was no slot for a reader, or no memory, is
/// no reason, however long it lasts.
enum WalkRemedy: Equatable {
    /// Reads the same part once more.
    case again
    /// Reads it once more after a while; who waits for the walk goes on waiting.
    case later
    case giveUp

    /// Reads of one part that may fail, one after the other, each behind what else waits to be read.
    static let mostRepeats = 8

    init(_ error: LMDBError, repeats: Int) {
        if FileTrouble(error) != nil {
            self = .giveUp
        } else if repeats < Self.mostRepeats {
            self = .again
        } else {
            self = Self.isShortage(error.code) ? .later : .giveUp
        }
    }

    /// Whether something was short that others have, and that says nothing of the file.
    private static func isShortage(_ code: LMDBError.Code) -> Bool {
        switch code {
        case .readersFull, .noMemory: true
        case .mapFull, .noSpace, .notLMDB, .corrupted, .versionMismatch, .transactionFull,
            .mapResized, .panic, .badTransaction, .badValueSize, .notFound, .permissionDenied,
            .readOnlyFileSystem, .inputOutput, .noSuchFile, .alreadyOpen, .exchanged, .closed,
            .cancelled, .foreignFile, .unsafeDirectory, .other:
            false
        }
    }
}

extension DiskCore {
    /// Notes that a walk failed with `file`, and says what it is to do.
    func walkFailed(_ error: LMDBError, with file: CacheFile, repeats: Int) -> WalkRemedy {
        self.readFailed(error, with: file.environment)
        let remedy = WalkRemedy(error, repeats: repeats)
        if remedy != .giveUp { _ = try? file.environment.clearStaleReaders() }
        return remedy
    }

    /// Goes on with a walk after a while: nobody tells when another process has done with its slot.
    func later(_ step: @escaping @Sendable () -> Void) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { step() }
    }
}
