public import Foundation

/// A task that sends and receives the messages of a WebSocket (RFC 6455).
///
/// It connects and shakes hands when it is resumed: with the session's cookies, credentials and
/// additional fields; redirections and challenges are met as those of a load. What was sent and asked
/// before goes on when it is open; `urlSession(_:webSocketTask:didOpenWithProtocol:)` says so. It
/// completes without an error when either side has closed it by the closing handshake, with
/// `URLError.cancelled` after `cancel`, and else with what went wrong: `URLError.badServerResponse` for
/// a server that refuses or breaks the protocol, `URLError.networkConnectionLost` for a connection that
/// ends unannounced. Handlers that wait then are called with that error, or with
/// `URLError.networkConnectionLost` where there is none.
///
/// No extension is offered; the content is not compressed. libcurl dials, but its own WebSockets are
/// not used, and need not be there.
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

    private let connection: WebSocketPurpose?

    public override init() {
        self.connection = nil
        super.init()
    }

    override init(_ order: TaskOrder, of session: URLSession) {
        self.connection = order.purpose as? WebSocketPurpose
        super.init(order, of: session)
    }

    /// How long a message may be that is received, in bytes; 1 MiB at first.
    ///
    /// A longer one ends the task with `URLError.dataLengthExceedsMaximum`; the peer is told (1009).
    open var maximumMessageSize: Int {
        get { self.connection?.maximumLength ?? 1 << 20 }
        set { self.connection?.maximumLength = newValue }
    }

    /// What the connection was closed with; `.invalid` while it has not been.
    ///
    /// A code of the peer's that has no name here is given as `.normalClosure`, none at all as
    /// `.noStatusReceived`.
    open var closeCode: CloseCode { self.connection?.closeCode ?? .invalid }

    /// What was said in closing; nil while nothing has been.
    open var closeReason: Data? { self.connection?.closeReason }

    /// Sends a message, after those before it.
    ///
    /// - Parameter completionHandler: called once, on the delegate queue, when the kernel has taken it,
    ///   which does not say that it has arrived; or with an error.
    @preconcurrency
    open func send(
        _ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        guard let connection = self.connection else {
            return completionHandler(URLError(.unsupportedURL))
        }
        connection.send(message, completionHandler)
    }

    /// Sends a message, after those before it.
    open func send(_ message: Message) async throws {
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            self.send(message) {
                if let error = $0 { done.resume(throwing: error) } else { done.resume() }
            }
        }
    }

    /// Receives the next message; one that nobody asks for waits, and those behind it at the peer.
    ///
    /// - Parameter completionHandler: called once, on the delegate queue.
    @preconcurrency
    open func receive(
        completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void
    ) {
        guard let connection = self.connection else {
            return completionHandler(.failure(URLError(.unsupportedURL)))
        }
        connection.receive(completionHandler)
    }

    /// Receives the next message.
    open func receive() async throws -> Message {
        try await withCheckedThrowingContinuation { done in
            self.receive { done.resume(with: $0) }
        }
    }

    /// Sends a ping; those of the peer are answered without the program's doing.
    ///
    /// - Parameter pongReceiveHandler: called once, on the delegate queue, in the order of the pings:
    ///   when the pong has come, or with an error.
    @preconcurrency
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        guard let connection = self.connection else {
            return pongReceiveHandler(URLError(.unsupportedURL))
        }
        connection.ping(pongReceiveHandler)
    }

    /// Closes the connection and says why.
    ///
    /// What was sent before goes out first. The task completes, without an error, when the peer has
    /// answered, or after 5 seconds, also while it is suspended; one that is not open yet is cancelled.
    ///
    /// - Parameters:
    ///   - closeCode: `.invalid`, `.noStatusReceived`, `.abnormalClosure` and `.tlsHandshakeFailure`
    ///     are never sent: a close without a code is.
    ///   - reason: UTF-8, at most 123 bytes; more is cut off, at the end of a character.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        if self.connection?.close(closeCode, reason) != true { self.cancel() }
    }
}
