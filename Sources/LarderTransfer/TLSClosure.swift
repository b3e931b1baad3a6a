import COpenSSL
import LarderHTTP

/// Whether a server ends a TLS connection in order, with a closure alert.
///
/// Content that only the connection's end ends is whole only then (RFC 9112 §9.8): anybody on the way can end
/// a TCP connection, but nobody can forge the alert. libcurl 7.88 takes either for the end, and clears what
/// OpenSSL knows of it before a transfer hears of its own.
///
/// Belongs to the connection's SSL, which SSL_set_ex_data(3) has hold a reference, and to the transfer.
/// Not `Sendable`: libcurl does its TLS on the loop's thread.
@safe final class TLSClosure {
    private(set) var hasCome = false

    private init() {}

    /// The place of a closure in a connection; negative where OpenSSL has no memory for it.
    private static let index: Int32 = {
        unsafe copenssl_ssl_ex_index { _, closure, _, _, _, _ in
            guard let closure = unsafe closure else { return }
            unsafe Unmanaged<TLSClosure>.fromOpaque(closure).release()
        }
    }()

    /// Looks from now on for the alert on a connection, which must be in use; nil where OpenSSL refuses.
    static func watch(_ tls: OpaquePointer) -> TLSClosure? {
        guard Self.index >= 0 else { return nil }
        let closure = TLSClosure()
        let pointer = unsafe Unmanaged.passRetained(closure).toOpaque()
        guard unsafe SSL_set_ex_data(tls, Self.index, pointer) == 1 else {
            unsafe Unmanaged<TLSClosure>.fromOpaque(pointer).release()
            return nil
        }
        unsafe SSL_set_info_callback(tls, Self.heard)
        return closure
    }

    /// SSL_set_info_callback(3): for an alert that was read the value is its level and its description.
    private static let heard: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = {
        tls, place, value in
        guard copenssl_is_closure(place, value), let tls = unsafe tls,
            let pointer = unsafe SSL_get_ex_data(tls, TLSClosure.index)
        else { return }
        unsafe Unmanaged<TLSClosure>.fromOpaque(pointer).takeUnretainedValue().hasCome = true
    }
}

extension Transfer {
    /// Whether a response's content ends where the TLS connection does.
    ///
    /// - Parameter length: as its head says, whatever becomes of codings.
    func endsWithTLS(_ head: ResponseHead, _ length: BodyLength) -> Bool {
        (self.scheme == .https || self.way.parent?.kind == .https) && length == .unknown
            && head.version.major < 2
            && !head.fields.has(.transferEncoding)
    }
}
