/// What a client says of the cookies of one request, where it is a program that knows: a proxy's
/// clients say it in fields, if at all.
package struct RequestCookies: Sendable {
    /// Whether the session's cookies are sent with it, and those of its response taken.
    package var isHandled: Bool
    /// The host of the document that the request is for, in lower case, an IPv6 address in brackets.
    ///
    /// nil: the request's own.
    package var mainDocumentHost: String?
    /// On whose behalf it is, for storages that want to know; nil: nobody says.
    package var owner: (any AnyObject & Sendable)?

    package init(
        isHandled: Bool = true, mainDocumentHost: String? = nil,
        owner: (any AnyObject & Sendable)? = nil
    ) {
        self.isHandled = isHandled
        self.mainDocumentHost = mainDocumentHost
        self.owner = owner
    }
}
