public import Foundation

/// A request, as a reference that is not changed; `URLRequest` is the value to use in Swift.
///
/// Both are bridged to each other in constant time (`as`). May be used from any thread.
open class NSURLRequest: NSObject, NSSecureCoding, NSCopying, NSMutableCopying,
    // Unchecked: only `NSMutableURLRequest` changes the value, and whoever shares one of those between
    // threads has to see to it that it is not changed meanwhile, as for every class of this kind.
    @unchecked Sendable
{
    final var value: URLRequest

    /// A GET request, whose idle timeout is the session's.
    public convenience init(url: URL) {
        self.init(URLRequest(url: url))
    }

    /// A GET request with an idle timeout of its own, in seconds.
    public init(
        url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval
    ) {
        self.value = URLRequest(
            url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
        super.init()
    }

    init(_ value: URLRequest) {
        self.value = value
        super.init()
    }

    /// Reads one from a keyed archive; nil where it holds none.
    public required init?(coder: NSCoder) {
        guard let value = URLRequest(from: coder) else { return nil }
        self.value = value
        super.init()
    }

    /// Writes it to a keyed archive, without its stream and the properties of `URLProtocol`.
    open func encode(with coder: NSCoder) {
        self.asValue.encode(to: coder)
    }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// As a value; a program's subclass may have its say by `mutableCopy()`.
    final var asValue: URLRequest {
        let kind = type(of: self)
        if kind == NSURLRequest.self || kind == NSMutableURLRequest.self { return self.value }
        return (self.mutableCopy() as? NSURLRequest)?.value ?? self.value
    }

    // MARK: Copying

    open override func copy() -> Any { self.copy(with: nil) }

    open func copy(with zone: NSZone? = nil) -> Any {
        type(of: self) == NSURLRequest.self ? self : NSURLRequest(self.value)
    }

    open override func mutableCopy() -> Any { self.mutableCopy(with: nil) }

    open func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableURLRequest(self.value) }

    // MARK: Comparing

    /// Equal by what `URLRequest` compares.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSURLRequest else { return false }
        return other === self || other.value == self.value
    }

    open override var hash: Int { self.value.hashValue }

    open override var description: String {
        "\(super.description) { URL: \(self.url?.withoutPassword.description ?? "(null)") }"
    }

    // MARK: Reading

    /// What is to be loaded.
    open var url: URL? { self.value.url }
    /// The document that the request is made for, whose site may set cookies; nil by default: itself.
    open var mainDocumentURL: URL? { self.value.mainDocumentURL }
    /// How stored responses are used; `.useProtocolCachePolicy` by default, which leaves it to the session's.
    open var cachePolicy: CachePolicy { self.value.cachePolicy }
    /// How long nothing may happen, in seconds, before a task ends with `URLError.timedOut`; 60 by default,
    /// and the session's where it was never set.
    open var timeoutInterval: TimeInterval { self.value.timeoutInterval }
    /// The method, `GET` by default.
    open var httpMethod: String? { self.value.httpMethod }
    /// All header fields; nil where none was ever set.
    open var allHTTPHeaderFields: [String: String]? { self.value.allHTTPHeaderFields }
    /// The content, where it is data; nil by default.
    open var httpBody: Data? { self.value.httpBody }
    /// The content, where it is a stream; nil by default.
    open var httpBodyStream: InputStream? { self.value.httpBodyStream }
    /// What kind of traffic it is, which becomes the DSCP of packets; `.default` leaves it to the session's.
    open var networkServiceType: NetworkServiceType { self.value.networkServiceType }
    /// Kept, and without effect on Linux.
    open var allowsCellularAccess: Bool { self.value.allowsCellularAccess }
    /// Kept, and without effect on Linux.
    open var allowsExpensiveNetworkAccess: Bool { self.value.allowsExpensiveNetworkAccess }
    /// Kept, and without effect on Linux.
    open var allowsConstrainedNetworkAccess: Bool { self.value.allowsConstrainedNetworkAccess }
    /// Kept, and without effect on Linux.
    open var allowsUltraConstrainedNetworkAccess: Bool {
        self.value.allowsUltraConstrainedNetworkAccess
    }
    /// Kept, and without effect: no request goes by HTTP/3.
    open var assumesHTTP3Capable: Bool { self.value.assumesHTTP3Capable }
    /// Who chose the URL; kept, and without effect on Linux.
    open var attribution: Attribution { self.value.attribution }
    /// Kept, and without effect on Linux.
    open var requiresDNSSECValidation: Bool { self.value.requiresDNSSECValidation }
    /// Whether cookies are sent with it, and those of its response kept; true by default.
    open var httpShouldHandleCookies: Bool { self.value.httpShouldHandleCookies }
    /// Kept, and without effect.
    open var httpShouldUsePipelining: Bool { self.value.httpShouldUsePipelining }

    /// The value of a header field, case set aside.
    open func value(forHTTPHeaderField field: String) -> String? {
        self.value.value(forHTTPHeaderField: field)
    }
}
