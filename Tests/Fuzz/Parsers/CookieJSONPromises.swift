import LarderCookies
import LarderHTTP

/// Cookies in JSON, from any program.
enum CookieJSONPromises {
    private static let now = Timestamp(seconds: 1_700_000_000)

    static func check(_ input: [UInt8]) throws(Violation) {
        let first: CookieJSON.Contents
        do throws(CookieJSON.TextError) {
            first = try CookieJSON.parse(input, now: self.now)
        } catch {
            if case .syntax(let offset) = error {
                try hold((0...input.count).contains(offset), "a fault at \(offset)")
            }
            return
        }
        let places = first.problems.map(\.element)
        try hold(places == places.sorted() && Set(places).count == places.count, "\(places)")
        // What was read is read again as the same, but for what a float cannot say.
        let text = CookieJSON.write(first.cookies)
        let again = try? CookieJSON.parse(text, now: self.now)
        guard let again else { throw Violation(description: "no JSON: \(text.text)") }
        try hold(
            again.problems.isEmpty
                && again.cookies.map(\.identity) == first.cookies.map(\.identity),
            "\(again) was \(first)")
        for (a, b) in zip(again.cookies, first.cookies) {
            try hold(
                a.value == b.value && a.isSecure == b.isSecure && a.isHTTPOnly == b.isHTTPOnly
                    && a.isPersistent == b.isPersistent && a.sameSite == b.sameSite,
                "\(a) was \(b)")
        }
    }
}
