import LarderCredentials
import LarderHTTP

/// A credential, as it is sent with one request.
enum LoadAuthorization: Sendable {
    /// The value of `Authorization`.
    case field(Secret)
    /// The connection is authenticated by the upstream (NTLM, Negotiate).
    case connection(ConnectionAuthentication)
    /// A proxy on the way wants a login, and perhaps the origin something, too (never another one of
    /// these).
    indirect case proxied(ProxyLogin, LoadAuthorization?)

    /// What is for the origin.
    var forOrigin: LoadAuthorization? {
        switch self {
        case .field, .connection: self
        case .proxied(_, let other): other
        }
    }

    /// What is for the proxy.
    var forProxy: ProxyLogin? {
        guard case .proxied(let login, _) = self else { return nil }
        return login
    }
}

/// A login for a proxy, which the upstream gives by the scheme's own rules: only it knows what it asks
/// the proxy for, and on which connection.
struct ProxyLogin: Sendable {
    let proxy: ProxyParty
    let method: AuthenticationMethod
    let user: String
    let password: Secret
}
