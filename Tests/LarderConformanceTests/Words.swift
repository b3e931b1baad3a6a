import Glibc

/// The words in braces that fields, paths and expectations may hold.
///
/// `{now}`, `{now-60}`, `{now+60}` is a date so many seconds from the case's beginning;
/// `{rfc850-60}` and `{asctime-60}` are dates in the obsolete forms (RFC 9110 §5.6.7); `{date}` is
/// this very moment; `{base}` is the case's URL, `{path}` its path, `{authority}` the origin's.
struct Words: Sendable {
    let path: String
    let authority: String
    let start: time_t

    var base: String { "http://\(self.authority)\(self.path)" }

    private static let imf = "%a, %d %b %Y %H:%M:%S GMT"

    func said(_ text: String) -> String {
        guard text.contains("{") else { return text }
        var said = ""
        var rest = Substring(text)
        while let open = rest.firstIndex(of: "{") {
            said += rest[..<open]
            let tail = rest[rest.index(after: open)...]
            guard let close = tail.firstIndex(of: "}"), let value = self.value(tail[..<close])
            else {
                said += "{"
                rest = tail
                continue
            }
            said += value
            rest = tail[tail.index(after: close)...]
        }
        return said + rest
    }

    /// The dates of all moments since the case began, and of the seconds before and after: clocks are read
    /// to different precisions.
    var moments: [String] {
        (self.start - 1...time(nil) + 1).map { Self.text($0, Self.imf) }
    }

    private func value(_ word: Substring) -> String? {
        switch word {
        case "base": return self.base
        case "path": return self.path
        case "authority": return self.authority
        case "date": return Self.text(time(nil), Self.imf)
        default: break
        }
        let forms = [
            "now": Self.imf, "rfc850": "%A, %d-%b-%y %H:%M:%S GMT",
            "asctime": "%a %b %e %H:%M:%S %Y",
        ]
        let name = word.prefix { $0.isLetter || $0.isNumber }
        let digits = word.dropFirst(name.count)
        guard let form = forms[String(name)], let offset = digits.isEmpty ? 0 : Int(digits)
        else { return nil }
        return Self.text(self.start + offset, form)
    }

    private static func text(_ moment: time_t, _ form: String) -> String {
        var moment = moment
        var parts = unsafe tm()
        unsafe gmtime_r(&moment, &parts)
        var text = [UInt8](repeating: 0, count: 64)
        let count = unsafe text.withUnsafeMutableBytes { bytes in
            unsafe bytes.withMemoryRebound(to: CChar.self) {
                unsafe strftime($0.baseAddress, $0.count, form, &parts)
            }
        }
        return String(decoding: text.prefix(count), as: UTF8.self)
    }
}
