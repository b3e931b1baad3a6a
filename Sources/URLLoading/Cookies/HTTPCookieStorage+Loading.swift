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
        return self.store.view(accept: accept, sends: sets)
    }

    /// Returns when all cookies that were set so far outlive the process, or cannot be kept.
    func flush() async {
        await self.store.flush()
    }

    /// Removes all cookies, also from what is kept.
    func removeAll() {
        self.store.removeAll()
    }
}
