public import Foundation

/// One loading of a URL by a session.
open class URLSessionTask: NSObject, NSCopying, @unchecked Sendable {
    open internal(set) var taskIdentifier = 0
    open internal(set) var originalRequest: URLRequest?
    open internal(set) var currentRequest: URLRequest?
    open internal(set) var response: URLResponse?
    open var delegate: (any URLSessionTaskDelegate)?
    open var taskDescription: String?
    open var priority: Float = URLSessionTask.defaultPriority

    public static let defaultPriority: Float = 0.5
    public static let lowPriority: Float = 0.25
    public static let highPriority: Float = 0.75

    override init() {
        super.init()
    }

    open override func copy() -> Any { self }
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

/// A task that delivers the body of the response.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}

/// A data task that sends a body.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {}

/// A task that writes the body of the response to a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {}

/// A task that reads and writes a connection.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {}

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
}
