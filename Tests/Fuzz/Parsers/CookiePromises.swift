import LarderCookies
import LarderHTTP

/// `Set-Cookie`, the jar it goes to, and cookie files (RFC 6265).
enum CookiePromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        var fields = Fields()
        for line in input.textLines {
            fields.append("Set-Cookie", line)
            fields.append("Cookie", line)
            try self.checkLine(line)
            _ = CookieDate.parse(line)
        }
        try self.checkJar(fields)
        try self.checkFile(input)
        _ = CookieField.names(in: fields)
    }

    private static func checkLine(_ line: FieldValue) throws(Violation) {
        let joined = SetCookie.lines(joined: line)
        let kept = joined.reduce(0) { $0 + $1.count }
        try hold(kept <= line.count && !joined.contains { $0.isEmpty }, "cut into \(joined)")
        guard let cookie = try? SetCookie(parsing: line) else { return }
        try hold(
            cookie.name.count + cookie.value.count <= SetCookie.pairLimit.clamped,
            "a cookie of \(cookie.name.count + cookie.value.count) bytes")
        for byte in cookie.name + cookie.value {
            try hold(byte == ASCII.tab || (byte >= 0x20 && byte != 0x7F), "the byte \(byte)")
            try hold(byte != ASCII.semicolon, "an attribute in a value")
        }
        if let age = cookie.maxAge {
            try hold((0...DeltaSeconds.limit).contains(age.inSeconds), "a Max-Age of \(age)")
        }
        if case .explicit(let path) = cookie.path {
            try hold(path.hasPrefix("/"), "the path \(path)")
        }
        // The pair alone, without its attributes, is the same pair.
        let pair = Array(line.prefix { $0 != ASCII.semicolon })
        let alone = try? SetCookie(parsing: pair[...])
        try hold(
            alone?.name == cookie.name && alone?.value == cookie.value, "the pair of \(cookie)")
    }

    private static func checkJar(_ fields: Fields) throws(Violation) {
        let now = Timestamp(seconds: 1_700_000_000)
        for text in ["https://www.a.example/b/c", "http://a.example/", "https://127.0.0.1/x"] {
            guard let uri = TargetURI(text: text) else { continue }
            let context = CookieContext(uri: uri)
            var jar = CookieJar(
                limits: CookieLimits(perDomain: 3, total: 5), suffixes: TopLevelSuffixes())
            let outcomes = jar.store(fields, for: context, at: now)
            try hold(outcomes.count == fields.values("Set-Cookie").count, "an outcome is missing")
            try hold(jar.count <= 5 && jar.all(at: now).count <= jar.count, "\(jar.count) cookies")
            for cookie in jar.all(at: now) {
                try hold(
                    CookieDomain.matches(uri.host, cookie.domain), "\(cookie) from \(uri.host)")
                try hold(
                    cookie.expiry.map { $0 <= now + jar.limits.lifetime } ?? true,
                    "\(cookie) lives for ever")
                try hold(!cookie.isSecure || uri.scheme == .https, "\(cookie) from \(uri)")
            }
            var sent: Fields = ["Cookie": "a=b"]
            CookieField.apply(jar.takeCookies(for: context, at: now), to: &sent)
            try checkSection(sent)
            let count = jar.count
            let gone = jar.remove { _ in true }
            try hold(jar.count == 0 && gone.count == count, "\(jar.count) cookies stay")
        }
    }

    /// A file that was read and written is read as the same cookies.
    private static func checkFile(_ input: [UInt8]) throws(Violation) {
        let now = Timestamp(seconds: 1_700_000_000)
        let first = NetscapeCookieFile.parse(input, now: now)
        let (bytes, leftOut) = NetscapeCookieFile.write(first.cookies)
        let again = NetscapeCookieFile.parse(bytes, now: now)
        try hold(again.problems.isEmpty, "written with faults: \(again.problems)")
        try hold(
            again.cookies.count == first.cookies.count - leftOut.count,
            "\(again.cookies) were \(first.cookies)")
        // As files: a moment beyond what can be counted comes back as the last that can.
        try hold(NetscapeCookieFile.write(again.cookies).bytes == bytes, "\(bytes.text)")
    }
}
