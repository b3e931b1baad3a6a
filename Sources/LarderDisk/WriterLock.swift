import Glibc
import LarderLMDB
import Synchronization

/// The right to write, held by one process at a time.
///
/// A lock on a file of its own (``OpenFileLock``), which also names the holder and how far it came:
///
/// ```
/// PID⏎
/// (as the one before left it)⏎ ─▶ opened N⏎ ─(what was asked for is done, or ten seconds passed)─▶
/// steady⏎ ─▶ closed⏎
/// owed⏎, while removals are acknowledged that the cache file could not be told of
/// checking⏎, while the file is only looked at as a whole, and nobody may write to it
/// ```
///
/// `N` counts the processes in a row, this one included, that came no further once they gave the file
/// to LMDB: to be ended while it is looked at first says nothing of the file. All of it is written
/// in place, which a disk without room still takes. The kernel gives the
/// lock up when the process ends, in whatever way; the file stays, and tells the next one. Looking into
/// a cache needs no such right.
final class WriterLock: Sendable {
    /// What a holder says of itself.
    enum Mark: String, Sendable { case steady, closed }

    /// Processes in a row that ended soon after opening the file, before this one.
    ///
    /// A file that makes whoever opens it die would else do so for ever. A process that is killed
    /// looks the same, so that one or two mean nothing.
    let earlyEnds: Int
    /// The cache file that the holder before left serves what was removed.
    let wasOwed: Bool
    /// What the holder before left.
    private let former: String

    private struct State {
        var descriptor: Int32
        var mark: String
        var owes: Bool
        /// Whether the file says that something is owed, as far as this process has written it.
        var isOwedInFile: Bool
        /// Why the file does not say it all; nil where it does.
        var failure: LMDBError?
    }

    private let state: Mutex<State>

    private init(
        descriptor: Int32, earlyEnds: Int, wasOwed: Bool, mark: String, former: String
    ) {
        self.former = former
        self.state = Mutex(
            State(descriptor: descriptor, mark: mark, owes: wasOwed, isOwedInFile: wasOwed))
        self.earlyEnds = earlyEnds
        self.wasOwed = wasOwed
    }

    deinit {
        let descriptor = self.descriptor
        _ = close(descriptor)
    }

    private var descriptor: Int32 { self.state.withLock { $0.descriptor } }

    /// Writes down again what the holder before left: this one did not open the file, and so has not
    /// ended for opening it.
    func withdraw() {
        try? Self.write(self.former, self.descriptor)
    }

    /// Writes down that it is held to keep writers away, and by none.
    ///
    /// Where it cannot be written, who is refused is told of a writer.
    func noteChecking() {
        var text = Self.takenOver(self.former)
        if !text.hasSuffix("\n") { text += "\n" }
        try? Self.write(text + "\(Self.checkingMark)\n", self.descriptor)
    }

    /// Lets another process have it.
    func release() {
        OpenFileLock.release(self.descriptor)
    }

    /// Writes down how far this process came.
    ///
    /// Where it cannot be written, nothing is lost but a count.
    func note(_ mark: Mark) {
        self.note { $0.mark = mark.rawValue }
    }

    /// Writes down whether removals are acknowledged that the cache file could not be told of.
    ///
    /// Costs nothing where that is written already. A disk that refuses even this, as one does that
    /// was mounted anew for reading alone, leaves them to the life of this process
    /// (``unwrittenDebt``).
    func note(owes: Bool) {
        let isKnown = self.state.withLock { $0.owes == owes && $0.failure == nil }
        if !isKnown { self.note { $0.owes = owes } }
    }

    /// Another file is to be opened, by which no process has ended yet.
    func forgetEarlyEnds() {
        self.state.withLock { $0.mark = Self.opened(after: 0) }
    }

    /// Writes down that the file is about to be opened; throws where that cannot be written.
    func noteOpening() throws(LMDBError) {
        let state = self.state.withLock { $0 }
        // What is owed is so until the file is seen to.
        try Self.write(Self.text(state.mark, owes: state.owes), state.descriptor)
    }

    /// Why the next process will not know that something is owed; nil where nothing is, or it will.
    var unwrittenDebt: LMDBError? {
        self.state.withLock { $0.owes && !$0.isOwedInFile ? $0.failure : nil }
    }

