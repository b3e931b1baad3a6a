import CCurl
import LarderHTTP

/// What an HTTP client is told of an FTP transfer: heads that no origin sent.
enum FTPResponse {
    /// The head for a file, or for a listing where the path ends in `/` (RFC 1738 §3.2.2).
    ///
    /// FTP knows no media types: a file is `application/octet-stream`, a listing the text of the
    /// server's LIST as it came.
    ///
    /// - Parameter modified: seconds since 1970, or a negative number where the server did not say.
    static func head(for uri: TargetURI, length: UInt64?, modified: Int64?) -> ResponseHead {
        var head = ResponseHead(status: .ok, reason: "OK")
        let isListing = uri.path.utf8.last == UInt8(ascii: "/")
        head.fields.append(
            "Content-Type", isListing ? "text/plain; charset=utf-8" : "application/octet-stream")
        if isListing { return head }
        if let length { head.fields.append("Content-Length", "\(length)") }
        if let modified, modified >= 0, let date = self.date(modified) {
            head.fields.append("Last-Modified", date)
        }
        return head
    }

    /// The answer that a server's refusal amounts to; nil for failures that are none.
    static func refusal(_ code: CURLcode) -> ResponseHead? {
        switch code {
        case CURLE_REMOTE_FILE_NOT_FOUND, CURLE_REMOTE_ACCESS_DENIED, CURLE_FTP_COULDNT_RETR_FILE:
            // 550 to RETR or CWD does not tell "not there" from "not for you" (RFC 959 §4.2).
            self.refusal(StatusCode(404), "Not Found")
        case CURLE_LOGIN_DENIED:
            self.refusal(StatusCode(403), "Forbidden")
        default:
            nil
        }
    }

    /// The text that goes with a refusal.
    static func body(of head: ResponseHead) -> String {
        head.status.rawValue == 404
            ? "The FTP server has no such file or directory.\n"
            : "The FTP server refused the login.\n"
    }

    private static func refusal(_ status: StatusCode, _ reason: String) -> ResponseHead {
        var head = ResponseHead(status: status, reason: reason)
        head.fields.append("Content-Type", "text/plain; charset=utf-8")
        head.fields.append("Content-Length", "\(self.body(of: head).utf8.count)")
        return head
    }

    /// An IMF-fixdate (RFC 9110 §5.6.7); nil beyond the year 9999.
    static func date(_ seconds: Int64) -> String? {
        guard (0..<253_402_300_800).contains(seconds) else { return nil }
        return HTTPDate.format(Timestamp(seconds: seconds))
    }
}
