package import NIOCore

/// What a body source has for its reader right now.
package enum BodyStep: Sendable {
    /// The next bytes; never empty.
    case piece(ByteBuffer)
    /// Nothing yet: the reader will be woken, and asks again then.
    case pending
    /// The body is whole. Trailer fields, if there were any.
    case end(trailers: Fields)
    /// The body will never be whole: whoever sends it on must cut it off, not end it.
    case failed(BodyFailure)
}

/// Why a body ended before it was whole.
package enum BodyFailure: Error, Hashable, Sendable {
    /// The client vanished or broke the framing of its own request content.
    case client(String)
    /// The origin broke off, stalled or lied about its length.
    case upstream(UpstreamFailure)
    /// The store could not give back what it holds (damage, a vanished file).
    case store(String)
    /// The exchange was cancelled, for example at shutdown.
    case cancelled
}

/// A body that is pulled, piece by piece, by one reader.
///
/// ```
/// attach(wake) ─▶ next() ─▶ piece … piece ─▶ pending ─(wake)─▶ next() … ─▶ end | failed
/// ```
///
/// Nothing is produced that is not asked for, beyond a bounded read-ahead: that is how
/// back-pressure travels. `next` is called by one thread at a time; `wake` may come from any
/// thread, once for each `pending`, also before `next` has returned it. After `end` or `failed`,
/// or after `cancel`, `wake` is not called again.
package protocol BodySource: AnyObject, Sendable {
    /// Names the reader. Called once, before the first `next`.
    func attach(wake: @escaping @Sendable () -> Void)
    /// Takes the next piece, without blocking.
    func next() -> BodyStep
    /// Says that the reader has gone. Harmless at any time, also twice.
    func cancel()
}