    /// The writer's thread alone calls it once the store is open.
    private func note(_ change: (inout State) -> Void) {
        let state = self.state.withLock { state in
            change(&state)
            return state
        }
        do throws(LMDBError) {
            try Self.write(Self.text(state.mark, owes: state.owes), state.descriptor)
            // It stands for removals that would have been brought to the disk, where that has trouble.
            if state.owes, !state.isOwedInFile, fdatasync(state.descriptor) != 0 {
                throw LMDBError(returnCode: errno, operation: "fdatasync")
            }
            self.state.withLock { current in
                current.isOwedInFile = state.owes
                current.failure = nil
            }
        } catch {
            self.state.withLock { $0.failure = error }
        }
    }

    private static func text(_ mark: String, owes: Bool) -> String {
        "\(getpid())\n\(mark)\n" + (owes ? "\(Self.owedMark)\n" : "")
    }

    private static let owedMark = "owed"
    private static let checkingMark = "checking"

    private static func opened(after earlyEnds: Int) -> String { "opened \(earlyEnds + 1)" }

    /// What the former holder said, under the number of this process.
    private static func takenOver(_ former: String) -> String {
        let lines = former.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
            .filter { $0 != Self.checkingMark }
        return (["\(getpid())"] + lines).joined(separator: "\n")
    }

    /// Takes the lock; throws `.inUse` where another process, or this one, holds it.
    ///
    /// The count stays as it is until ``noteOpening()``, also where the process is killed;
    /// ``withdraw()`` puts the former holder's number back.
    static func acquire(_ files: DiskFiles) throws(StoreError) -> WriterLock {
        let (descriptor, text) = try Self.take(files)
        let early = Self.earlyEnds(text)
        let wasOwed = Self.isOwed(text)
        let former = String(decoding: text, as: UTF8.self)
        do throws(LMDBError) {
            try Self.write(Self.takenOver(former), descriptor)
        } catch {
            _ = close(descriptor)
            throw StoreError(error, path: files.writerLock)
        }
        return WriterLock(
            descriptor: descriptor, earlyEnds: early, wasOwed: wasOwed,
            mark: Self.opened(after: early), former: former)
    }

    /// Takes it again, and makes the directory again, where both were removed; throws `.inUse` where
    /// another process was faster.
    ///
    /// - Returns: whether who held it meanwhile owes removals.
    func renew(_ files: DiskFiles) throws(StoreError) -> Bool {
        do throws(LMDBError) {
            try files.makeDirectory()
        } catch {
            throw StoreError(error, path: files.directory)
        }
        return try Self.isNamed(self.descriptor, files) ? false : self.takeAnew(files)
    }

    private func takeAnew(_ files: DiskFiles) throws(StoreError) -> Bool {
        let descriptor = self.descriptor
        let (new, text) = try Self.take(files)
        let isOwed = Self.isOwed(text)
        self.state.withLock { state in
            state.descriptor = new
            // What another process owes stays noted, whatever becomes of this one.
            state.owes = state.owes || isOwed
            state.isOwedInFile = false
        }
        _ = close(descriptor)
        self.note(.steady)
        return isOwed
    }

    /// What a look at the lock's name has found.
    enum Keeping: Sendable, Equatable {
        case kept
        /// It was removed, and another process has the one that bears its name now.
        case lost
        /// It was removed, and had meanwhile by a process that left removals to be done.
        case keptOwing
    }

    /// Makes the lock anew and takes it where somebody has removed it: a lock without a name keeps
    /// nobody out.
    ///
    /// Two system calls where it has its name. One that cannot be made anew is for the next look.
    func keep(_ files: DiskFiles) -> Keeping {
        if Self.isNamed(self.descriptor, files) { return .kept }
        do throws(StoreError) {
            return try self.takeAnew(files) ? .keptOwing : .kept
        } catch {
            if case .inUse = error.code { return .lost }
            return .kept
        }
    }

    /// Whether the lock's name still leads to the file that is open.
    private static func isNamed(_ descriptor: Int32, _ files: DiskFiles) -> Bool {
        var (held, named) = (stat(), stat())
        return unsafe fstat(descriptor, &held) == 0 && lstat(files.writerLock, &named) == 0
            && held.st_ino == named.st_ino && held.st_dev == named.st_dev
    }

    /// How often the file is opened anew where it was taken away between opening and locking.
    private static let attempts = 8

