// The values of protocols and proxy types are those of Apple's: what a challenge of a URL has as its
// `protocol` is equal to the constant.

/// The protocol HTTP: "http".
public let NSURLProtectionSpaceHTTP: String = "http"
/// The protocol HTTP over TLS: "https".
public let NSURLProtectionSpaceHTTPS: String = "https"
/// The protocol FTP: "ftp".
public let NSURLProtectionSpaceFTP: String = "ftp"
/// A proxy for http.
public let NSURLProtectionSpaceHTTPProxy: String = "http"
/// A proxy for https.
public let NSURLProtectionSpaceHTTPSProxy: String = "https"
/// A proxy for ftp.
public let NSURLProtectionSpaceFTPProxy: String = "ftp"
/// A proxy that speaks SOCKS.
public let NSURLProtectionSpaceSOCKSProxy: String = "SOCKS"

/// Whichever method the protocol has.
///
/// A password stored for it answers challenges of any method of the same host, port and realm.
public let NSURLAuthenticationMethodDefault: String = "NSURLAuthenticationMethodDefault"
/// Basic (RFC 7617).
public let NSURLAuthenticationMethodHTTPBasic: String = "NSURLAuthenticationMethodHTTPBasic"
/// Digest (RFC 7616).
public let NSURLAuthenticationMethodHTTPDigest: String = "NSURLAuthenticationMethodHTTPDigest"
/// A form in a page; no challenge ever has it.
public let NSURLAuthenticationMethodHTMLForm: String = "NSURLAuthenticationMethodHTMLForm"
/// NTLM.
public let NSURLAuthenticationMethodNTLM: String = "NSURLAuthenticationMethodNTLM"
/// Negotiate: Kerberos or NTLM (RFC 4559).
public let NSURLAuthenticationMethodNegotiate: String = "NSURLAuthenticationMethodNegotiate"
/// A client certificate, in the handshake of TLS.
public let NSURLAuthenticationMethodClientCertificate: String =
    "NSURLAuthenticationMethodClientCertificate"
/// The program's say in whether a server's certificate is trusted.
public let NSURLAuthenticationMethodServerTrust: String = "NSURLAuthenticationMethodServerTrust"
