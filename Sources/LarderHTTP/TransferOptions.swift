/// What one request wants of the upstream, where it differs from the upstream's configuration.
package struct TransferOptions: Sendable, Hashable {
    /// How long nothing may move once it is its turn (`timeoutIntervalForRequest`): while its
    /// connection is made, its content taken, its response awaited and read; nil: as configured.
    ///
    /// Waiting for a connection to become free, and for whoever reads or writes content on this
    /// side, does not count.
    package var idleTimeout: Duration?
    /// How long it may take as a whole, waiting included (`timeoutIntervalForResource`); nil: as
    /// configured.
    package var resourceTimeout: Duration?
    /// From 0 to 1: the order in which requests wait for a connection, and the weight of a stream of
    /// HTTP/2.
    package var priority: Float = 0.5
    /// The traffic class of its packets: the DSCP (RFC 2474 §3), 0 to 63, without the two bits of
    /// ECN; nil: the system's.
    package var trafficClass: UInt8?
    /// Its response is handed over with the content codings undone that the upstream knows;
    /// `Content-Encoding` stays in the head, and the length counts as unknown.
    ///
    /// What is coded otherwise is handed over as it came. No field is added to the request.
    package var decodesContent = false
    /// The lines of the head of its response may end in LF alone, as RFC 9112 §2.2 allows.
    ///
    /// Not for whoever passes the response on: the next recipient might see other lines in it.
    package var acceptsBareLF = false
    /// The client certificate that it may show; nil: none.
    package var identity: TLSIdentity?
    /// The login for the parent on its way, in the place of the parent's own; nil: that one.
    package var proxyAuthorization: ProxyAuthorization?
    /// A 407 of the parent's is for whoever sent the request: one to the request itself is handed
    /// over as its response, one to CONNECT is a failure with the cause
    /// `proxyAuthenticationRequired` and its challenges.
    ///
    /// Without it both are failures, as the parent's login is then the configuration's affair.
    package var receivesProxyChallenges = false
    /// An FTP server's refusal is a failure (`loginDenied`, `fileNotFound`), not a made-up 403 or 404.
    package var reportsFTPRefusals = false
    /// An FTP server is asked when the file was changed (MDTM, RFC 3659 §3), which becomes
    /// `Last-Modified`; without it, it hears nothing but what fetching the file takes.
    package var asksFTPDate = true

    package init() {}
}

/// A client certificate with its key, as a TLS library reads it.
///
/// A secret: no description shows it.
package final class TLSIdentity: Sendable, Hashable {
    package enum Form: String, Sendable, Hashable { case pem, pkcs12 }

    package let form: Form
    /// The certificate, for PKCS #12 with the key in it.
    package let certificate: [UInt8]
    /// The key (PEM); empty where it is in `certificate`.
    package let key: [UInt8]
    package let password: String

    package init(form: Form, certificate: [UInt8], key: [UInt8] = [], password: String = "") {
        self.form = form
        self.certificate = certificate
        self.key = key
        self.password = password
    }

    package static func == (a: TLSIdentity, b: TLSIdentity) -> Bool {
        a.form == b.form && a.certificate == b.certificate && a.key == b.key
            && a.password == b.password
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.form)
        hasher.combine(self.certificate)
    }
}

extension TLSIdentity: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(a client certificate)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
