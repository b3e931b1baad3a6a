import LarderHTTP
import LarderSession

extension HTTPCookieStorage {
    /// The cookies as a session's engine meets them.
    ///
    /// The engine hears overridden methods. `Request.cookies` says what a request wants of them.
    ///
    /// - Parameters:
    ///   - accept: the session's policy, in the place of the storage's own.
    ///   - sets: put them into requests, where they replace an explicit `Cookie` field if there are
    ///     any.
    func hopCookies(accept: HTTPCookie.AcceptPolicy, sets: Bool) -> any HopCookies {
        if type(of: self) != HTTPCookieStorage.self {
            return OverriddenCookies(self, accept: accept, sends: sets)
        }
        return CookieView(self.store.cookies, accept: accept.jarPolicy, sends: sets)
    }
}