    private static func take(_ files: DiskFiles) throws(StoreError) -> (Int32, [UInt8]) {
        for _ in 1..<Self.attempts {
            let (descriptor, text) = try Self.takeOnce(files)
            // The lock of a file without a name keeps nobody out.
            if Self.isNamed(descriptor, files) { return (descriptor, text) }
            _ = close(descriptor)
            do throws(LMDBError) {
                try files.makeDirectory()
            } catch {
                throw StoreError(error, path: files.directory)
            }
        }
        return try Self.takeOnce(files)
    }

    private static func takeOnce(_ files: DiskFiles) throws(StoreError) -> (Int32, [UInt8]) {
        let path = files.writerLock
        let descriptor: Int32
        do throws(LMDBError) {
            try OwnPlace.make(path, forOwnerOf: files.data)
            descriptor = try OwnPlace.open(path, O_RDWR | O_CREAT)
        } catch {
            throw StoreError(error, path: path)
        }
        let isTaken: Bool
        do throws(LMDBError) {
            isTaken = try OpenFileLock.take(descriptor)
        } catch {
            _ = close(descriptor)
            throw StoreError(error, path: path)
        }
        if !isTaken {
            let text = Self.read(descriptor)
            _ = close(descriptor)
            throw Self.refusal(text, files)
        }
        return (descriptor, Self.read(descriptor))
    }

    /// The process that holds the lock of this directory now; nil where none does.
    ///
    /// Keeps nobody from taking it meanwhile.
    static func holder(of files: DiskFiles) -> Int32? {
        let descriptor = try? OwnPlace.open(files.writerLock, O_RDONLY)
        guard let descriptor else { return nil }
        defer { _ = close(descriptor) }
        return OpenFileLock.isTaken(descriptor) ? Self.holder(Self.read(descriptor)) : nil
    }

    // MARK: The text

    private static func refusal(_ text: [UInt8], _ files: DiskFiles) -> StoreError {
        let pid = Self.holder(text)
        let isChecking = text.split(separator: 10).contains {
            $0.elementsEqual(Self.checkingMark.utf8)
        }
        let name = "process \(pid.map(String.init) ?? "?")"
        return StoreError(
            .inUse(pid: pid), path: files.directory,
            cause: isChecking
                ? "\(name) looks at all of this cache, and keeps writers away meanwhile"
                : "\(name) writes to this cache",
            remedy: isChecking
                ? "wait until it has ended, or stop it" : "stop it, or name another directory")
    }

    private static func holder(_ text: [UInt8]) -> Int32? {
        Int32(String(decoding: text.prefix { $0 != 10 }, as: UTF8.self))
    }

    /// How many came no further than opening, as the text of the last one tells; 0 where it tells
    /// something else.
    static func earlyEnds(_ text: [UInt8]) -> Int {
        let lines = text.split(separator: 10)
        guard lines.count > 1, lines[1].starts(with: "opened ".utf8),
            let count = Int(String(decoding: lines[1].dropFirst(7), as: UTF8.self)), count > 0
        else { return 0 }
        return min(count, 1 << 20)
    }

    /// Whether the last one to hold the lock owed removals.
    static func isOwed(_ text: [UInt8]) -> Bool {
        text.split(separator: 10).dropFirst(2).first?.elementsEqual(Self.owedMark.utf8) ?? false
    }

    private static func read(_ descriptor: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.size)
        let count = unsafe pread(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    private static let size = 64

    /// In one write, and empty lines cover what a longer text has left: a process that is killed before
    /// the end is cut off does not go on owing what it has paid.
    private static func write(_ text: String, _ descriptor: Int32) throws(LMDBError) {
        let bytes = Self.covering(text)
        let written = unsafe pwrite(descriptor, bytes, bytes.count, 0)
        // A part of so few bytes is all that there was room for.
        guard written < 0 || written == bytes.count else {
            throw LMDBError(returnCode: ENOSPC, operation: "write")
        }
        guard written >= 0 else { throw LMDBError(returnCode: errno, operation: "write") }
        // What is left behind the text are the empty lines.
        _ = ftruncate(descriptor, off_t(text.utf8.count))
    }

    static func covering(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        return bytes + [UInt8](repeating: 10, count: max(0, Self.size - bytes.count))
    }
}
