import COpenSSL
import LarderHTTP

/// The alerts with which a server breaks TLS off on account of a client's certificate (RFC 8446 §6.2),
/// by their numbers and by their names in OpenSSL's texts.
///
/// With TLS 1.3 they come when the handshake is over for the client.
enum CertificateAlert {
    private typealias Alert = (number: Int32, name: String)

    private static let required: Alert = (SSL_AD_CERTIFICATE_REQUIRED, "certificate required")
    /// What they mean where a certificate was shown; without one they are about something else.
    private static let rejections: [Alert] = [
        (SSL_AD_BAD_CERTIFICATE, "bad certificate"),
        (SSL_AD_CERTIFICATE_UNKNOWN, "certificate unknown"),
        (SSL_AD_CERTIFICATE_EXPIRED, "certificate expired"),
        (SSL_AD_CERTIFICATE_REVOKED, "certificate revoked"),
        (SSL_AD_UNSUPPORTED_CERTIFICATE, "unsupported certificate"),
        (SSL_AD_UNKNOWN_CA, "unknown ca"), (SSL_AD_ACCESS_DENIED, "access denied"),
        (SSL_AD_DECRYPT_ERROR, "decrypt error"),
    ]

    /// What an alert says of the certificate; nil: nothing.
    static func cause(ofNumber number: Int32, hasIdentity: Bool) -> UpstreamFailure.Cause? {
        if number == self.required.number { return .clientCertificateRequired }
        return hasIdentity && self.rejections.contains { $0.number == number }
            ? .clientCertificateRejected : nil
    }

    /// What the alert says that a text of libcurl's names, which has it from OpenSSL.
    static func cause(inText text: String, hasIdentity: Bool) -> UpstreamFailure.Cause? {
        if text.contains("alert \(self.required.name)") { return .clientCertificateRequired }
        return hasIdentity && self.rejections.contains { text.contains("alert \($0.name)") }
            ? .clientCertificateRejected : nil
    }
}
