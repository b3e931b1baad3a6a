import CCurl
import LarderHTTP

/// The URL of an origin, as libcurl takes it apart.
///
/// A request's own target goes out byte for byte (CURLOPT_REQUEST_TARGET), so all requests to an origin
/// have the same URL. To parse it for each, and to put it together again as libcurl does with one that
/// it gets as text, was a fifth of libcurl's instructions.
///
/// Not `Sendable`: belongs to a handle, which libcurl reads it through until the handle is wiped
/// (CURLOPT_CURLU(3): "uses this handle and its contents read-only").
@safe final class OriginURL {
    private let scheme: Scheme
    private let host: String
    private let port: UInt16
    /// What `Host` says.
    let authority: String
    let text: String
    /// nil where libcurl cannot read it, or has no memory.
    let pointer: OpaquePointer?

    init(_ uri: TargetURI) {
        self.scheme = uri.scheme
        self.host = uri.host
        self.port = uri.port
        self.authority = uri.authority
        self.text = "\(uri.scheme.rawValue)://\(uri.host):\(uri.port)/"
        guard let pointer = unsafe curl_url() else {
            unsafe self.pointer = nil
            return
        }
        guard unsafe curl_url_set(pointer, CURLUPART_URL, self.text, 0) == CURLUE_OK else {
            unsafe curl_url_cleanup(pointer)
            unsafe self.pointer = nil
            return
        }
        unsafe self.pointer = pointer
    }

    deinit {
        if let pointer = unsafe self.pointer { unsafe curl_url_cleanup(pointer) }
    }

    /// Whether requests to `uri` go to it.
    func isOf(_ uri: TargetURI) -> Bool {
        self.port == uri.port && self.scheme == uri.scheme && self.host == uri.host
    }
}
