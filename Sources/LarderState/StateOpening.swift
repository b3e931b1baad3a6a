import Glibc
import LarderCredentials
import LarderHTTP
import LarderLMDB

/// A state file that was opened with its key.
struct OpenedState {
    var storage: StateStorage
    var seal: RecordSeal
}

/// The key and the description of a state that is not made yet.
struct PlannedState: Sendable {
    let key: StateKey
    let meta: StateMeta
    let digestKey: Secret

    init(key: StateKey) {
        self.key = key
        let (meta, seal) = StateMeta.make(for: key)
        self.meta = meta
        self.digestKey = seal.digestKey
    }
}

/// How a state file is found, made or refused, and which key is its own.
///
/// A rotation writes the new key beside the old one, commits, and puts the new key in place. It may
/// end between any two of these steps, and so what opens the file decides:
///
/// | key | `.next` | opens it | then |
/// | --- | --- | --- | --- |
/// | old | new | old | it was not committed: `.next` goes |
/// | old | new | new | it was committed: `.next` takes the place of the key |
/// | new | – | new | nothing to do |
///
/// Where `.next` cannot take the place of the key, it is used as it lies there, and that is said.
struct StateOpening: Sendable {
    let directory: StateDirectory
    let source: KeySource
    let now: Timestamp
    let report: @Sendable (StateEvent) -> Void

    /// What a state would be made of; nil where there is one, or something in its place.
    ///
    /// Changes nothing, and says where there was one. A key that is there already is checked, as it
    /// will be used.
    func plan() throws(StateError) -> PlannedState? {
        var status = stat()
        guard unsafe stat(self.directory.data, &status) != 0, errno == ENOENT else { return nil }
        if case .file(let path) = self.source { try self.directory.checkIsOutside(path) }
        let guarded = self.source.isCredential
        let key = try KeyFile.read(self.source.path, isGuarded: guarded)
        let other = try KeyFile.read(self.source.otherPath, isGuarded: guarded)
        // A key alone may have been laid there for a state that is still to come.
        if key ?? other != nil, self.directory.hadData {
            self.report(.missing(path: self.directory.data))
        }
        return PlannedState(key: key ?? other ?? StateKey())
    }

    /// Opens the state as its only user, and makes it where there is none.
    ///
    /// - Parameter plan: what it is made of then, if nobody has made a key meanwhile.
    func locked(
        making plan: PlannedState? = nil
    ) throws(StateError) -> (OpenedState, StateLock) {
        try self.directory.make()
        let lock = try StateLock.acquire(self.directory)
        return (try self.open(making: plan), lock)
    }

    /// Opens the state for a moment, as one of its users, and makes it where there is none.
    ///
    /// - Parameter known: the data file that was found to be sound before: it is not examined again.
    func borrowed(
        _ known: FilePlace?
    ) throws(StateError) -> (OpenedState, StateLock) {
        try self.directory.make()
        let lock = try StateLock.borrow(self.directory)
        if let known, self.directory.dataPlace == known { return (try self.openExisting(), lock) }
        return (try self.open(making: nil), lock)
    }

    private func open(making plan: PlannedState?) throws(StateError) -> OpenedState {
        if case .file(let path) = self.source { try self.directory.checkIsOutside(path) }
        let found = try self.examine()
        let guarded = self.source.isCredential
        let key = try KeyFile.read(self.source.path, isGuarded: guarded)
        let other = try KeyFile.read(self.source.otherPath, isGuarded: guarded)
        if found != .state {
            try self.make(key ?? other, plan)
            // A key that the service manager gave may be new.
            if found == .nothing, key ?? other != nil, !self.source.isCredential {
                self.report(.begunAnew)
            }
        } else if key == nil, other == nil {
            throw StateError(
                .badKeyFile, path: self.source.path,
                cause:
                    "there is no key file, and the state of \(self.directory.path) needs its key",
                remedy: "put the key file back, or move \(self.directory.dataFiles) away to "
                    + "begin anew")
        }
        return try self.openExisting()
    }

    /// What lies where the state should.
    private enum Found { case state, nothing, setAside }

    /// Looks at the file, without LMDB at first; one that is damaged is set aside.
    private func examine() throws(StateError) -> Found {
        let path = self.directory.data
        if Environment.shared(path: path) != nil {
            throw StateError(LMDBError(.alreadyOpen, operation: "open"), path: path)
        }
        let reason: String
        do throws(LMDBError) {
            switch try FileHeader.check(path: path) {
            case .absent:
                guard self.directory.dataIsEmpty else { return .nothing }
                // It gets its name when it is whole: somebody has cut it.
                reason = "it is empty"
            case .unsound(let why): reason = why
            case .sound, .short:
                let found = try FileStructure.check(path: path)
                if found.isSound {
                    guard let why = try self.objection() else { return .state }
                    if why.isEmpty { return .nothing }
                    reason = why
                } else {
                    reason = "\(found.problemCount) of its pages are damaged"
                }
            }
        } catch {
            throw StateError(error, path: path)
        }
        let name = try self.directory.setAside(second: self.now.seconds)
        self.report(.setAside(name: name, reason: reason))
        return .setAside
    }

