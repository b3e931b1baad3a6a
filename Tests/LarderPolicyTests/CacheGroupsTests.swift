import LarderHTTP
import LarderPolicy
import Testing

@Suite("Cache groups (RFC 9875)")
struct CacheGroupsTests {
    @Test(
        "are a list of strings (§2)",
        arguments: [
            ("", []), ("Cache-Groups: \"a\"", ["a"]), ("Cache-Groups: \"a\", \"B\"", ["a", "B"]),
            ("Cache-Groups: \"a\" | Cache-Groups: \"b\"", ["a", "b"]),
            ("Cache-Groups: \"a\", \"a\"", ["a"]), ("Cache-Groups: \"a\";x=1", ["a"]),
            ("Cache-Groups: \"a, b\"", ["a, b"]), ("Cache-Groups: \"a\\\"b\"", ["a\"b"]),
            ("Cache-Groups: \"\"", [""]), ("Cache-Groups: ", []),
            // Another type, or an error of syntax, and the field counts for nothing.
            ("Cache-Groups: a", []), ("Cache-Groups: \"a\", 1", []), ("Cache-Groups: \"a\",", []),
            ("Cache-Groups: (\"a\")", []), ("Cache-Groups: \"a", []), ("Cache-Groups: \"ü\"", []),
        ] as [(String, [String])])
    func groups(_ text: String, _ expected: [String]) {
        #expect(CacheGroups.of(stored(text)) == expected)
    }

    @Test("are looked at up to a bound")
    func bounded() {
        let text = (0..<200).map { "\"\($0)\"" }.joined(separator: ", ")
        #expect(CacheGroups.of(stored("Cache-Groups: \(text)")).count == CacheGroups.limit)
    }

    @Test(
        "are invalidated by unsafe methods that succeed (§3)",
        arguments: [
            (.post, 200, ["a"]), (.put, 204, ["a"]), (.post, 303, ["a"]), (.post, 400, []),
            (.post, 500, []), (.get, 200, []), (.head, 200, []), (.options, 200, []),
            (Method(rawValue: "FOO"), 200, ["a"]),
        ] as [(Method, UInt16, [String])])
    func invalidation(_ method: Method, _ status: UInt16, _ expected: [String]) {
        let groups = CacheGroups.invalidated(
            by: response("Cache-Group-Invalidation: \"a\"", status: status),
            to: request(method: method))
        #expect(groups == expected)
    }

    @Test(
        "are invalid up to their last invalidation (§2.2.1)",
        arguments: [
            ("Cache-Groups: \"a\"", 0, true), ("Cache-Groups: \"b\", \"a\"", -5, true),
            ("Cache-Groups: \"a\"", 1, false), ("Cache-Groups: \"b\"", 0, false), ("", 0, false),
            ("Cache-Groups: a", 0, false),
        ] as [(String, Int64, Bool)])
    func invalidated(_ text: String, _ received: Int64, _ isInvalidated: Bool) {
        let head = stored(text, received: received)
        #expect(
            CacheGroups.isInvalidated(head) { $0 == "a" ? t0 : nil } == isInvalidated)
    }

    @Test("count from the request: the response may be older than its arrival")
    func underWay() {
        let slow = stored("Cache-Groups: \"a\"", delay: 3, received: 2)
        #expect(CacheGroups.isInvalidated(slow) { _ in t0 })
        #expect(!CacheGroups.isInvalidated(slow) { _ in t0 - .seconds(2) })
    }
}
