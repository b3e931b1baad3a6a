import LarderHTTP
import Testing

@Suite("References to URIs (RFC 3986 §5.2)")
struct ReferenceTests {
    static let base = TargetURI(scheme: .http, host: "a.example", pathAndQuery: "/b/c/d;p?q")

    /// §5.4.1 and §5.4.2, but for fragments, which a target has none of, and other schemes.
    @Test(
        "are resolved against the target",
        arguments: [
            ("http://a.example/x", "http://a.example/x"), ("g", "http://a.example/b/c/g"),
            ("./g", "http://a.example/b/c/g"), ("g/", "http://a.example/b/c/g/"),
            ("/g", "http://a.example/g"), ("//g", "http://g/"),
            ("?y", "http://a.example/b/c/d;p?y"),
            ("g?y", "http://a.example/b/c/g?y"), ("#s", "http://a.example/b/c/d;p?q"),
            ("g#s", "http://a.example/b/c/g"), (";x", "http://a.example/b/c/;x"),
            ("", "http://a.example/b/c/d;p?q"), (".", "http://a.example/b/c/"),
            ("./", "http://a.example/b/c/"), ("..", "http://a.example/b/"),
            ("../", "http://a.example/b/"), ("../g", "http://a.example/b/g"),
            ("../..", "http://a.example/"), ("../../g", "http://a.example/g"),
            ("../../../g", "http://a.example/g"), ("/./g", "http://a.example/g"),
            ("/../g", "http://a.example/g"), ("g.", "http://a.example/b/c/g."),
            ("..g", "http://a.example/b/c/..g"), ("./g/.", "http://a.example/b/c/g/"),
            ("g/../h", "http://a.example/b/c/h"), ("g?y/../x", "http://a.example/b/c/g?y/../x"),
            ("HTTPS://B.Example:443/", "https://b.example/"), ("http://b:8080", "http://b:8080/"),
            ("http://[::1]:81/x", "http://[::1]:81/x"), ("http://[::1]/x", "http://[::1]/x"),
            ("http://b:/x", "http://b/x"), ("http://b?q", "http://b/?q"),
            ("a?b:c", "http://a.example/b/c/a?b:c"),
            ("http:g", nil), ("mailto:a@b", nil), ("http://", nil), ("http://u@b/", nil),
            ("http://b:99999/", nil), ("http://b:8x/", nil), ("a b", nil), ("http://b/\u{e9}", nil),
        ] as [(String, String?)])
    func resolving(_ reference: String, _ expected: String?) {
        #expect(Self.base.resolving(Array(reference.utf8)[...])?.description == expected)
    }
}
