public import Foundation

/// Loads URLs in a program's own way.
open class URLProtocol: NSObject, @unchecked Sendable {}

/// Hears what a `URLProtocol` has to say: the task behind it.
public protocol URLProtocolClient: NSObjectProtocol {}
