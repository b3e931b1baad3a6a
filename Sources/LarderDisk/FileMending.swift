import LarderHTTP
import LarderLMDB

/// What is done about a file in trouble, and when: a value.
///
/// ```
/// sound ─found─▶ mend (new file │ opened again) ─mended─▶ sound
///   │              └─failed─▶ waiting ─(pause is over)─▶ mend
///   └─found, within a minute of the last time─▶ waiting
/// ```
///
/// A disk that ruins whatever is written to it would else fill itself with ruined files.
struct FileMending: Sendable, Equatable {
    enum Action: Sendable, Equatable {
        case nothing
        case mend(FileTrouble)
        /// Too soon after the last one: go without a file, and say when to try again by `failed`.
        case goWithout(FileTrouble)
    }

    /// It is done no more often, but after a pause.
    static let spacing = Duration.seconds(60)

    /// No wait is longer, whatever the clock says.
    static let longestWait = Duration.seconds(3600)

    /// What has not been mended yet.
    private(set) var trouble: FileTrouble?
    private var notBefore: Timestamp?
    private var lastNewFile: Timestamp?
    private var lastReopening: Timestamp?

    /// Trouble was found with the file that is open.
    mutating func found(_ found: FileTrouble, at now: Timestamp) -> Action {
        self.notBefore = nil
        var trouble = found
        var isSoon = false
        switch found {
        case .gone, .lockedOut, .unlisted: break
        case .damaged:
            isSoon = Self.isRecent(self.lastNewFile, at: now)
        case .panicked(let error):
            guard Self.isRecent(self.lastReopening, at: now) else { break }
            // Opening it again did not help. A fatal error is the disk's, which may come to itself; a
            // transaction that fails again and again is the file's.
            if error.code == .badTransaction {
                trouble = .damaged(error)
                isSoon = Self.isRecent(self.lastNewFile, at: now)
            } else {
                isSoon = true
            }
        }
        self.trouble = trouble
        return isSoon ? .goWithout(trouble) : .mend(trouble)
    }

    /// A moment before the last is one before the clock was set back.
    private static func isRecent(_ last: Timestamp?, at now: Timestamp) -> Bool {
        guard let last, now >= last else { return false }
        return now - last < Self.spacing
    }

    /// What is to be done now about what was found before.
    func due(at now: Timestamp) -> Action {
        guard let trouble = self.trouble else { return .nothing }
        // A pause longer than any is one that began before the clock was set back.
        if let notBefore = self.notBefore, now < notBefore,
            notBefore - now <= Self.longestWait
        {
            return .nothing
        }
        return .mend(trouble)
    }

    /// It could not be mended, or was not to be: it is tried again after `moment`.
    mutating func failed(until moment: Timestamp) {
        self.notBefore = moment
    }

    /// The store has a file again.
    mutating func mended(byNewFile isNew: Bool, at now: Timestamp) {
        self.trouble = nil
        self.notBefore = nil
        if isNew { self.lastNewFile = now } else { self.lastReopening = now }
    }
}
