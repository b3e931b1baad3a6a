import LarderCredentials
import LarderHTTP

/// A credential, as it is sent with one request.
enum LoadAuthorization: Sendable {
    /// The value of `Authorization`.
    case field(Secret)
    /// The connection is authenticated by the upstream (NTLM, Negotiate).
    case connection(ConnectionAuthentication)
}
