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
        let days = seconds / 86_400
        let time = seconds % 86_400
        // Days since 0000-03-01, in eras of 400 years, so that a leap day ends its year.
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        func two(_ n: Int64) -> String { n < 10 ? "0\(n)" : "\(n)" }
        let padding = String(repeating: "0", count: 4 - String(year).count)
        return "\(weekdays[Int(days % 7)]), \(two(day)) \(months[Int(month - 1)]) "
            + "\(padding)\(year) \(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }
}
