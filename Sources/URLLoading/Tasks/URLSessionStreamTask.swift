public import Foundation

/// A task that reads and writes a connection.
///
/// Larder's transfers speak HTTP and FTP, and cannot give a connection away: the task completes with
/// `URLError.unsupportedURL` when it is resumed, and so does whatever was asked of it.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    private let connection: ConnectionPurpose?

    public override init() {
        self.connection = nil
        super.init()
    }

    override init(_ order: TaskOrder, of session: URLSession) {
        self.connection = order.purpose as? ConnectionPurpose
        super.init(order, of: session)
    }

    /// Reads between `minBytes` and `maxBytes`.
    ///
    /// - Parameters:
    ///   - timeout: in seconds; 0: none.
    ///   - completionHandler: called on the delegate queue: data, whether the end was reached, error.
    @preconcurrency
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        self.wait { completionHandler(nil, false, $0) }
    }

    /// Writes data.
    ///
    /// - Parameters:
    ///   - timeout: in seconds; 0: none.
    ///   - completionHandler: called on the delegate queue when the kernel has taken it, or with an
    ///     error.
    @preconcurrency
    open func write(
        _ data: Data, timeout: TimeInterval,
        completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.wait(completionHandler)
    }

    /// Asks for the two streams of the connection, which the delegate would get; there is none.
    open func captureStreams() {}

    /// Closes the side that writes, when all has been written.
    open func closeWrite() {}

    /// Closes the side that reads.
    open func closeRead() {}

    /// Begins TLS.
    open func startSecureConnection() {}

    /// Ends TLS.
    @available(*, deprecated, message: "TLS cannot be disabled once it is enabled")
    open func stopSecureConnection() {}

    /// Whoever waits for something that cannot come hears when that is known.
    private func wait(_ waiter: @escaping ConnectionPurpose.Waiter) {
        guard let connection = self.connection else { return waiter(URLError(.unsupportedURL)) }
        connection.wait(waiter)
    }
}
