import Dispatch
import LarderLMDB

/// What a walk through all entries does that could not read some of them.
///
/// What it was to remove must not be served afterwards, so that a file that cannot be read is given up
/// as a whole. But only where the file is to blame: that there was no slot for a reader, or no memory, is
/// no reason, unless it lasts for minutes: nothing that the walk may remove is served from the file
/// meanwhile, or stored in it to any use.
enum WalkRemedy: Equatable {
    /// Reads the same part once more.
    case again
    /// Reads it once more after a while; who waits for the walk goes on waiting.
    case later
    case giveUp

    /// Reads of one part that may fail, one after the other, each behind what else waits to be read.
    static let mostRepeats = 8
    /// How often one part is put off, each time for a second.
    static let mostDelays = 300

    init(_ error: LMDBError, _ tries: WalkTries) {
        if FileTrouble(error) != nil {
            self = .giveUp
        } else if tries.repeats < Self.mostRepeats {
            self = .again
        } else {
            self =
                Self.isShortage(error.code) && tries.delays < Self.mostDelays ? .later : .giveUp
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

/// How often a walk has failed to read the part that it is at.
struct WalkTries {
    /// One after the other.
    var repeats = 0
    /// How often it was put off.
    var delays = 0

    var again: WalkTries { WalkTries(repeats: self.repeats + 1, delays: self.delays) }
    var later: WalkTries { WalkTries(repeats: 0, delays: self.delays + 1) }
}

extension DiskCore {
    /// Notes that a walk failed with `file`, and says what it is to do.
    func walkFailed(_ error: LMDBError, with file: CacheFile, _ tries: WalkTries) -> WalkRemedy {
        self.readFailed(error, with: file.environment)
        let remedy = WalkRemedy(error, tries)
        if remedy != .giveUp { _ = try? file.environment.clearStaleReaders() }
        return remedy
    }

    /// Goes on with a walk after a while: nobody tells when another process has done with its slot.
    func later(_ step: @escaping @Sendable () -> Void) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { step() }
    }
}
