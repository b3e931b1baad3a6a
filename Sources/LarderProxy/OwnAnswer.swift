package import LarderHTTP
package import LarderSession
package import NIOCore

/// An answer that the proxy gives of its own, not on behalf of an origin.
///
/// It says what is wrong and never repeats what was received: a request's fields and target may
/// hold secrets, and an answer may be shown in a page of another origin.
package struct OwnAnswer: Sendable {
    /// What the answer carries.
    package enum Content: Sendable, Equatable {
        /// A problem document, or the same as a page, by `Accept`.
        case problem
        case nothing
        /// `message/http`: a request as it was received (RFC 9110 §9.3.8).
        case message(ByteBuffer)
    }

    package var status: StatusCode
    /// The proxy error type (RFC 9209 §2.3); nil where nothing failed.
    package var error: ProxyErrorType?
    /// The host that was asked (RFC 9209 §2.1.2); nil where none was.
    package var nextHop: String?
    /// What a parent answered where it did not lead to the host (RFC 9209 §2.1.4).
    package var receivedStatus: StatusCode?
    /// For people: one line, no secrets.
    package var detail: String
    package var fields: Fields
    package var cacheStatus: CacheStatus?
    package var content: Content
    /// The access rule that denied the request, for the log; the client is not told.
    package var rule: String?

    package init(
        _ status: UInt16, error: ProxyErrorType? = nil, detail: String = "",
        fields: Fields = Fields(),
        cacheStatus: CacheStatus? = nil, content: Content = .problem
    ) {
        self.status = StatusCode(status)
        self.error = error
        self.detail = detail
        self.fields = fields
        self.cacheStatus = cacheStatus
        self.content = content
    }

    /// A request head or its content that breaks the rules of HTTP.
    package init(_ error: HeadError) {
        self.init(
            error.status.rawValue, error: .httpRequestError,
            detail: "\(error.reason.rawValue): \(error.detail)"
                + Self.named(Self.setting(behind: error.reason)))
    }

    private static func named(_ setting: String?) -> String {
        setting.map { " (the proxy's setting \($0))" } ?? ""
    }

    private static func setting(of limit: UpstreamFailure.Limit) -> String {
        switch limit {
        case .resolve: "timeouts.resolve"
        case .connect: "timeouts.connect"
        case .response: "timeouts.response"
        case .stall: "timeouts.stall"
        case .idle: "timeouts.idle of its session"
        case .head: "limits.head"
        case .fieldCount: "limits.field-count"
        }
    }

    /// The setting that a head is beyond; nil where it breaks a rule.
    private static func setting(behind reason: HeadError.Reason) -> String? {
        switch reason {
        case .startLineTooLong: "limits.request-line"
        case .headTooLarge, .trailersTooLarge: "limits.head"
        case .tooManyFields: "limits.field-count"
        case .chunkExtensionTooLong: "limits.chunk-extension"
        default: nil
        }
    }

    /// An exchange that a session could not answer.
    package init(_ failure: ExchangeFailure) {
        self.init(
            failure.status.rawValue, error: failure.error,
            detail: failure.detail + Self.named(failure.upstream?.limit.map(Self.setting(of:))),
            cacheStatus: failure.cacheStatus)
        self.nextHop = failure.nextHop
        self.receivedStatus = failure.upstream?.receivedStatus
    }

    /// - Parameters:
    ///   - request: the request's fields, for its `Accept`.
    ///   - name: the proxy's name in `Proxy-Status` and `Cache-Status`.
    package func answer(to request: Fields, name: String) -> Answer {
        var fields = self.fields
        var body = ByteBuffer()
        switch self.content {
        case .nothing: break
        case .message(let message):
            fields.append("Content-Type", "message/http")
            body = message
        case .problem:
            let format = ProblemDocument.Format(acceptedBy: request)
            let problem = ProblemDocument(status: self.status, detail: self.detail)
            fields.append("Content-Type", format.contentType)
            fields.append("Vary", "Accept")
            body.writeBytes(problem.rendered(as: format))
        }
        if self.status.rawValue >= 400 {
            fields.append("Cache-Control", "no-store")
            fields.append("Proxy-Status", self.proxyStatus.member(named: name))
        }
        if let cacheStatus = self.cacheStatus {
            cacheStatus.append(to: &fields, named: name)
        }
        return Answer(
            head: ResponseHead(status: self.status, fields: fields),
            bodyLength: .known(UInt64(body.readableBytes)), body: .resident(body),
            cacheStatus: self.cacheStatus ?? CacheStatus())
    }

    private var proxyStatus: ProxyStatus {
        ProxyStatus(
            error: self.error, nextHop: self.nextHop, receivedStatus: self.receivedStatus,
            generatedStatus: self.error == .httpRequestError ? self.status : nil,
            details: self.detail)
    }
}
