package import LarderHTTP

/// What became of the credentials in a request.
package enum AuthenticationVerdict: Hashable, Sendable {
    case known(user: String)
    /// There are none, or none of a scheme that is known here.
    case missing
    /// They are wrong, or malformed.
    case refused
    /// The client has been wrong too often; nothing is looked at until the time is over.
    case throttled(retryAfter: Duration)
    /// Too many others wait to be verified.
    case busy
    /// The verdict comes later, by the completion.
    case pending
}

/// Verifies the credentials that clients send to the proxy itself (RFC 9110 §11.7).
///
/// Called on event loops, for many connections at once; must not block. What takes time is answered
/// by `.pending` and done elsewhere.
package protocol ProxyAuthenticator: AnyObject, Sendable {
    /// The values of `Proxy-Authenticate`, the preferred one first; never empty.
    var challenges: [String] { get }

    /// Changes whenever a verdict given before may no longer hold.
    ///
    /// Read once a request.
    var generation: UInt64 { get }

    /// Judges the value of `Proxy-Authorization`.
    ///
    /// - Parameters:
    ///   - value: nil where the request has none.
    ///   - completion: called once after `.pending`, and not otherwise, with any other verdict; on any
    ///     thread, also before this returns.
    func check(
        _ value: FieldValue?, client: ClientAddress,
        completion: @escaping @Sendable (AuthenticationVerdict) -> Void
    ) -> AuthenticationVerdict
}

extension OwnAnswer {
    /// 407, with what the proxy would accept (RFC 9110 §15.5.8).
    static func authenticationRequired(
        _ challenges: [String], detail: String
    ) -> OwnAnswer {
        var fields = Fields()
        for challenge in challenges { fields.append("Proxy-Authenticate", challenge) }
        return OwnAnswer(407, error: .httpRequestDenied, detail: detail, fields: fields)
    }

    static func throttled(_ retryAfter: Duration) -> OwnAnswer {
        OwnAnswer(
            429, error: .httpRequestDenied,
            detail: "too many failed attempts to authenticate from this address",
            fields: ["Retry-After": Self.seconds(retryAfter)])
    }

    static let verificationBusy = OwnAnswer(
        503, error: .proxyInternalResponse,
        detail: "too many credentials wait to be verified", fields: ["Retry-After": "1"])
    static let repeatedCredentials = OwnAnswer(
        400, error: .httpRequestError, detail: "more than one Proxy-Authorization")

    /// Whole seconds, at least one, rounded up (RFC 9110 §10.2.3).
    private static func seconds(_ duration: Duration) -> String {
        let (seconds, rest) = duration.components
        let up = rest > 0 && seconds < .max ? seconds + 1 : seconds
        return String(max(1, up))
    }
}
