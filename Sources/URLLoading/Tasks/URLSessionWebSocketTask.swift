public import Foundation
import Synchronization

/// A task that sends and receives the messages of a WebSocket (RFC 6455).
///
/// The libcurl that Larder transfers with need not have WebSockets. Where it has none, the task
/// completes with `URLError.unsupportedURL` when it is resumed, and so does whatever was asked of it.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    /// Why a connection was closed (RFC 6455 §7.4.1).
    public enum CloseCode: Int, Sendable {
        /// It is open, or was never opened.
        case invalid = 0
        /// What it was for is done.
        case normalClosure = 1000
        /// An end goes away.
        case goingAway = 1001
        /// The other end broke the protocol.
        case protocolError = 1002
        /// The other end sent a kind of message that is not taken.
        case unsupportedData = 1003
        /// The other end gave no code; never sent.
        case noStatusReceived = 1005
        /// The connection was lost without a word; never sent.
        case abnormalClosure = 1006
        /// A message was not what its kind says, as text that is no UTF-8.
        case invalidFramePayloadData = 1007
        /// The other end did what is not allowed.
        case policyViolation = 1008
        /// A message was too long.
        case messageTooBig = 1009
        /// The server did not agree to an extension that is needed.
        case mandatoryExtensionMissing = 1010
        /// The server met something that it did not expect.
        case internalServerError = 1011
        /// The handshake of TLS failed; never sent.
        case tlsHandshakeFailure = 1015
    }

    /// What goes over a WebSocket.
    public enum Message: Sendable {
        /// Bytes.
        case data(Data)
        /// Text, which goes as UTF-8.
        case string(String)
    }

    private let connection: ConnectionPurpose?
    private let limit = Mutex(1 << 20)

    public override init() {
        self.connection = nil
        super.init()
    }

    override init(_ order: TaskOrder, of session: URLSession) {
        self.connection = order.purpose as? ConnectionPurpose
        super.init(order, of: session)
    }

    /// How long a message may be that is received, in bytes.
    ///
    /// 1 MiB at first; a longer one ends the task.
    open var maximumMessageSize: Int {
        get { self.limit.withLock { $0 } }
        set { self.limit.withLock { $0 = max(0, newValue) } }
    }

    /// What the peer closed with; `.invalid` while it has not.
    open var closeCode: CloseCode { .invalid }

    /// What the peer said in closing; nil while it has said nothing.
    open var closeReason: Data? { nil }

    /// Sends a message, after those before it.
    ///
    /// - Parameter completionHandler: called on the delegate queue when the kernel has taken it, or with
    ///   an error.
    @preconcurrency
    open func send(
        _ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.wait(completionHandler)
    }

    /// Sends a message, after those before it.
    open func send(_ message: Message) async throws {
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            self.wait { done.resume(throwing: $0) }
        }
    }

    /// Receives the next message.
    ///
    /// - Parameter completionHandler: called on the delegate queue.
    @preconcurrency
    open func receive(
        completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void
    ) {
        self.wait { completionHandler(.failure($0)) }
    }

    /// Receives the next message.
    open func receive() async throws -> Message {
        try await withCheckedThrowingContinuation { done in
            self.wait { done.resume(throwing: $0) }
        }
    }

    /// Sends a ping.
    ///
    /// - Parameter pongReceiveHandler: called on the delegate queue when the pong has come, or with an
    ///   error.
    @preconcurrency
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        self.wait(pongReceiveHandler)
    }

    /// Closes the connection and says why; the task ends with `URLError.cancelled`.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        self.cancel()
    }

    /// Whoever waits for something that cannot come hears when that is known.
    private func wait(_ waiter: @escaping ConnectionPurpose.Waiter) {
        guard let connection = self.connection else { return waiter(URLError(.unsupportedURL)) }
        connection.wait(waiter)
    }
}
