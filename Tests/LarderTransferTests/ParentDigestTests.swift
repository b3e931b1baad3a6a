import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("Content for a parent that asks for Digest (RFC 7616)", .timeLimit(.minutes(10)))
struct ParentDigestTests {
    private static let large = RequestContent.keptLimit + 1

    /// A parent that gives leave for content at once, and asks for the login when it has read it; but not
    /// for what is free.
    private static func parent(_ notes: Notes) throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let expects = field("Expect", in: head) != nil
                if expects { connection.write("HTTP/1.1 100 Continue\r\n\r\n") }
                let content =
                    field("Transfer-Encoding", in: head) == nil
                    ? connection.read(Int(field("Content-Length", in: head) ?? "") ?? 0)
                    : connection.readChunked()
                let login = field("Proxy-Authorization", in: head)
                let count = content?.utf8.filter { $0 == 0x78 }.count ?? 0
                let method = head.prefix { $0 != " " }
                notes.add(
                    "\(method) \(count)\(expects ? " expects" : "")\(login == nil ? "" : " login")")
                let isIn = login?.hasPrefix("Digest ") == true || head.contains("/free")
                connection.respond(
                    isIn ? "200 OK" : "407 No",
                    isIn ? "" : "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n",
                    isIn ? "in" : "no")
            }
        }
    }

    private static func put(
        _ target: String = "/asked", _ count: Int = Self.large, isKnown: Bool = true,
        host: String = "origin.example", through upstream: CurlUpstream
    ) async -> Recorder.Record {
        await upstream.answer(
            to: .example(
                .put, target, length: isKnown ? .known(UInt64(count)) : .unknown, host: host),
            body: ScriptedContent(text: String(repeating: "x", count: count)))
    }

    @Test(
        "goes out once it has asked, where it is known to and the content cannot be sent twice",
        arguments: [true, false])
    func known(_ isKnown: Bool) async throws {
        let notes = Notes()
        let parent = try Self.parent(notes)
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .any, as: .alice)) }) {
            upstream in
            let first = await Self.put(isKnown: isKnown, through: upstream)
            #expect(first.failure?.kind == .proxyConfigurationError)
            #expect(first.failure?.detail.contains("authentication: digest") == true)
            for _ in 0..<2 {
                let record = await Self.put(isKnown: isKnown, through: upstream)
                #expect(record.text == "in")
                #expect(record.failure == nil)
                #expect(record.violations == [])
            }
        }
        let asked = ["PUT 0", "PUT \(Self.large) login"]
        #expect(notes.all == ["PUT \(Self.large) expects"] + asked + asked)
    }

    @Test("is known by any request for the same origin, and sent twice where it is short")
    func learned() async throws {
        let notes = Notes()
        let parent = try Self.parent(notes)
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .any, as: .alice)) }) {
            upstream in
            #expect(await upstream.answer(to: .example()).text == "in")
            #expect(await Self.put(through: upstream).text == "in")
            #expect(await Self.put("/asked", 5, through: upstream).text == "in")
            // It may ask for some origins alone.
            #expect(await Self.put("/free", host: "other.example", through: upstream).text == "in")
        }
        #expect(
            notes.all == [
                "GET 0", "GET 0 login", "PUT 0", "PUT \(Self.large) login", "PUT 5", "PUT 5 login",
                "PUT \(Self.large) expects",
            ])
    }

    @Test("goes out at once again when the parent has let a request in without asking")
    func forgotten() async throws {
        let notes = Notes()
        let parent = try Self.parent(notes)
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .any, as: .alice)) }) {
            upstream in
            for target in ["/asked", "/free"] {
                #expect(await upstream.answer(to: .example(.get, target)).text == "in")
            }
            #expect(await Self.put("/free", through: upstream).text == "in")
        }
        #expect(
            notes.all == ["GET 0", "GET 0 login", "GET 0", "PUT \(Self.large) expects"])
    }

    @Test(
        "is not said to have arrived where the request without it was let in",
        arguments: [Parent.Authentication.any, .digest, .ntlm])
    func letIn(_ authentication: Parent.Authentication) async throws {
        let notes = Notes()
        let parent = try Self.parent(notes)
        let rules = ParentRules.all(parent.parent(.http, authentication, as: .alice))
        try await withUpstream({ $0.parents = rules }) { upstream in
            if authentication == .any {
                #expect(await upstream.answer(to: .example(.get, "/asked")).text == "in")
            }
            let record = await Self.put("/free", through: upstream)
            #expect(record.head == nil)
            #expect(record.failure?.kind == .proxyConfigurationError)
            #expect(record.failure?.detail.contains("without its content") == true)
            #expect(notes.all.last?.hasPrefix("PUT 0") == true)
            guard authentication == .any else { return }
            #expect(await Self.put("/free", through: upstream).text == "in")
        }
    }
}
