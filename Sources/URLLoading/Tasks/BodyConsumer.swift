import NIOCore

/// Takes the body of a task's response, piece by piece: a delegate, memory, a file, a sequence.
///
///     take* ─▶ finish | fail
///
/// One call at a time; the next comes when the one before has said that it is ready for it. That is
/// how a slow consumer slows the origin down.
protocol BodyConsumer: AnyObject, Sendable {
    /// Takes the next piece.
    ///
    /// - Parameter ready: to be called once, on any thread, also inside this call: `nil` for more, an
    ///   error to end the task with it.
    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void)
    /// The body is whole.
    ///
    /// - Parameter done: to be called once: the consumer has everything where it belongs.
    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void)
    /// Nothing more comes: cancelled or failed.
    func stop()
}

/// Why a consumer could not take a body: the error that its task ends with.
struct BodyConsumerError: Error, Sendable {
    let error: any Error
}
