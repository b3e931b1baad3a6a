/// Paths as cookies compare them (RFC 6265bis §5.1.4).
///
/// They are compared byte by byte, percent-encoding untouched, as the RFC has it.
package enum CookiePath {
    /// The path of a cookie that names none: the directory of the request's.
    package static func `default`(_ path: Substring) -> String {
        guard path.utf8.first == UInt8(ascii: "/"), let slash = path.lastIndex(of: "/"),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a cookie with `cookiePath` is for a request with `path`.
    package static func matches(_ path: Substring, _ cookiePath: String) -> Bool {
        let (request, cookie) = (path.utf8, cookiePath.utf8)
        guard request.starts(with: cookie) else { return false }
        let slash = UInt8(ascii: "/")
        return request.count == cookie.count || cookie.last == slash
            || request.dropFirst(cookie.count).first == slash
    }
}
