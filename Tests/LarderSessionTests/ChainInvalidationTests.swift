import LarderHTTP
import LarderPolicy
import LarderSession
import Testing

@Suite("Unsafe requests that a session redirects itself (RFC 9111 §4.4)")
struct ChainInvalidationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var title: String
        var method = Method.post
        /// Status and `Location` of the redirections, in turn.
        var steps: [(UInt16, String)]
        var last: UInt16
        var gone: [String]
        var kept: [String] = []

        var testDescription: String { self.title }
    }

    @Test(
        "invalidate each target that answered without an error, and what a redirection names there",
        arguments: [
            Case(
                title: "303 to a list", steps: [(303, "/list")], last: 200,
                gone: ["/", "/list"], kept: ["/other"]),
            Case(
                title: "303 to nothing", steps: [(303, "/list")], last: 404,
                gone: ["/", "/list"]),
            Case(title: "307", steps: [(307, "/other")], last: 204, gone: ["/", "/other"]),
            Case(
                title: "307 to another origin", steps: [(307, "https://b.example/")], last: 200,
                gone: ["/", "https://b.example/"], kept: ["/list"]),
            Case(
                title: "307 to another origin, which fails",
                steps: [(307, "https://b.example/")], last: 403, gone: ["/"],
                kept: ["https://b.example/", "/list"]),
            Case(
                title: "303 to another origin: a GET changes nothing there",
                steps: [(303, "https://b.example/")], last: 200, gone: ["/"],
                kept: ["https://b.example/"]),
            Case(
                title: "safe: what is newer takes the place of its own target's alone",
                method: .get, steps: [(302, "/list")], last: 200, gone: ["/"],
                kept: ["/list", "/other"]),
        ])
    func targets(_ row: Case) {
        let bench = ChainBench(follows: true)
        let all = ["/", "/list", "/other", "https://b.example/"]
        for path in all {
            bench.perform(Self.uri(path))
            bench.upstream.fetches.last?.answer(200, ["Cache-Control": "max-age=60"], "old")
        }
        bench.perform(
            Self.uri("/"), method: row.method,
            row.method == .get ? ["Cache-Control": "no-cache"] : Fields(),
            body: row.method == .get ? nil : ScriptedBody("x"))
        for (status, location) in row.steps {
            bench.upstream.fetches.last?.answer(status, ["Location": location])
        }
        bench.upstream.fetches.last?.answer(row.last, ["Cache-Control": "no-store"], "new")
        for path in row.gone {
            let client = bench.perform(Self.uri(path)).client
            bench.upstream.fetches.last?.answer(200, ["Cache-Control": "no-store"], "newer")
            #expect(client.wholeBody == "newer", "\(path)")
        }
        for path in row.kept {
            #expect(bench.perform(Self.uri(path)).client.wholeBody == "old", "\(path)")
        }
    }

    private static func uri(_ path: String) -> String {
        path.hasPrefix("/") ? "https://origin.example\(path)" : path
    }
}
