package import LarderHTTP

/// One request on its way to an origin, of the one or more that an exchange may take (a challenge
/// answered, a redirection followed).
package struct Hop: Sendable {
    package var method: Method
    /// Where this request goes.
    package var uri: TargetURI
    /// The client's own fields, as it sent them: `Referer`, `Sec-Fetch-Site` and so on.
    package var client: Fields
    /// From 0: a redirection begins the next.
    package var number: Int
    /// What the client asked for, before any redirection; nil for `uri` itself where `number` is 0,
    /// and otherwise for "not known", which counts as another site.
    package var first: TargetURI?
    /// What the client says of cookies by itself, in the place of what its fields say.
    package var cookies: RequestCookies?

    package init(
        method: Method, uri: TargetURI, client: Fields, number: Int = 0, first: TargetURI? = nil,
        cookies: RequestCookies? = nil
    ) {
        self.method = method
        self.uri = uri
        self.client = client
        self.number = number
        self.first = first
        self.cookies = cookies
    }

    /// Whether cookies go with it at all.
    package var handlesCookies: Bool { self.cookies?.isHandled ?? true }
}

/// The cookies of a session, as requests and responses meet them (RFC 6265bis §5.7, §5.8).
///
/// Called on any thread, also an event loop or a transfer thread; must not block.
package protocol HopCookies: AnyObject, Sendable {
    /// Whether `addCookies` may find anything to add; true where it takes more than a look to know.
    var mayAddCookies: Bool { get }

    /// Puts the jar's cookies into the fields of a request that is about to be sent.
    ///
    /// - Parameter fields: with the client's own `Cookie` lines, where those may travel.
    func addCookies(to fields: inout Fields, for hop: Hop, at now: Timestamp)

    /// Puts the jar's cookies into fields for an explanation: nothing is sent, so nothing counts as
    /// used.
    func showCookies(in fields: inout Fields, for hop: Hop, at now: Timestamp)

    /// Whether clients see the `Set-Cookie` lines of responses.
    var showsSetCookie: Bool { get }

    /// Takes the cookies that a response sets, and removes their lines from it unless the client is
    /// to see them. Once for each final response that has any, also for 401 and 3xx ones that no
    /// client sees.
    func takeCookies(from head: inout ResponseHead, for hop: Hop, at now: Timestamp)

    /// Calls `body` once all cookies that were taken so far outlive the process, or could not be kept;
    /// on any thread, never here.
    ///
    /// - Returns: false where there is nothing to wait for; `body` is not called then.
    func whenKept(_ body: @escaping @Sendable () -> Void) -> Bool
}

extension HopCookies {
    package var mayAddCookies: Bool { true }
}
