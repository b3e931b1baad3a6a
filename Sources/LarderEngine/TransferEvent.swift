package import LarderHTTP
package import LarderState

/// What a person should know of transfers.
package enum TransferEvent: Sendable {
    case ended(uri: String, TransferEnd)
    /// No more are kept at a time: others end with their clients.
    ///
    /// - Parameter share: how many of these one client may have.
    case tooMany(limit: Int, share: Int)
    /// Those under way are not written down for now, and end with the process.
    case notWritten(StateError)
    /// Those of before cannot be read, and are not gone on with.
    case notTakenUp(StateError)
}

/// How a transfer ended.
package enum TransferEnd: Sendable, Equatable {
    /// The whole response is stored.
    case stored
    case cancelled
    /// It was not complete in time.
    case expired(cause: String)
    /// What the origin answered in place of it is its last word.
    case answered(StatusCode)
    /// Whoever asked for it may not have it any more, or it cannot be asked for.
    case refused(String)
    /// The whole has come, or might have, and the store did not keep it.
    case notKept(String)
}
