public import Foundation
import LarderCookies

/// A store of cookies, which any number of sessions may share.
///
/// Any thread may use it. What responses set is there before their tasks go on. A program may
/// override its methods: sessions then call them in the place of the store's own, never on a
/// delegate queue, and must not be kept waiting by them for long.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
    // Invariant: set once; it protects itself.
    let store: CookieStore

    /// The policy of the session that stores cookies, in the place of a storage's own.
    @TaskLocal static var sessionsPolicy: HTTPCookie.AcceptPolicy?

    /// The store of this program, which outlives it: cookies that have a date are kept, encrypted,
    /// below `$XDG_DATA_HOME` (`~/.local/share`); those of the session end with the process.
    ///
    /// Several processes of one program share what is kept. What one of them changes the others see
    /// when they next look, or within moments where a task sends cookies.
    ///
    /// Where the disk cannot be used, everything goes on in memory, and a line on standard error says
    /// so, once.
    open class var shared: HTTPCookieStorage { SharedCookieStorages.storage(.own) }

    /// The store of a group of programs: the same object for the same identifier.
    ///
    /// On Linux there are no containers of groups: it is kept beside the program's own store.
    open class func sharedCookieStorage(
        forGroupContainerIdentifier identifier: String
    ) -> HTTPCookieStorage {
        SharedCookieStorages.storage(.group(identifier))
    }

    /// A store in memory alone, which ends with the object.
    public override init() {
        self.store = CookieStore()
        super.init()
        self.store.owner = self
    }

    init(_ store: CookieStore) {
        self.store = store
        super.init()
        store.owner = self
    }

    /// One that is in memory alone.
    static func ephemeral() -> HTTPCookieStorage { HTTPCookieStorage() }

    // MARK: Cookies

    /// All cookies that have not expired, by domain, then by age; never nil.
    open var cookies: [HTTPCookie]? { self.store.all() }

    /// Puts a cookie in the place of that of the same name, domain and path; removes that where the
    /// cookie has expired.
    ///
    /// Nothing happens under the policy `.never`, nor with a cookie that no store may hold
    /// (RFC 6265bis §5.7): of more than 4096 octets, of a domain that is no host name, or with a
    /// prefix whose promise it breaks. A `SameSite` of `None` without `Secure`, for which a response's
    /// cookie is refused, too, counts as not said in one that a program makes.
    open func setCookie(_ cookie: HTTPCookie) {
        guard self.cookieAcceptPolicy != .never else { return }
        self.store.set(cookie)
    }

    /// Removes the cookie of that name, domain and path.
    open func deleteCookie(_ cookie: HTTPCookie) {
        self.store.delete(cookie)
    }

    /// Removes the cookies that were set at this moment or later, also in the place of older ones.
    open func removeCookies(since date: Date) {
        self.store.remove(since: date)
    }

    /// The cookies that a request for the URL would bear: of longer paths first, of equal ones the
    /// older first (RFC 6265bis §5.8.3); nil where the URL has no host.
    open func cookies(for url: URL) -> [HTTPCookie]? {
        guard url.host != nil else { return nil }
        return self.store.cookies(for: url)
    }

    /// Sets the cookies that a response to a request for the URL has set, by the accept policy and the
    /// rules of RFC 6265bis §5.7.
    ///
    /// - Parameters:
    ///   - URL: nil: nothing is set.
    ///   - mainDocumentURL: nil: the URL is its own main document.
    open func setCookies(_ cookies: [HTTPCookie], for URL: URL?, mainDocumentURL: URL?) {
        guard let url = URL else { return }
        self.store.set(
            cookies, for: url, mainDocumentURL: mainDocumentURL,
            accept: Self.sessionsPolicy ?? self.cookieAcceptPolicy)
    }

    /// Whose cookies are taken.
    ///
    /// `.always` at first. Sessions go by their own policy instead.
    open var cookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { self.store.acceptPolicy }
        set { self.store.acceptPolicy = newValue }
    }

    /// All cookies, in the order that the descriptors ask for.
    open func sortedCookies(using sortOrder: [NSSortDescriptor]) -> [HTTPCookie] {
        let cookies = NSArray(array: self.cookies ?? [])
        return cookies.sortedArray(using: sortOrder).compactMap { $0 as? HTTPCookie }
    }

    // MARK: Tasks

    /// Sets the cookies that a response to a task has set: by `setCookies(_:for:mainDocumentURL:)`,
    /// with the URL and main document of the task's current request.
    ///
    /// Where a session calls it, that one goes by the session's accept policy.
    open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        let request = task.currentRequest ?? task.originalRequest
        self.setCookies(cookies, for: request?.url, mainDocumentURL: request?.mainDocumentURL)
    }

    /// Gives the cookies for a task's current request, before it returns: those of `cookies(for:)`, but
    /// where its main document is of another site none that are kept to theirs (`SameSite`).
    ///
    /// Where it is overridden and answers later, the task goes on with `cookies(for:)`.
    open func getCookiesFor(
        _ task: URLSessionTask, completionHandler: @escaping ([HTTPCookie]?) -> Void
    ) {
        guard let request = task.currentRequest ?? task.originalRequest, let url = request.url
        else { return completionHandler(nil) }
        let context = CookieStore.context(url, mainDocumentURL: request.mainDocumentURL)
        completionHandler(self.cookies(for: url, in: context))
    }

    /// Those of `cookies(for:)`, which a program may have overridden, that their `SameSite` lets go there.
    func cookies(for url: URL, in context: CookieContext?) -> [HTTPCookie]? {
        self.cookies(for: url)?.filter { context?.permits($0.facts.sameSite) ?? true }
    }

    /// How many cookies there are, and none of them.
    open override var description: String {
        "\(self.store.isKept ? "" : "Ephemeral")<NSHTTPCookieStorage "
            + "cookies count:\(self.cookies?.count ?? 0)>"
    }
}

extension Notification.Name {
    /// The cookies of a storage, which is the object, have changed: once for each call or response
    /// that made a difference.
    ///
    /// It is posted on the thread of the call; for responses, and for changes by other processes, on
    /// a queue of the library's.
    public static let NSHTTPCookieManagerCookiesChanged = Notification.Name(
        "NSHTTPCookieManagerCookiesChangedNotification")

    /// The accept policy of a storage, which is the object, has changed.
    public static let NSHTTPCookieManagerAcceptPolicyChanged = Notification.Name(
        "NSHTTPCookieManagerAcceptPolicyChangedNotification")
}
