import LarderHTTP
import LarderPolicy
import Testing

@testable import LarderProxy

@Suite("The field Larder-Cache-Policy")
struct CachePolicyFieldTests {
    @Test("is a word of the request cache policies", arguments: RequestCachePolicy.allCases)
    func words(_ policy: RequestCachePolicy) {
        #expect(
            CachePolicyField.read(["Larder-Cache-Policy": policy.rawValue]) == .policy(policy))
    }

    static let refusals: [(Fields, String)] = [
        (["Larder-Cache-Policy": "use-protocl"], "did you mean use-protocol?"),
        (["larder-cache-policy": "x"], "known are: use-protocol, reload-ignoring-local"),
        (["Larder-Cache-Policy": ""], "must hold one word"),
        (["Larder-Cache-Policy": "use-protocol, use-protocol"], "must hold one word"),
        (["Larder-Cache-Policy": "use-protocol;q=1"], "did you mean use-protocol?"),
        (["Larder-Cache-Policy": String(repeating: "y", count: 10_000)], "known are: "),
    ]

    @Test("is refused otherwise, without a word of what was received", arguments: Self.refusals)
    func refused(_ fields: Fields, _ told: String) {
        guard case .refused(let detail) = CachePolicyField.read(fields) else {
            Issue.record("read")
            return
        }
        #expect(detail.contains(told))
        #expect(detail.utf8.count < 300)
        #expect(!detail.contains("yyy"))
    }

    @Test("may be absent")
    func absent() {
        #expect(CachePolicyField.read(["Cache-Control": "no-cache"]) == .absent)
    }
}
