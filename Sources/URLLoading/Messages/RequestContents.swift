import Foundation

/// Where the values of a request lie, shared by its copies.
///
/// Unchecked: written only by the one request that holds it alone (`isKnownUniquelyReferenced`), so
/// what is shared never changes. The stream and the properties in it are the program's, handed on
/// from thread to thread with the request, as everywhere in the API.
final class RequestContents: @unchecked Sendable {
    var values: RequestValues

    init(_ values: RequestValues) {
        self.values = values
    }
}

/// What a request consists of.
struct RequestValues {
    /// What is sent with it: one of them at most.
    enum Body {
        case none
        case data(Data)
        case stream(InputStream)

        var stream: InputStream? {
            if case .stream(let stream) = self { stream } else { nil }
        }
    }

    var url: URL?
    var mainDocumentURL: URL?
    var httpMethod = "GET"
    var fields: [String: String]?
    var body = Body.none
    var timeoutInterval: TimeInterval = 60
    var isTimeoutSet = false
    var cachePolicy = NSURLRequest.CachePolicy.useProtocolCachePolicy
    var networkServiceType = NSURLRequest.NetworkServiceType.default
    var attribution = NSURLRequest.Attribution.developer
    var allowsCellularAccess = true
    var allowsExpensiveNetworkAccess = true
    var allowsConstrainedNetworkAccess = true
    var allowsUltraConstrainedNetworkAccess = true
    var assumesHTTP3Capable = false
    var requiresDNSSECValidation = false
    var httpShouldHandleCookies = true
    var httpShouldUsePipelining = true
    /// The properties that `URLProtocol` sets, by key; nil: none.
    var properties: [String: Any]?
}
