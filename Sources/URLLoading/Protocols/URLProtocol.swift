public import Foundation

/// Loads URLs in a program's own way.
open class URLProtocol: NSObject {
    open class func property(forKey key: String, in request: URLRequest) -> Any? {
        request.protocolProperties[key]
    }

    open class func setProperty(
        _ value: Any, forKey key: String, in request: NSMutableURLRequest
    ) {
        request.value.protocolProperties[key] = value
    }

    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.value.protocolProperties.removeValue(forKey: key)
    }
}

/// Hears what a `URLProtocol` has to say: the task behind it.
public protocol URLProtocolClient: NSObjectProtocol {}
