public import Foundation

/// A request, as a reference that can be changed.
///
/// A session copies it when a task is made. Not to be changed by one thread while another uses it.
open class NSMutableURLRequest: NSURLRequest, @unchecked Sendable {
    /// A GET request, whose idle timeout is the session's.
    public convenience init(url: URL) {
        self.init(URLRequest(url: url))
    }

    /// A GET request with an idle timeout of its own, in seconds.
    public override init(
        url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval
    ) {
        super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
    }

    override init(_ value: URLRequest) {
        super.init(value)
    }

    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    /// Another one that can be changed, as Foundation's copies can.
    open override func copy(with zone: NSZone? = nil) -> Any { self.mutableCopy(with: zone) }

    open override var url: URL? {
        get { super.url }
        set { self.value.url = newValue }
    }

    open override var mainDocumentURL: URL? {
        get { super.mainDocumentURL }
        set { self.value.mainDocumentURL = newValue }
    }

    open override var cachePolicy: CachePolicy {
        get { super.cachePolicy }
        set { self.value.cachePolicy = newValue }
    }

    open override var timeoutInterval: TimeInterval {
        get { super.timeoutInterval }
        set { self.value.timeoutInterval = newValue }
    }

    open override var httpMethod: String? {
        get { super.httpMethod }
        set { self.value.httpMethod = newValue }
    }

    open override var allHTTPHeaderFields: [String: String]? {
        get { super.allHTTPHeaderFields }
        set { self.value.allHTTPHeaderFields = newValue }
    }

    open override var httpBody: Data? {
        get { super.httpBody }
        set { self.value.httpBody = newValue }
    }

    open override var httpBodyStream: InputStream? {
        get { super.httpBodyStream }
        set { self.value.httpBodyStream = newValue }
    }

    open override var networkServiceType: NetworkServiceType {
        get { super.networkServiceType }
        set { self.value.networkServiceType = newValue }
    }

    open override var allowsCellularAccess: Bool {
        get { super.allowsCellularAccess }
        set { self.value.allowsCellularAccess = newValue }
    }

    open override var allowsExpensiveNetworkAccess: Bool {
        get { super.allowsExpensiveNetworkAccess }
        set { self.value.allowsExpensiveNetworkAccess = newValue }
    }

    open override var allowsConstrainedNetworkAccess: Bool {
        get { super.allowsConstrainedNetworkAccess }
        set { self.value.allowsConstrainedNetworkAccess = newValue }
    }

    open override var allowsUltraConstrainedNetworkAccess: Bool {
        get { super.allowsUltraConstrainedNetworkAccess }
        set { self.value.allowsUltraConstrainedNetworkAccess = newValue }
    }

    open override var assumesHTTP3Capable: Bool {
        get { super.assumesHTTP3Capable }
        set { self.value.assumesHTTP3Capable = newValue }
    }

    open override var attribution: Attribution {
        get { super.attribution }
        set { self.value.attribution = newValue }
    }

    open override var requiresDNSSECValidation: Bool {
        get { super.requiresDNSSECValidation }
        set { self.value.requiresDNSSECValidation = newValue }
    }

    open override var httpShouldHandleCookies: Bool {
        get { super.httpShouldHandleCookies }
        set { self.value.httpShouldHandleCookies = newValue }
    }

    open override var httpShouldUsePipelining: Bool {
        get { super.httpShouldUsePipelining }
        set { self.value.httpShouldUsePipelining = newValue }
    }

    /// Sets a header field as `URLRequest` does; nil removes it.
    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.value.setValue(value, forHTTPHeaderField: field)
    }

    /// Adds a value to a header field, as `URLRequest` does.
    open func addValue(_ value: String, forHTTPHeaderField field: String) {
        self.value.addValue(value, forHTTPHeaderField: field)
    }
}
