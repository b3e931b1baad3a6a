public import Foundation

/// A request: where to, how, and with what.
///
/// A value of one word: copies share their contents until one of them is changed. Two are equal, as
/// Foundation has it, where URL, main document, method, cache policy, body stream, cellular access and
/// handling of cookies are; header fields, body data and timeout are not compared.
public struct URLRequest: ReferenceConvertible, Sendable {
    /// The class that it bridges to.
    public typealias ReferenceType = NSURLRequest
    /// How stored responses are used.
    public typealias CachePolicy = NSURLRequest.CachePolicy
    /// What kind of traffic it is.
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
    /// Who chose its URL.
    public typealias Attribution = NSURLRequest.Attribution

    private var contents: RequestContents

    /// A GET request, whose idle timeout is the session's.
    ///
    /// - Parameter url: made absolute.
    public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy) {
        self.init(address: url.absoluteURL)
        self.contents.values.cachePolicy = cachePolicy
    }

    /// A GET request with an idle timeout of its own.
    ///
    /// Foundation's has one initialiser for both, which cannot tell 60 from nothing said.
    ///
    /// - Parameters:
    ///   - url: made absolute.
    ///   - timeoutInterval: in seconds; see the property.
    public init(
        url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval
    ) {
        self.init(url: url, cachePolicy: cachePolicy)
        self.contents.values.timeoutInterval = timeoutInterval
        self.contents.values.isTimeoutSet = true
    }

    /// A request for what may be nothing at all, as `url = nil` would leave it.
    init(address: URL?) {
        self.contents = RequestContents(RequestValues(url: address))
    }

    /// What it consists of, all at once.
    var values: RequestValues { self.contents.values }

    private mutating func change(_ body: (inout RequestValues) -> Void) {
        if !isKnownUniquelyReferenced(&self.contents) {
            self.contents = RequestContents(self.contents.values)
        }
        // Taken out: lent in place, it would be checked at each of its uses (exclusive access).
        var values = exchange(&self.contents.values, with: RequestValues(url: nil))
        body(&values)
        self.contents.values = values
    }
}

extension URLRequest {
    /// What is to be loaded; a task made of a request without one fails with `URLError.unsupportedURL`.
    public var url: URL? {
        get { self.contents.values.url }
        set { self.change { $0.url = newValue } }
    }

    /// How stored responses are used; `.useProtocolCachePolicy` leaves it to the session.
    public var cachePolicy: CachePolicy {
        get { self.contents.values.cachePolicy }
        set { self.change { $0.cachePolicy = newValue } }
    }

    /// How long nothing may happen before the request has failed (`URLError.timedOut`), in seconds.
    ///
    /// Every byte begins the time anew. 60 where it was never set, and then the session's
    /// `timeoutIntervalForRequest` holds instead.
    public var timeoutInterval: TimeInterval {
        get { self.contents.values.timeoutInterval }
        set {
            self.change {
                $0.timeoutInterval = newValue
                $0.isTimeoutSet = true
            }
        }
    }

    /// Whether `timeoutInterval` was set, to whatever value.
    var isTimeoutSet: Bool { self.contents.values.isTimeoutSet }

    /// The document that the request is made for, whose site may set cookies; nil: itself.
    public var mainDocumentURL: URL? {
        get { self.contents.values.mainDocumentURL }
        set { self.change { $0.mainDocumentURL = newValue } }
    }

    /// What kind of traffic it is; on Linux it becomes the packets' DSCP.
    public var networkServiceType: NetworkServiceType {
        get { self.contents.values.networkServiceType }
        set { self.change { $0.networkServiceType = newValue } }
    }

    /// Kept, and without effect on Linux; true by default.
    public var allowsCellularAccess: Bool {
        get { self.contents.values.allowsCellularAccess }
        set { self.change { $0.allowsCellularAccess = newValue } }
    }

    /// Kept, and without effect on Linux; true by default.
    public var allowsExpensiveNetworkAccess: Bool {
        get { self.contents.values.allowsExpensiveNetworkAccess }
        set { self.change { $0.allowsExpensiveNetworkAccess = newValue } }
    }

    /// Kept, and without effect on Linux; true by default.
    public var allowsConstrainedNetworkAccess: Bool {
        get { self.contents.values.allowsConstrainedNetworkAccess }
        set { self.change { $0.allowsConstrainedNetworkAccess = newValue } }
    }

    /// Kept, and without effect on Linux; true by default.
    public var allowsUltraConstrainedNetworkAccess: Bool {
        get { self.contents.values.allowsUltraConstrainedNetworkAccess }
        set { self.change { $0.allowsUltraConstrainedNetworkAccess = newValue } }
    }

