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
    public enum CloseCode: RawRepresentable, Hashable, Sendable {
        /// It is open, or was never opened.
        case invalid
        /// What it was for is done.
        case normalClosure
        /// An end goes away.
        case goingAway
        /// The other end broke the protocol.
        case protocolError
        /// The other end sent a kind of message that is not taken.
        case unsupportedData
        /// The other end gave no code; never sent.
        case noStatusReceived
        /// The connection was lost without a word; never sent.
        case abnormalClosure
        /// A message was not what its kind says, as text that is no UTF-8.
        case invalidFramePayloadData
        /// The other end did what is not allowed.
        case policyViolation
        /// A message was too long.
        case messageTooBig
        /// The server did not agree to an extension that is needed.
        case mandatoryExtensionMissing
        /// The server met something that it did not expect.
        case internalServerError
        /// The handshake of TLS failed; never sent.
        case tlsHandshakeFailure
        /// Another: 1012 to 1014 have meanings of their own, 3000 to 3999 those of libraries, 4000 to 4999
        /// those of programs.
        case other(Int)

        /// Never nil: what has no name is `other`.
        public init?(rawValue: Int) {
            self =
                switch rawValue {
                case 0: .invalid
                case 1000: .normalClosure
                case 1001: .goingAway
                case 1002: .protocolError
                case 1003: .unsupportedData
                case 1005: .noStatusReceived
                case 1006: .abnormalClosure
                case 1007: .invalidFramePayloadData
                case 1008: .policyViolation
                case 1009: .messageTooBig
                case 1010: .mandatoryExtensionMissing
                case 1011: .internalServerError
                case 1015: .tlsHandshakeFailure
                default: .other(rawValue)
                }
        }

        /// As it is sent.
        public var rawValue: Int {
            switch self {
            case .invalid: 0
            case .normalClosure: 1000
            case .goingAway: 1001
            case .protocolError: 1002
            case .unsupportedData: 1003
            case .noStatusReceived: 1005
            case .abnormalClosure: 1006
            case .invalidFramePayloadData: 1007
            case .policyViolation: 1008
            case .messageTooBig: 1009
            case .mandatoryExtensionMissing: 1010
            case .internalServerError: 1011
            case .tlsHandshakeFailure: 1015
            case .other(let code): code
            }
        }
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

    override init(_ order: borrowing TaskOrder, of session: URLSession) {
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
    /// A code of the peer's that has no name here is given as `.other(_:)`, none at all as
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

    /// Sends a ping, and returns when its pong has come.
    ///
    /// - Throws: what `sendPing(pongReceiveHandler:)` gives its handler.
    open func sendPing() async throws {
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            self.sendPing {
                if let error = $0 { done.resume(throwing: error) } else { done.resume() }
            }
        }
    }

    /// Closes the connection and says why.
    ///
    /// What was sent before goes out first. The task completes, without an error, when the peer has
    /// answered, or after 5 seconds, also while it is suspended; one that is not open yet is cancelled.
    ///
    /// - Parameters:
    ///   - closeCode: `.invalid`, `.noStatusReceived`, `.abnormalClosure`, `.tlsHandshakeFailure` and
    ///     what no peer would take are never sent: a close without a code is.
    ///   - reason: UTF-8, at most 123 bytes; more is cut off, at the end of a character.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        if self.connection?.close(closeCode, reason) != true { self.cancel() }
    }
}
