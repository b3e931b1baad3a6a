package import LarderCookies
package import LarderCredentials
package import LarderHTTP
import LarderLMDB

/// What a default session remembers beyond its process: its principals' cookies and credentials, each
/// record sealed.
///
/// ```
/// open ─▶ [planned ─▶] made (load │ apply │ rotate)* ─▶ close
/// ```
///
/// One that is planned holds nothing and leaves nothing on the disk: the first record makes it.
///
/// One process has a state open at a time, or several share it: then each holds it only while it reads
/// or writes something (``shared(_:now:report:)``). Its work is done on a thread of its own, one call after
/// the other. A call that throws has changed nothing, and the next one is tried as if it were the
/// first: a disk that was full may have room again.
package actor StateFile {
    let thread: SerialThread
    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe self.thread.asUnownedSerialExecutor()
    }

    let configuration: StateConfiguration
    let directory: StateDirectory
    let opening: StateOpening
    private let report: @Sendable (StateEvent) -> Void
    /// nil where the state is this process's alone.
    let sharing: StateSharing?
    /// What a state is made of with its first record; nil where there is one.
    private var plan: PlannedState?
    /// nil while it is planned, once it is closed, and while it cannot be opened again.
    var opened: OpenedState?
    /// nil while it is planned, and once it is closed.
    var lock: StateLock?
    /// The data file that others use, too, and that was found to be sound.
    var known: FilePlace?
    var isClosed = false

    /// Opens the state, and makes one where there is none; waits for the disk.
    ///
    /// - Parameters:
    ///   - isMadeWhenNeeded: make none before there is something to keep. Another process may be
    ///     first then, and `apply` throws `.inUse`.
    ///   - report: hears what a person should know; any thread, must not block.
    /// - Throws: `.inUse`, `.wrongKey`, `.badKeyFile`, and what the disk makes of it. Nothing was
    ///   overwritten then.
    package static func open(
        _ configuration: StateConfiguration, now: Timestamp, isMadeWhenNeeded: Bool = false,
        report: @escaping @Sendable (StateEvent) -> Void
    ) throws(StateError) -> StateFile {
        let directory = StateDirectory(path: configuration.directory)
        let opening = StateOpening(
            directory: directory, source: configuration.key, now: now, report: report)
        if isMadeWhenNeeded, let plan = try opening.plan() {
            return StateFile(configuration, opening, digestKey: plan.digestKey, plan: plan)
        }
        let (opened, lock) = try opening.locked()
        return StateFile(
            configuration, opening, digestKey: opened.seal.digestKey, opened: opened, lock: lock)
    }

    init(
        _ configuration: StateConfiguration, _ opening: StateOpening, digestKey: Secret,
        plan: PlannedState? = nil, opened: OpenedState? = nil, lock: StateLock? = nil,
        sharing: StateSharing? = nil
    ) {
        self.thread = SerialThread(label: "larder.state")
        self.configuration = configuration
        self.directory = opening.directory
        self.opening = opening
        self.plan = plan
        self.opened = opened
        self.lock = lock
        self.report = opening.report
        self.sharing = sharing
        self.digests = KeyedDigest(digestKey)
    }

    /// Whether there is a file; until then nothing is kept, and no key is on the disk.
    package var isMade: Bool { self.opened != nil }

    /// Makes the state that was planned, or opens the one that somebody else has made meanwhile.
    func make() throws(StateError) {
        guard let plan = self.plan else { return }
        (self.opened, self.lock) = try self.opening.locked(making: plan)
        self.plan = nil
    }

    /// Digests under a key that belongs to the state, also to one that is planned: the same after a
    /// restart, others after a rotation (which takes effect on them with the next start).
    package nonisolated let digests: KeyedDigest

    /// Ends the use of the file; harmless when repeated.
    package func close() {
        self.opened?.storage.environment.close()
        self.opened = nil
        self.plan = nil
        self.lock = nil
        self.isClosed = true
    }

    // MARK: Principals

    /// The cookies of a principal, as a jar wants them.
    package nonisolated func cookies(of principal: String) -> some CookieStorage {
        PrincipalCookies(state: self, principal: principal)
    }

    /// The permanent credentials of a principal, as a store wants them.
    package nonisolated func credentials(of principal: String) -> some CredentialStorage {
        PrincipalCredentials(state: self, principal: principal)
    }

    /// The principals of whom anything is kept, by name; "" where a session is not split.
    package func principals() throws(StateError) -> [String] {
        if self.plan != nil { return [] }
        guard try self.take() else { return [] }
        defer { self.giveBack() }
        return try self.read { (opened) throws(LMDBError) in
            try opened.storage.all().compactMap { sealed in
                guard RecordSeal.kind(of: sealed.key) == .principal,
                    case .principal(let name) = opened.seal.open(sealed.value, under: sealed.key)
                else { return nil }
                return name
            }.sorted()
        }
    }

    /// Removes all that is kept of a principal; returns how many records that were.
    @discardableResult
    package func removeAll(of principal: String) throws(StateError) -> Int {
        if self.plan != nil { return 0 }
        guard try self.take() else { return 0 }
        defer { self.giveBack() }
        return try self.write { (transaction, opened) throws(LMDBError) in
            let prefix = opened.seal.prefix(of: principal)
            let all = try opened.storage.all(prefix, transaction.reading)
            for sealed in all { try transaction.delete(opened.storage.records, sealed.key.span) }
            return all.count { RecordSeal.kind(of: $0.key) != .principal }
        }
    }

    // MARK: Records

    /// A principal's records of these kinds, in the order of the kinds; tells of those that do not
    /// open.
    func records(_ kinds: [StateRecord.Kind], of principal: String) throws(StateError)
        -> [StateRecord]
    {
        if self.plan != nil { return [] }
        guard try self.take() else { return [] }
        defer { self.giveBack() }
        let (found, unreadable) = try self.read { (opened) throws(LMDBError) in
            var found: [StateRecord] = []
            var unreadable = 0
            let prefix = opened.seal.prefix(of: principal)
            for kind in kinds {
                for sealed in try opened.storage.all(prefix + [kind.rawValue]) {
                    if let record = opened.seal.open(sealed.value, under: sealed.key) {
                        found.append(record)
                    } else {
                        unreadable += 1
                    }
                }
            }
            return (found, unreadable)
        }
        self.noteRead()
        if unreadable > 0 { self.report(.unreadable(records: unreadable)) }
        return found
    }

    /// What is to become of a record.
    enum Change {
        case put(StateRecord)
        /// Removes what has the identity of this record.
        case remove(StateRecord)

        var keepsSomething: Bool {
            if case .put = self { return true }
            return false
        }
    }

    /// Makes changes last, all or none of them.
    func apply(_ changes: [Change], of principal: String) throws(StateError) {
        if changes.isEmpty { return }
        if self.plan != nil {
            guard changes.contains(where: \.keepsSomething) else { return }
            try self.make()
        }
        guard try self.take(making: changes.contains(where: \.keepsSomething)) else { return }
        defer { self.giveBack() }
        let seal = try self.current().seal
        let prefix = seal.prefix(of: principal)
        let owner = try seal.sealed(
            .principal(principal), of: principal, path: self.directory.data)
        var edits: [(key: [UInt8], value: [UInt8]?)] = []
        for change in changes {
            switch change {
            case .put(let record):
                let sealed = try seal.sealed(record, of: principal, path: self.directory.data)
                edits.append((sealed.key, sealed.value))
            case .remove(let record): edits.append((seal.key(record, of: principal), nil))
            }
        }
        try self.beginTurn()
        try self.write { (transaction, opened) throws(LMDBError) in
            let records = opened.storage.records
            for edit in edits {
                if let value = edit.value {
                    try transaction.put(records, edit.key.span, value.span)
                } else {
                    try transaction.delete(records, edit.key.span)
                }
            }
            // The principal's own record is there as long as any other is.
            try transaction.delete(records, owner.key.span)
            if try opened.storage.holds(prefix, transaction.reading) {
                try transaction.put(records, owner.key.span, owner.value.span)
            }
        }
        self.endTurn()
    }

    // MARK: The file

    /// The open file; one that could not be opened again the last time is tried once more.
    func current() throws(StateError) -> OpenedState {
        if let opened = self.opened { return opened }
        guard self.lock != nil else {
            throw StateError(
                .unavailable, path: self.directory.data, cause: "the state is closed",
                remedy: "restart larder")
        }
        let opened = try self.opening.openExisting()
        self.opened = opened
        return opened
    }

    private func read<R>(
        _ body: (OpenedState) throws(LMDBError) -> R
    ) throws(StateError) -> R {
        let opened = try self.current()
        do throws(LMDBError) { return try body(opened) } catch {
            throw self.failed(error)
        }
    }

    /// The error to throw; a file that others use, too, is examined anew where it is damaged.
    private func failed(_ error: LMDBError) -> StateError {
        let failure = StateError(error, path: self.directory.data)
        if self.sharing != nil, failure.code == .damaged { self.known = nil }
        return failure
    }

    private func write<R>(
        _ body: (borrowing WriteTransaction, OpenedState) throws(LMDBError) -> R
    ) throws(StateError) -> R {
        var mayReopen = true
        while true {
            let opened = try self.current()
            do throws(LMDBError) {
                try self.checkPlace(of: opened)
                return try opened.storage.environment.write { (transaction) throws(LMDBError) in
                    try body(transaction, opened)
                }
            } catch {
                switch error.code {
                case .mapFull:
                    if try self.grow() { continue }
                // `MDB_PANIC`: "Update of meta page failed or environment had fatal error". The file
                // itself is whole; it is the environment that is given up.
                case .panic, .badTransaction:
                    if mayReopen {
                        mayReopen = false
                        try self.reopen()
                        continue
                    }
                default: break
                }
                throw self.failed(error)
            }
        }
    }

    /// Throws where the name of the file leads to another one, or to none.
    func checkPlace(of opened: OpenedState) throws(LMDBError) {
        guard try !opened.storage.environment.isFile(at: self.directory.data) else { return }
        throw LMDBError(.noSuchFile, operation: "the file was replaced or deleted")
    }

    /// Opens the file with twice the room; false where it has as much as it may.
    func grow() throws(StateError) -> Bool {
        let size = try self.current().storage.mapSize
        let larger = min(size &* 2, max(self.configuration.capacity.bytes, size))
        guard larger > size else { return false }
        try self.reopen(room: larger)
        return true
    }

    /// Opens what lies there now, if the key is its own: it may not be what was open before.
    func reopen(room: UInt64 = 0) throws(StateError) {
        self.opened?.storage.environment.close()
        self.opened = nil
        self.opened = try self.opening.openExisting(room: room)
    }
}
