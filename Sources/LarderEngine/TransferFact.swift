package import LarderHTTP

/// What can be told of a transfer that a background session keeps.
package struct TransferFact: Sendable, Equatable {
    /// What it is doing.
    package enum Activity: Sendable, Equatable {
        /// Its response is arriving.
        case running
        /// It will be asked for as soon as fewer others are.
        case queued
        /// It broke off, and is asked for again then.
        ///
        /// - Parameter cause: why it broke off, for people.
        case waiting(until: Timestamp, cause: String)
    }

    /// Tells it from all others of its session.
    package var id: UInt64
    package var uri: String
    /// "" where the session is not split.
    package var principal: String
    package var begun: Timestamp
    /// When it is given up.
    package var deadline: Timestamp
    /// How far the response that is arriving has come, in bytes from the beginning of the whole.
    package var received: UInt64
    /// How long the whole is; nil where it is not known.
    package var length: UInt64?
    package var activity: Activity
}
