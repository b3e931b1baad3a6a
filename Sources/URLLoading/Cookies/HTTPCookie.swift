public import Foundation

/// A cookie.
open class HTTPCookie: NSObject, @unchecked Sendable {
    /// Which cookies are taken.
    public enum AcceptPolicy: UInt, Sendable {
        case always = 0
        case never = 1
        case onlyFromMainDocumentDomain = 2
    }
}

/// The cookies of one or more sessions.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
    private static let common = HTTPCookieStorage()

    open class var shared: HTTPCookieStorage { self.common }

    override init() {
        super.init()
    }

    /// One that is in memory alone.
    static func ephemeral() -> HTTPCookieStorage { HTTPCookieStorage() }
}
