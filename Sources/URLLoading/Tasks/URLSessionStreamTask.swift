public import Foundation

/// A task that reads and writes a connection.
///
/// It connects when it is resumed. Reads are done one after the other, writes likewise, and both
/// beside each other; each may be asked for before the task is resumed. The task completes without an
/// error when both sides are closed and all has been read and written, or when its streams have been
/// captured; else with what went wrong, or `URLError.cancelled`. Handlers that wait then are called
/// with that error, before the delegate hears of the completion.
///
/// One that a data task has become (`URLSession.ResponseDisposition.becomeStream`) reads the body of the
/// response, as a data task would get it: without chunks and content codings. Its side that writes is
/// closed from the beginning, as the request is out and the connection may carry others. It completes
/// when the body has been read to its end, or the reading side has been closed; TLS cannot begin there
/// (`URLError.secureConnectionFailed`), nor can its streams be captured (`URLError.unsupportedURL`).
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    private let connection: StreamPurpose?

    public override init() {
        self.connection = nil
        super.init()
    }

    override init(_ order: borrowing TaskOrder, of session: URLSession) {
        self.connection = order.purpose as? StreamPurpose
        super.init(order, of: session)
    }

    /// Reads between `minBytes` and `maxBytes`.
    ///
    /// - Parameters:
    ///   - minBytes: fewer are given at the end of what the peer sends alone. Where it is more than
    ///     1 GiB, and so much has come, the read fails with `URLError.dataLengthExceedsMaximum`; that
    ///     is there for the next one, and the task goes on.
    ///   - timeout: in seconds from the call or, where that is later, from when the task was last
    ///     resumed; 0: none. The read fails with `URLError.timedOut` then; what has come is there for
    ///     the next one, and the task goes on.
    ///   - completionHandler: called once, on the delegate queue: data, whether the end was reached,
    ///     error.
    @preconcurrency
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        guard let connection = self.connection else {
            return completionHandler(nil, false, URLError(.unsupportedURL))
        }
        let maximum = max(0, maxBytes)
        connection.enqueue(
            .read(minimum: min(max(0, minBytes), maximum), maximum: maximum), timeout: timeout,
            .read(completionHandler))
    }

    /// Reads between `minBytes` and `maxBytes`; see above.
    ///
    /// - Returns: the data, and whether the end was reached.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        try await withCheckedThrowingContinuation {
            (done: CheckedContinuation<(Data?, Bool), any Error>) in
            self.readData(ofMinLength: minBytes, maxLength: maxBytes, timeout: timeout) {
                if let error = $2 {
                    done.resume(throwing: error)
                } else {
                    done.resume(returning: ($0, $1))
                }
            }
        }
    }

    /// Writes data, after those before it.
    ///
    /// - Parameters:
    ///   - timeout: in seconds as for reads; 0: none. The write fails with `URLError.timedOut` then, and
    ///     so does the task where a part of it may be out.
    ///   - completionHandler: called once, on the delegate queue, when the kernel has taken all, which
    ///     does not say that it has arrived; or with an error.
    @preconcurrency
    open func write(
        _ data: Data, timeout: TimeInterval,
        completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        guard let connection = self.connection else {
            return completionHandler(URLError(.unsupportedURL))
        }
        connection.enqueue(.write(data), timeout: timeout, .write(completionHandler))
    }

    /// Writes data, after those before it; see above.
    open func write(_ data: Data, timeout: TimeInterval) async throws {
        try await withCheckedThrowingContinuation {
            (done: CheckedContinuation<Void, any Error>) in
            self.write(data, timeout: timeout) {
                if let error = $0 { done.resume(throwing: error) } else { done.resume() }
            }
        }
    }

    /// When all that was asked before is done, gives the delegate the two streams of the connection
    /// (`urlSession(_:streamTask:didBecome:outputStream:)`); the task completes then, and takes no
    /// more.
    ///
    /// The streams are to be opened, and wait where there is nothing to read, or no room to write.
    /// Unlike Apple's they have no place in a run loop and send their delegates no events. They speak
    /// TLS where the task did. Without a delegate for them the connection is closed.
    open func captureStreams() {
        self.connection?.enqueue(.capture)
    }

    /// Closes the side that writes, when all that was asked before has been written.
    ///
    /// The peer sees the end. Later writes fail.
    open func closeWrite() {
        self.connection?.enqueue(.closeWrite)
    }

    /// Closes the side that reads, when all reads asked before are done.
    ///
    /// Later reads fail; what comes is not taken.
    open func closeRead() {
        self.connection?.enqueue(.closeRead)
    }

    /// Begins TLS, when all that was asked before is done; what is asked after it is done on TLS.
    ///
    /// The server's certificate must be for the host of the task; whether it is trusted, and which
    /// certificate of the client is shown, the task-level challenge method of the delegate says, and
    /// the system's rules where it does not. The task fails with what a load would fail with.
    /// Bytes that came unread before TLS make it fail, too: they were not protected.
    open func startSecureConnection() {
        self.connection?.enqueue(.secure)
    }

    /// Without effect: as on Apple's systems, TLS does not end before the connection does.
    @available(*, deprecated, message: "TLS cannot be disabled once it is enabled")
    open func stopSecureConnection() {}
}
