import COpenSSL
import Glibc

/// Why something is no client certificate with its key.
package enum ClientIdentityFault: String, Error, Sendable, CaseIterable {
    /// There is no certificate in it, or a damaged one.
    case noCertificate
    /// There is no private key in it, or a damaged one; or the password for the key is wrong.
    case noKey
    /// The file is encrypted with another password.
    case wrongPassword
    /// The key is another certificate's.
    case mismatch
    /// It is no such file, or a damaged one.
    case malformed
    /// It is encrypted in a way that the TLS library at hand does not know (often RC2 of old tools).
    case unsupported
}

/// A client certificate with what belongs to it, in one form whatever it was read from.
package struct ClientIdentityParts: Sendable {
    /// The client's own first, DER.
    package let certificates: [[UInt8]]
    /// PKCS #8, DER, not encrypted.
    package let key: [UInt8]
}

/// Reads client certificates and keys.
package enum ClientIdentityReader {
    /// Certificates and a key in PEM (RFC 7468), which may stand in one file.
    ///
    /// - Parameters:
    ///   - certificates: the client's own first, then those that lead to its root.
    ///   - password: for an encrypted key; empty: none.
    package static func pem(
        certificates: [UInt8], key: [UInt8], password: String
    ) throws(ClientIdentityFault) -> ClientIdentityParts {
        CurlLibrary.prepare()
        var chain = unsafe [X509Handle]()
        defer { for index in unsafe chain.indices { unsafe chain[index].free() } }
        unsafe self.withText(certificates) { bio in
            while let found = unsafe PEM_read_bio_X509(bio, nil, nil, nil) {
                unsafe chain.append(X509Handle(found))
            }
        }
        ERR_clear_error()
        guard unsafe !chain.isEmpty else { throw .noCertificate }
        var found: OpaquePointer?
        unsafe self.withText(key) { bio in
            unsafe password.withCString { text in
                // PEM_read_bio_PrivateKey(3): with no callback, "the u parameter" is the "null
                // terminated string to use as the passphrase"; with neither it would ask a terminal.
                unsafe found = unsafe PEM_read_bio_PrivateKey(
                    bio, nil, nil, UnsafeMutableRawPointer(mutating: text))
            }
        }
        ERR_clear_error()
        guard let key = unsafe found else { throw .noKey }
        defer { unsafe EVP_PKEY_free(key) }
        return try unsafe self.parts(chain, key)
    }

    /// A certificate and a key, both DER.
    package static func der(
        certificate: [UInt8], key: [UInt8]
    ) throws(ClientIdentityFault) -> ClientIdentityParts {
        guard let certificate = unsafe X509Handle(der: certificate) else { throw .noCertificate }
        defer { unsafe certificate.free() }
        let found = unsafe key.withUnsafeBufferPointer { bytes in
            var cursor = bytes.baseAddress
            return unsafe d2i_AutoPrivateKey(nil, &cursor, bytes.count)
        }
        ERR_clear_error()
        guard let found = unsafe found else { throw .noKey }
        defer { unsafe EVP_PKEY_free(found) }
        return try unsafe self.parts([certificate], found)
    }

    /// PKCS #12 (RFC 7292): all of it in one file, under a password.
    package static func pkcs12(
        _ file: [UInt8], password: String
    ) throws(ClientIdentityFault) -> ClientIdentityParts {
        CurlLibrary.prepare()
        let store = unsafe file.withUnsafeBufferPointer { bytes in
            var cursor = bytes.baseAddress
            return unsafe d2i_PKCS12(nil, &cursor, bytes.count)
        }
        guard let store = unsafe store else {
            ERR_clear_error()
            throw .malformed
        }
        defer { unsafe PKCS12_free(store) }
        var key: OpaquePointer?
        var certificate: OpaquePointer?
        var others: OpaquePointer?
        ERR_clear_error()
        let isRead = unsafe PKCS12_parse(store, password, &key, &certificate, &others)
        let fault = self.faultOfParsing()
        defer {
            unsafe EVP_PKEY_free(key)
            unsafe X509_free(certificate)
            unsafe copenssl_x509_stack_free(others)
        }
        guard isRead == 1 else { throw fault }
        guard let certificate = unsafe certificate else { throw .noCertificate }
        guard let key = unsafe key else { throw .noKey }
        var chain = unsafe [X509Handle(certificate)]
        for index in unsafe 0..<max(0, copenssl_x509_count(others)) {
            if let other = unsafe copenssl_x509_at(others, index) {
                unsafe chain.append(X509Handle(other))
            }
        }
        return try unsafe self.parts(chain, key)
    }

    /// What the errors of this thread say; takes them all.
    private static func faultOfParsing() -> ClientIdentityFault {
        var fault = ClientIdentityFault.malformed
        while true {
            let error = ERR_get_error()
            if error == 0 { return fault }
            if copenssl_is_mac_failure(error) != 0 { fault = .wrongPassword }
            if copenssl_is_unsupported(error) != 0, fault == .malformed { fault = .unsupported }
        }
    }

    private static func withText(_ octets: [UInt8], _ body: (OpaquePointer) -> Void) {
        unsafe octets.withUnsafeBytes { bytes in
            guard bytes.count <= Int32.max,
                let bio = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
            else { return }
            unsafe body(bio)
            unsafe BIO_free(bio)
        }
    }

    private static func parts(
        _ chain: [X509Handle], _ key: OpaquePointer
    ) throws(ClientIdentityFault) -> ClientIdentityParts {
        guard let own = unsafe chain.first else { throw .noCertificate }
        guard unsafe X509_check_private_key(own.pointer, key) == 1 else {
            ERR_clear_error()
            throw .mismatch
        }
        guard let plain = unsafe EVP_PKEY2PKCS8(key) else {
            ERR_clear_error()
            throw .noKey
        }
        defer { unsafe PKCS8_PRIV_KEY_INFO_free(plain) }
        guard
            let encoded = unsafe OpenSSLOctets.encoded({
                unsafe i2d_PKCS8_PRIV_KEY_INFO(plain, $0)
            })
        else { throw .noKey }
        return ClientIdentityParts(
            certificates: unsafe chain.compactMap { unsafe $0.der }, key: encoded)
    }
}
