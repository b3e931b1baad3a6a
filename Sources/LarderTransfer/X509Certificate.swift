import COpenSSL
import Glibc
package import LarderHTTP

/// What a certificate says (RFC 5280), read by the library that judges it in a handshake.
package struct X509Certificate: Sendable, Hashable {
    package let der: [UInt8]
    /// A distinguished name as text (RFC 4514).
    package let subject: String
    package let issuer: String
    package let validFrom: Timestamp
    package let validUntil: Timestamp
    /// `SubjectPublicKeyInfo`, DER: what pins are hashes of (RFC 7469 §2.4).
    package let publicKeyInfo: [UInt8]

    /// Reads a certificate; nil where the octets are not exactly one.
    package init?(der: [UInt8]) {
        guard let certificate = unsafe X509Handle(der: der) else { return nil }
        defer { unsafe certificate.free() }
        guard let subject = unsafe certificate.name(X509_get_subject_name),
            let issuer = unsafe certificate.name(X509_get_issuer_name),
            let from = unsafe certificate.time(X509_get0_notBefore),
            let until = unsafe certificate.time(X509_get0_notAfter),
            let key = unsafe certificate.publicKeyInfo
        else { return nil }
        self.der = der
        self.subject = subject
        self.issuer = issuer
        self.validFrom = from
        self.validUntil = until
        self.publicKeyInfo = key
    }
}

/// An `X509` of OpenSSL's; freed by whoever has it.
@unsafe struct X509Handle {
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    init?(der: [UInt8]) {
        CurlLibrary.prepare()
        let (found, isWhole) = unsafe der.withUnsafeBufferPointer {
            bytes -> (OpaquePointer?, Bool) in
            var cursor = bytes.baseAddress
            let found = unsafe d2i_X509(nil, &cursor, bytes.count)
            let end = unsafe bytes.baseAddress.map { unsafe $0 + bytes.count }
            return unsafe (found, cursor == end)
        }
        guard let found = unsafe found else {
            ERR_clear_error()
            return nil
        }
        guard isWhole else {
            unsafe X509_free(found)
            return nil
        }
        unsafe self.pointer = unsafe found
    }

    func free() { unsafe X509_free(self.pointer) }

    var der: [UInt8]? {
        unsafe OpenSSLOctets.encoded { unsafe i2d_X509(self.pointer, $0) }
    }

    var publicKeyInfo: [UInt8]? {
        guard let key = unsafe X509_get_X509_PUBKEY(self.pointer) else { return nil }
        return unsafe OpenSSLOctets.encoded { unsafe i2d_X509_PUBKEY(key, $0) }
    }

    func name(_ get: (OpaquePointer?) -> OpaquePointer?) -> String? {
        guard let name = unsafe get(self.pointer), let bio = unsafe BIO_new(BIO_s_mem()) else {
            return nil
        }
        defer { unsafe BIO_free(bio) }
        guard unsafe X509_NAME_print_ex(bio, name, 0, copenssl_name_flags()) >= 0 else {
            return nil
        }
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe copenssl_bio_octets(bio, &start)
        guard count > 0, let start = unsafe start else { return "" }
        let octets = unsafe UnsafeRawBufferPointer(start: start, count: count)
        return unsafe String(decoding: octets, as: UTF8.self)
    }

    func time(_ get: (OpaquePointer?) -> UnsafePointer<ASN1_TIME>?) -> Timestamp? {
        guard let time = unsafe get(self.pointer) else { return nil }
        var parts = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else {
            ERR_clear_error()
            return nil
        }
        let seconds = Int64(unsafe timegm(&parts))
        // The year 9999 is common; beyond what fits it is as good as never.
        let (microseconds, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000)
        return Timestamp(microseconds: overflows ? .max : microseconds)
    }
}

/// Octets that OpenSSL makes.
enum OpenSSLOctets {
    /// Runs one of the `i2d` functions, which give memory of their own where they get a null pointer
    /// to write to.
    static func encoded(
        _ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>) -> Int32
    ) -> [UInt8]? {
        var memory: UnsafeMutablePointer<UInt8>?
        let count = unsafe encode(&memory)
        guard count > 0, let memory = unsafe memory else {
            ERR_clear_error()
            return nil
        }
        defer {
            // It may be a key.
            unsafe explicit_bzero(memory, Int(count))
            unsafe copenssl_free(memory)
        }
        return unsafe Array(UnsafeBufferPointer(start: memory, count: Int(count)))
    }
}
