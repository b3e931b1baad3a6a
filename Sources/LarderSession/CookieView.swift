package import LarderCookies
package import LarderHTTP

/// Cookies that several sessions share, as one of them meets them: with its own policies.
///
/// Its client sees every `Set-Cookie` line. It waits for no storage: a response reaches its client
/// while its cookies are being kept.
package final class CookieView: HopCookies {
    private let cookies: SessionCookies
    private let accept: CookieAcceptPolicy
    private let sends: Bool

    /// - Parameters:
    ///   - accept: in the place of the policy that the cookies themselves have.
    ///   - sends: put them into requests, where they replace the client's own if there are any;
    ///     otherwise the client's stay as they are.
    package init(_ cookies: SessionCookies, accept: CookieAcceptPolicy, sends: Bool) {
        self.cookies = cookies
        self.accept = accept
        self.sends = sends
    }

    package var mayAddCookies: Bool { self.sends && self.cookies.mayAddCookies }

    package func addCookies(to fields: inout Fields, for hop: Hop, at now: Timestamp) {
        guard self.sends else { return }
        self.cookies.addCookies(to: &fields, for: hop, by: .jarReplaces, at: now)
    }

    package func showCookies(in fields: inout Fields, for hop: Hop, at now: Timestamp) {
        if self.sends { self.cookies.showCookies(in: &fields, for: hop, at: now) }
    }

    package var showsSetCookie: Bool { true }

    package func takeCookies(from head: inout ResponseHead, for hop: Hop, at now: Timestamp) {
        self.cookies.takeCookies(from: head, for: hop, accept: self.accept, at: now)
    }

    package func whenKept(_ body: @escaping @Sendable () -> Void) -> Bool { false }
}
