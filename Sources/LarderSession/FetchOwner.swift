package import LarderStore

/// Owns fetches: what is owned goes on whoever has asked for it leaves, and its owner hears how it
/// ended.
///
/// `stores · ended`, the latter only where the first said yes. Any thread; must not block.
package protocol FetchOwner: AnyObject, Sendable {
    /// A response has begun to arrive that is being stored: a whole one, or what is missing of a stored part.
    ///
    /// - Parameters:
    ///   - length: of what arrives, in bytes; nil where it is not known beforehand.
    ///   - received: how far it has come, in bytes from the beginning of the whole; any thread, at any time.
    /// - Returns: whether the fetch is owned from now on.
    func fetch(stores length: UInt64?, received: @escaping @Sendable () -> UInt64) -> Bool
    /// Whether what it owns is to go on where nobody else wants it; else that is as if nobody owned it.
    var keepsFetch: Bool { get }
    /// Nothing more comes of it, and the store has all that it is going to have.
    func fetchEnded(_ ending: FetchEnding)
}

/// How a fetch ended that was owned.
package enum FetchEnding: Sendable, Equatable {
    /// Lookups find the whole response.
    case stored
    /// All that was asked for has come and is stored; it was a part, which may have been the last one.
    case partStored
    /// The body broke off; what came of it is stored as a part, or nothing is.
    case brokenOff
    /// The store did not take it, whatever came.
    case turnedAway(SinkAbandonment)
}
