import LarderLMDB

/// The change of the key.
extension StateFile {
    /// What a rotation did.
    package struct Rotation: Sendable, Equatable {
        package var records: Int
    }

    /// The steps of a rotation after which the process may end.
    enum RotationStep: CaseIterable { case keyWritten, committed, keyInPlace }

    /// Seals everything anew with a new key, and puts that in the place of the old one.
    ///
    /// Whenever the process ends meanwhile, the file opens at the next start with the key that it
    /// is sealed with by then. One that could not be finished before is finished first: its key is
    /// written over by no other. Throws `.badKeyFile` where the key is the service manager's,
    /// `.damaged` where records do not open, and what keeps the key file from being replaced, which
    /// is found out before anything is sealed.
    @discardableResult
    package func rotate(
        to key: StateKey = StateKey()
    ) throws(StateError) -> Rotation {
        try self.rotate(to: key) { _ in }
    }

    func rotate(
        to key: StateKey,
        _ reached: (RotationStep) throws(StateError) -> Void
    ) throws(StateError) -> Rotation {
        guard self.sharing == nil else {
            throw StateError(
                .unavailable, path: self.directory.path, cause: "others use this state, too",
                remedy: "stop them, and change the key while one alone has it")
        }
        try self.make()
        guard case .file(let path) = self.configuration.key else {
            throw StateError(
                .badKeyFile, path: self.configuration.key.path,
                cause: "this key is a credential that the service manager gave",
                remedy: "give the new key as larder.key and the old one as larder.key.previous, "
                    + "and restart larder")
        }
        let next = self.configuration.key.otherPath
        try self.opening.finishRotation(of: try self.current().storage)
        // It may be a mount point, which nothing can be renamed over (rename(2), EBUSY).
        if let old = try KeyFile.read(path, isGuarded: false) { try KeyFile.write(old, to: path) }
        try KeyFile.write(key, to: next)
        try reached(.keyWritten)
        let outcome: StateRotation.Outcome
        do throws(StateError) {
            outcome = try self.reseal(with: key)
        } catch {
            // A commit that fails while the meta page is written may or may not be there. What the
            // file says decides, now as at the next start.
            try self.reopen()
            throw error
        }
        try reached(.committed)
        self.opened?.seal = outcome.seal
        try KeyFile.rename(next, to: path)
        try reached(.keyInPlace)
        return Rotation(records: outcome.records)
    }

    private func reseal(
        with key: StateKey
    ) throws(StateError) -> StateRotation.Outcome {
        while true {
            let opened = try self.current()
            do throws(LMDBError) {
                try self.checkPlace(of: opened)
            } catch {
                // What lies there is sealed with the key that would be replaced.
                throw StateError(error, path: self.directory.data)
            }
            let rotation = StateRotation(storage: opened.storage, old: opened.seal, key: key)
            do throws(StateError) {
                return try rotation.perform(path: self.directory.data)
            } catch {
                guard error.code == .full, try self.grow() else { throw error }
            }
        }
    }
}
