package import LarderHTTP

/// What an unsafe request makes unusable (RFC 9111 §4.4).
package enum Invalidation {
    /// The URIs of which all stored responses must be invalidated.
    ///
    /// After a non-error answer to an unsafe method, or one whose safety is unknown: the target URI,
    /// and the URIs in `Location` and `Content-Location` where they have the origin of the target;
    /// others are left alone, so that no origin can invalidate another's. Empty where nothing is
    /// to be done.
    package static func uris(request: Request, response: ResponseHead) -> [TargetURI] {
        guard self.applies(request, response) else { return [] }
        var uris = [request.uri]
        for name in [KnownField.location, .contentLocation] {
            guard let reference = response.fields.first(FieldName(name)),
                let uri = request.uri.resolving(reference), uri.hasSameOrigin(as: request.uri),
                !uris.contains(uri)
            else { continue }
            uris.append(uri)
        }
        return uris
    }

    /// Whether the method is unsafe and the response a success or a redirection: "non-error".
    static func applies(_ request: Request, _ response: ResponseHead) -> Bool {
        !request.method.isSafe && (response.status.isSuccessful || response.status.isRedirection)
    }
}
