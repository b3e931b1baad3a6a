package import LarderHTTP

/// Where a session's state lies.
package struct StateConfiguration: Sendable, Equatable {
    /// The session's alone; made (mode 0700) where it does not exist.
    package var directory: String
    package var key: KeySource
    /// Beyond this nothing more is kept: clients can make a session keep things.
    package var capacity: ByteCount

    package init(directory: String, key: KeySource, capacity: ByteCount = .mebibytes(1024)) {
        self.directory = directory
        self.key = key
        self.capacity = capacity
    }
}

/// What a person should know of a state file; holds no secret.
package enum StateEvent: Sendable, Equatable {
    /// There was neither key nor state.
    case keyMade(path: String)
    /// There was a key, and no state that it belongs to: a new one was made. What there may have been
    /// was deleted or moved away.
    case begunAnew
    /// There is a key, and the file that it belongs to has lain here and does no more. A new one is made
    /// when there is something to keep.
    case missing(path: String)
    /// The file could not be used, and lies under this name beside the new one. What it held is lost
    /// to the session.
    case setAside(name: String, reason: String)
    /// A change of the key that was broken off was found and finished.
    case rotationFinished
    /// A change of the key that was broken off was found; it had changed nothing, and its key is gone.
    case rotationUndone
    /// The key in the file `key` is the one that opens the state, and could not take the place of
    /// `path`.
    case rotationUnfinished(key: String, path: String, cause: String)
    /// This many records do not open: they were changed on the disk. They stay, and are skipped.
    case unreadable(records: Int)
}