    /// Why a sound LMDB file is no state: empty where it is one that was never finished.
    private func objection() throws(LMDBError) -> String? {
        let storage: StateStorage
        do throws(LMDBError) {
            storage = try StateStorage.open(self.directory.data)
        } catch {
            guard error.code == .notFound || error.code == .corrupted else { throw error }
            // Its maker ended before the databases were there: there is nothing in it.
            return try self.isBare() ? "" : "not a state file"
        }
        defer { storage.environment.close() }
        switch try storage.readMeta() {
        case .meta, .otherFormat: return nil
        case .damaged: return "its description is damaged"
        case nil: return try storage.all().isEmpty ? "" : "its description is missing"
        }
    }

    /// Whether no transaction was ever committed to the file.
    private func isBare() throws(LMDBError) -> Bool {
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(isReadOnly: true))
        defer { environment.close() }
        return try environment.information().lastTransaction == 0
    }

    private func make(_ found: StateKey?, _ plan: PlannedState?) throws(StateError) {
        // The file before the state: a state whose key was never written could not be opened.
        let key = found ?? plan?.key ?? StateKey()
        let meta = plan.flatMap { $0.key == key ? $0.meta : nil } ?? StateMeta.make(for: key).meta
        if case .file(let path) = self.source, try KeyFile.read(path, isGuarded: false) == nil {
            // It need not lie beside the state.
            try StateDirectory.makeAll(KeyFile.directory(of: path))
            try KeyFile.write(key, to: path)
            self.report(.keyMade(path: path))
        }
        do throws(LMDBError) {
            self.directory.removeNext()
            try StateStorage.make(self.directory.next, meta: meta)
        } catch {
            self.directory.removeNext()
            throw StateError(error, path: self.directory.data)
        }
        // Its table of readers is made anew under the other name.
        try KeyFile.rename(self.directory.next, to: self.directory.data)
        self.directory.removeNext()
    }

    /// Opens what is there, and finishes or undoes a rotation of the key.
    ///
    /// - Parameter room: how large it should be able to grow at least.
    func openExisting(room: UInt64 = 0) throws(StateError) -> OpenedState {
        let storage: StateStorage
        let meta: StateMeta
        do throws(LMDBError) {
            storage = try StateStorage.open(self.directory.data, room: room)
        } catch {
            throw StateError(error, path: self.directory.data)
        }
        do throws(StateError) {
            try self.directory.restrictData()
            meta = try self.meta(of: storage)
            return OpenedState(storage: storage, seal: try self.seal(meta, storage))
        } catch {
            storage.environment.close()
            throw error
        }
    }

    private func meta(of storage: StateStorage) throws(StateError) -> StateMeta {
        let found: StateMeta.Finding?
        do throws(LMDBError) {
            found = try storage.readMeta()
        } catch {
            throw StateError(error, path: self.directory.data)
        }
        switch found {
        case .meta(let meta): return meta
        case .otherFormat(let format):
            throw StateError(
                .unavailable, path: self.directory.data,
                cause: "it is of format \(format), which this release does not know",
                remedy: "use the release that wrote it, or move \(self.directory.dataFiles) away "
                    + "to begin anew")
        case .damaged, nil:
            throw StateError(
                .damaged, path: self.directory.data, cause: "its description is damaged",
                remedy: "restart larder: it looks at the file and says what is lost")
        }
    }

    /// The seal of the key that the file was written with; finishes or undoes a rotation.
    private func seal(_ meta: StateMeta, _ storage: StateStorage) throws(StateError) -> RecordSeal {
        let guarded = self.source.isCredential
        let key = try KeyFile.read(self.source.path, isGuarded: guarded)
        let other = try KeyFile.read(self.source.otherPath, isGuarded: guarded)
        if let key, let seal = meta.seal(with: key) {
            if other != nil, case .file = self.source {
                try KeyFile.remove(self.source.otherPath)
                self.report(.rotationUndone)
            }
            return seal
        }
        guard let other, let seal = meta.seal(with: other) else {
            throw StateError(
                .wrongKey, path: self.source.path,
                cause: "this key does not open the state in \(self.directory.path)",
                remedy: "put the right key there, or move \(self.directory.dataFiles) away to "
                    + "begin anew; nothing was changed")
        }
        switch self.source {
        case .file(let path):
            self.putInPlace(path)
            return seal
        case .credential:
            guard let key else { return seal }
            let rotation = StateRotation(storage: storage, old: seal, key: key)
            let new = try rotation.perform(path: self.directory.data)
            self.report(.rotationFinished)
            return new.seal
        }
    }

    /// Puts the key that opens the state in the place of the one that does not; where that cannot be
    /// done, it is there all the same.
    private func putInPlace(_ path: String) {
        do throws(StateError) {
            try KeyFile.rename(self.source.otherPath, to: path)
            self.report(.rotationFinished)
        } catch {
            self.report(
                .rotationUnfinished(key: self.source.otherPath, path: path, cause: error.cause))
        }
    }

    /// Puts the key of a rotation in its place that was committed without that; does nothing where
    /// there was none.
    func finishRotation(of storage: StateStorage) throws(StateError) {
        guard case .file(let path) = self.source else { return }
        let next = self.source.otherPath
        guard let other = try KeyFile.read(next, isGuarded: false),
            try self.meta(of: storage).seal(with: other) != nil
        else { return }
        try KeyFile.rename(next, to: path)
        self.report(.rotationFinished)
    }
}
