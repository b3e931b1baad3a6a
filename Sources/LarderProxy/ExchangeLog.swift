package import LarderHTTP
package import LarderSession

/// Takes a note of every exchange when it has ended.
package protocol ExchangeLog: AnyObject, Sendable {
    /// Whether notes are taken at all now: false saves the making of entries.
    var isOn: Bool { get }
    /// What a loop records its exchanges with.
    func recorder() -> any ExchangeRecorder
}

/// Notes the exchanges of one loop, and is confined to it.
///
/// Called on that loop: it must return at once, and write elsewhere.
package protocol ExchangeRecorder: AnyObject {
    func record(_ entry: ExchangeEntry)
    /// Notes one more exchange of a pattern.
    func record(_ facts: EntryFacts, of pattern: EntryPattern)
}

/// Takes no notes.
package final class NoExchangeLog: ExchangeLog {
    private final class Recorder: ExchangeRecorder {
        func record(_ entry: ExchangeEntry) {}
        func record(_ facts: EntryFacts, of pattern: EntryPattern) {}
    }

    package init() {}
    package var isOn: Bool { false }
    package func recorder() -> any ExchangeRecorder { Recorder() }
}

/// What is worth knowing of an exchange that has ended, whether answered or not.
///
/// Text is made only when it is asked for: most of it is never read.
package struct ExchangeEntry: Sendable {
    /// Unique in this process.
    package var exchange: UInt64
    package var client: ClientAddress
    /// The name under which the client has authenticated itself; nil where it has not.
    package var user: String?
    /// The name of the session that was chosen for it; empty where none was.
    package var session = ""
    /// Nil where no head could be read.
    package var request: RequestHead?
    /// The status sent; nil where the client got none.
    package var status: StatusCode?
    package var responseHeadBytes: UInt64 = 0
    /// Content as handed to the connection, without chunk framing.
    ///
    /// For a tunnel, all bytes toward the client.
    package var responseBodyBytes: UInt64 = 0
    /// Content as received, without chunk framing.
    ///
    /// For a tunnel, all bytes from the client.
    package var requestBodyBytes: UInt64 = 0
    /// When the head was received.
    package var began: Timestamp
    package var duration: Duration = .zero
    /// Nil where no session was asked.
    package var cacheStatus: CacheStatus?
    /// What the session did by itself on the way to the answer, in order.
    package var acts: [SessionAct] = []
    /// Whom the request was sent to.
    package var origin = NextHop()
    /// The error type (RFC 9209 §2.3) of an answer that Larder gave by itself, or of why one broke off;
    /// nil: there was no failure, or it was the client's.
    package var errorType: ProxyErrorType?
    /// The one that did not, as the configuration counts them; nil where it is not known.
    package var rule: String?
    package var isTunnel = false
    /// The answer's fields, without those of its framing; empty where there was none.
    package var responseFields = Fields()
    /// The exchange ended before its answer did, or without one.
    package var wasCut = false
    /// What went wrong: one line for people, or nil.
    package var failure: String?

    package init(
        exchange: UInt64, client: ClientAddress, request: RequestHead?, status: StatusCode? = nil,
        began: Timestamp
    ) {
        self.exchange = exchange
        self.client = client
        self.request = request
        self.status = status
        self.began = began
    }

    /// Whether the access rules did not allow it, be it for what its host leads to.
    package var isDenied: Bool { self.errorType == .httpRequestDenied }

    package var method: String { self.request?.method.rawValue ?? "" }

    /// The target as the request named it, without user information.
    package var uri: String {
        switch self.request?.target {
        case .absolute(let uri): uri.description
        case .origin(let path): path
        case .authority(let host, let port): "\(host):\(port)"
        case .asterisk: "*"
        case nil: ""
        }
    }

    package var version: HTTPVersion? { self.request?.version }
    package var referer: String? { self.request?.fields.string("referer") }
    package var contentType: String? { self.responseFields.string("content-type") }
    package var userAgent: String? { self.request?.fields.string("user-agent") }
}