    /// Kept, and without effect: no request goes by HTTP/3; false by default.
    public var assumesHTTP3Capable: Bool {
        get { self.contents.values.assumesHTTP3Capable }
        set { self.change { $0.assumesHTTP3Capable = newValue } }
    }

    /// Who chose the URL; kept, and without effect on Linux.
    public var attribution: Attribution {
        get { self.contents.values.attribution }
        set { self.change { $0.attribution = newValue } }
    }

    /// Kept, and without effect on Linux; false by default.
    public var requiresDNSSECValidation: Bool {
        get { self.contents.values.requiresDNSSECValidation }
        set { self.change { $0.requiresDNSSECValidation = newValue } }
    }
}

extension URLRequest {
    /// The method; `GET` by default, and where nil or nothing is set.
    ///
    /// GET, HEAD, POST, PUT, DELETE and CONNECT are recognised in any case; all others are sent as
    /// they are. A task fails with `URLError.badURL` where it is no token (RFC 9110 §9.1).
    public var httpMethod: String? {
        get { self.contents.values.httpMethod }
        set { self.change { $0.httpMethod = RequestFields.method(newValue) } }
    }

    /// All header fields; nil where none was ever set.
    ///
    /// Names are as the dictionary has them; `setValue` and `addValue` capitalise them.
    public var allHTTPHeaderFields: [String: String]? {
        get { self.contents.values.fields }
        set { self.change { $0.fields = newValue } }
    }

    /// The value of a header field, case set aside.
    public func value(forHTTPHeaderField field: String) -> String? {
        guard let fields = self.contents.values.fields else { return nil }
        return RequestFields.value(of: field, in: fields)
    }

    /// Sets a header field; nil removes it.
    ///
    /// The name is stored capitalised (`content-type` becomes `Content-Type`). A value that would
    /// break the request in two (CR, LF or NUL, but for folded lines) is not taken: nothing changes.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
        guard RequestFields.areValid(field, value) else { return }
        self.change { RequestFields.set(field, to: value, in: &$0.fields) }
    }

    /// Adds a value to a header field, behind a comma where it has one.
    ///
    /// Names and values are treated as by `setValue`.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
        guard RequestFields.areValid(field, value) else { return }
        self.change { RequestFields.add(value, to: field, in: &$0.fields) }
    }

    /// The content; setting it takes the stream away.
    public var httpBody: Data? {
        get {
            guard case .data(let data) = self.contents.values.body else { return nil }
            return data
        }
        set { self.change { $0.body = newValue.map { .data($0) } ?? .none } }
    }

    /// The content as a stream, which can be sent once; setting it takes the data away.
    ///
    /// Shared by all copies of the request; the session opens and closes it.
    public var httpBodyStream: InputStream? {
        get {
            guard case .stream(let stream) = self.contents.values.body else { return nil }
            return stream
        }
        set { self.change { $0.body = newValue.map { .stream($0) } ?? .none } }
    }

    /// Whether cookies are sent with it, and those of its response kept; true by default.
    public var httpShouldHandleCookies: Bool {
        get { self.contents.values.httpShouldHandleCookies }
        set { self.change { $0.httpShouldHandleCookies = newValue } }
    }

    /// Kept, and without effect, as HTTP/1.1 is not pipelined; true by default, as Foundation's.
    public var httpShouldUsePipelining: Bool {
        get { self.contents.values.httpShouldUsePipelining }
        set { self.change { $0.httpShouldUsePipelining = newValue } }
    }

    /// What `URLProtocol.setProperty(_:forKey:in:)` has put there.
    var protocolProperties: [String: Any] {
        get { self.contents.values.properties ?? [:] }
        set { self.change { $0.properties = newValue.isEmpty ? nil : newValue } }
    }
}

extension URLRequest: Hashable {
    public static func == (a: URLRequest, b: URLRequest) -> Bool {
        if a.contents === b.contents { return true }
        let (x, y) = (a.contents.values, b.contents.values)
        return x.url == y.url && x.mainDocumentURL == y.mainDocumentURL
            && x.httpMethod == y.httpMethod && x.cachePolicy == y.cachePolicy
            && x.body.stream === y.body.stream
            && x.allowsCellularAccess == y.allowsCellularAccess
            && x.httpShouldHandleCookies == y.httpShouldHandleCookies
    }

    public func hash(into hasher: inout Hasher) {
        let values = self.contents.values
        hasher.combine(values.url)
        hasher.combine(values.mainDocumentURL)
        hasher.combine(values.httpMethod)
        hasher.combine(values.body.stream.map(ObjectIdentifier.init))
        hasher.combine(values.allowsCellularAccess)
        hasher.combine(values.httpShouldHandleCookies)
    }
}
