import Glibc

/// A date and time of day in UTC: `2026-01-02 03:04:05`.
struct CivilDate: CustomStringConvertible {
    let description: String

    /// What lies beyond the calendar of the C library is told in seconds.
    init(seconds: Int64) {
        var moment = time_t(seconds)
        var parts = unsafe tm()
        guard unsafe gmtime_r(&moment, &parts) != nil else {
            self.description = "\(seconds) s"
            return
        }
        let year = unsafe Int64(parts.tm_year) + 1900
        let date = unsafe [parts.tm_mon + 1, parts.tm_mday].map(Self.two)
        let time = unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec].map(Self.two)
        self.description = "\(year)-\(date.joined(separator: "-")) \(time.joined(separator: ":"))"
    }

    private static func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
