package import LarderHTTP

/// Whether and how a redirection is followed (RFC 9110 §15.4, the Fetch standard's and the URL
/// Loading System's table of methods).
///
/// ```
///            method                        content
/// 301, 302   POST becomes GET              dropped with it, else kept
/// 303        GET; HEAD as the origin says  dropped
/// 305–308    stays                         kept
/// ```
///
/// Whether HEAD stays what it is after a 303 is the caller's choice: a proxy must keep it, because
/// the content of a GET could not be passed on; the URL Loading System makes it a GET.
package enum Redirection: Equatable {
    /// An ordinary response.
    case none
    case follows(Target)
    /// Passed on as it came.
    case passedOn(SessionAct)
    /// There have been as many as there may be.
    case tooMany

    package struct Target: Equatable {
        package var uri: TargetURI
        package var method: Method
        package var dropsContent: Bool
    }

    /// How many are followed in a row.
    package static let limit = 20

    /// The request that was redirected.
    package struct Origin {
        package var uri: TargetURI
        package var method: Method
        package var hasContent: Bool
        /// What content there is can be sent again.
        package var mayRepeat: Bool
        /// How many redirections led to it.
        package var number: Int
        /// HEAD stays HEAD after a 303.
        package var keepsHead = true

        package init(
            uri: TargetURI, method: Method, hasContent: Bool, mayRepeat: Bool, number: Int,
            keepsHead: Bool = true
        ) {
            self.uri = uri
            self.method = method
            self.hasContent = hasContent
            self.mayRepeat = mayRepeat
            self.number = number
            self.keepsHead = keepsHead
        }
    }

    package static func judge(
        _ head: ResponseHead, to origin: Origin, permits: (Method, TargetURI) -> Bool
    ) -> Redirection {
        guard let rewritten = self.rewritten(origin, by: head.status) else { return .none }
        let locations = head.fields.values(FieldName(.location))
        guard let location = locations.first else { return .none }
        // Two that differ: nobody can say which is meant.
        guard locations.allSatisfy({ $0 == location }), let uri = self.target(location, origin.uri)
        else { return .passedOn(.redirectNotPermitted) }
        guard origin.number < self.limit else { return .tooMany }
        guard permits(rewritten.method, uri) else { return .passedOn(.redirectNotPermitted) }
        if origin.hasContent, !rewritten.dropsContent, !origin.mayRepeat {
            return .passedOn(.contentNotRepeatable)
        }
        return .follows(
            Target(uri: uri, method: rewritten.method, dropsContent: rewritten.dropsContent))
    }

    /// nil where the status is none that is followed.
    private static func rewritten(
        _ origin: Origin, by status: StatusCode
    ) -> (method: Method, dropsContent: Bool)? {
        switch status.rawValue {
        case 301, 302: origin.method == .post ? (.get, true) : (origin.method, false)
        case 303: (origin.method == .head && origin.keepsHead ? .head : .get, true)
        case 305, 306, 307, 308: (origin.method, false)
        default: nil
        }
    }

    /// What `Location` means, if it is http or https and a URI through and through.
    private static func target(_ location: FieldValue, _ base: TargetURI) -> TargetURI? {
        guard let uri = base.resolving(location), uri.scheme != .ftp, uri.userInfo == nil,
            TargetURI(text: uri.description) == uri
        else { return nil }
        return uri
    }
}

/// The head of an answer to which redirections led, as it answers the first request.
enum RedirectedHead {
    /// Takes out what speaks of another target than the one that the client knows, and resolves
    /// references that are relative to it.
    ///
    /// - Parameters:
    ///   - uri: where the answer came from.
    ///   - origin: what the client asked for.
    static func adapt(_ head: inout ResponseHead, from uri: TargetURI, to origin: TargetURI) {
        for name in ["Content-Location", "Location"] as [FieldName] {
            guard let value = head.fields.first(name) else { continue }
            head.fields.remove(name)
            guard let meant = uri.resolving(value) else { continue }
            let title = name == "Location" ? "Location" : "Content-Location"
            head.fields.append(title, Array(meant.description.utf8))
        }
        // It speaks of the parameters of another query.
        head.fields.remove(FieldName(.noVarySearch))
        guard !uri.hasSameOrigin(as: origin) else { return }
        // What another origin says of itself would be taken for the client's own origin's word.
        for name in self.ofOrigin { head.fields.remove(name) }
    }

    /// Has a redirection that is passed on lead by the method that those before it have led to.
    ///
    /// Who sent a PUT that became a GET on the way would send the PUT again by a 307: a 303 says what
    /// is meant (RFC 9110 §15.4.4).
    ///
    /// - Parameters:
    ///   - method: of the request that was redirected.
    ///   - asked: of the client's.
    static func keepMethod(_ method: Method, in head: inout ResponseHead, asked: Method) {
        guard method != asked else { return }
        switch head.status.rawValue {
        case 301, 302, 307, 308:
            head.status = StatusCode(303)
            head.reason = head.status.reasonPhrase
        default: break
        }
    }

    /// Has what a redirection said of itself hold for what it led to.
    ///
    /// Nothing that the target says of itself may win over it: no `must-understand`, which sets
    /// `no-store` aside (RFC 9111 §5.2.2.3), and no targeted field (RFC 9213 §2.2).
    ///
    /// - Parameter targeted: the fields that the session takes for such, beside those whose names say
    ///   that they are.
    static func restrict(
        _ head: inout ResponseHead, forbidsStoring: Bool, isPrivate: Bool,
        targeted: [FieldName]
    ) {
        guard forbidsStoring || isPrivate else { return }
        for name in targeted where name != FieldName(.cacheControl) { head.fields.remove(name) }
        head.fields.keep { fields, line in
            !String(decoding: fields.name(of: line), as: UTF8.self).lowercased()
                .hasSuffix("-cache-control")
        }
        if forbidsStoring {
            if CacheControl(head.fields).mustUnderstand {
                head.fields.remove(FieldName(.cacheControl))
            }
            head.fields.append("Cache-Control", "no-store")
        }
        if isPrivate { head.fields.append("Cache-Control", "private") }
    }

    private static let ofOrigin: [FieldName] = [
        FieldName(.setCookie), FieldName(.cacheGroups), FieldName(.cacheGroupInvalidation),
        FieldName(.wwwAuthenticate), "Authentication-Info", "Strict-Transport-Security", "Alt-Svc",
        "Clear-Site-Data", "Public-Key-Pins", "Refresh",
    ]
}
