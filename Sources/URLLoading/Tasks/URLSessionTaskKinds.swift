/// A task that delivers the body of the response.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {
    public override init() { super.init() }

    override init(_ order: TaskOrder, of session: URLSession) {
        super.init(order, of: session)
    }
}

/// A task that reads and writes a connection.
///
/// Larder's transfers cannot give a connection away: such a task completes with
/// `URLError.unsupportedURL`.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    public override init() { super.init() }

    override init(_ order: TaskOrder, of session: URLSession) {
        super.init(order, of: session)
    }
}

/// A task that sends and receives the messages of a WebSocket.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    /// Why a connection was closed (RFC 6455 §7.4.1).
    public enum CloseCode: Int, Sendable {
        case invalid = 0
        case normalClosure = 1000
        case goingAway = 1001
        case protocolError = 1002
        case unsupportedData = 1003
        case noStatusReceived = 1005
        case abnormalClosure = 1006
        case invalidFramePayloadData = 1007
        case policyViolation = 1008
        case messageTooBig = 1009
        case mandatoryExtensionMissing = 1010
        case internalServerError = 1011
        case tlsHandshakeFailure = 1015
    }

    public override init() { super.init() }

    override init(_ order: TaskOrder, of session: URLSession) {
        super.init(order, of: session)
    }
}
