import Foundation
import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("Authentication of a connection (NTLM, RFC 4559)", .timeLimit(.minutes(10)))
struct ConnectionAuthenticationTests {
    /// A challenge message of NTLM: no target, a fixed server challenge.
    private static let challenge: String = {
        var message = Array("NTLMSSP\0".utf8) + [2, 0, 0, 0]
        message += [0, 0, 0, 0, 48, 0, 0, 0]  // No target name.
        message += [0x02, 0x02, 0, 0]  // OEM text, NTLM.
        message += [1, 2, 3, 4, 5, 6, 7, 8]
        message += [UInt8](repeating: 0, count: 16)
        return Data(message).base64EncodedString()
    }()

    /// What a request says: nothing, the first or the third message of the handshake.
    private static func stage(_ head: String, _ name: String = "Authorization") -> Int {
        let parts = (field(name, in: head) ?? "").split(separator: " ")
        guard parts.count == 2, ["ntlm", "negotiate"].contains(parts[0].lowercased()),
            let message = Data(base64Encoded: String(parts[1])), message.count > 8
        else { return 0 }
        return Int(message[8])
    }

    /// Lets a connection in as one user; `refuses` whatever the third message says.
    private static func serve(
        _ connection: OriginConnection, _ notes: Notes, refuses: Bool = false
    ) {
        var isLoggedIn = false
        while let head = connection.readHead() {
            let length = Int(field("Content-Length", in: head) ?? "") ?? 0
            let content = connection.read(length) ?? ""
            let stage = Self.stage(head)
            notes.add("\(connection.index) \(isLoggedIn ? "in" : "\(stage)") \(content)")
            switch stage {
            case 1:
                connection.respond(
                    "401 No", "WWW-Authenticate: NTLM \(Self.challenge)\r\n", "asked")
            case 3 where !refuses:
                isLoggedIn = true
                connection.respond("200 OK", "", "in")
            case 3:
                connection.respond("401 No", "WWW-Authenticate: NTLM\r\n", "refused")
            default:
                connection.respond("200 OK", "", isLoggedIn ? "in" : "out")
            }
        }
    }

    private func request(
        _ origin: ScriptedOrigin, _ user: String?, _ method: LarderHTTP.Method = .get,
        length: BodyLength = .none
    ) -> Request {
        var request = origin.request(method, "/x", length: length)
        request.connectionAuthentication = user.map { user in
            ConnectionAuthentication(scheme: .ntlm, user: user) { Array("sesame".utf8) }
        }
        return request
    }

    @Test("is a handshake of which the receiver sees the end alone")
    func handshake() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { Self.serve($0, notes) }
        let record = try await withUpstream {
            await $0.answer(to: self.request(origin, "D\\alice"))
        }
        #expect(record.failure == nil)
        #expect(record.violations == [])
        #expect(record.head?.status == .ok)
        #expect(record.text == "in")
        #expect(notes.all == ["0 1 ", "0 3 "])
    }

    @Test("sends the content when the login stands, not before", arguments: [true, false])
    func content(_ isKnown: Bool) async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            if isKnown { return Self.serve(connection, notes) }
            guard let first = connection.readHead() else { return }
            notes.add("\(Self.stage(first)) \(field("Transfer-Encoding", in: first) ?? "none")")
            connection.respond("401 No", "WWW-Authenticate: NTLM \(Self.challenge)\r\n")
            guard let second = connection.readHead() else { return }
            notes.add("\(Self.stage(second)) \(connection.readChunked() ?? "")")
            connection.respond("200 OK", "", "in")
        }
        let record = try await withUpstream {
            await $0.answer(
                to: self.request(origin, "alice", .post, length: isKnown ? .known(5) : .unknown),
                body: ScriptedContent(text: "hello"))
        }
        #expect(record.text == "in")
        #expect(record.violations == [])
        #expect(
            notes.all
                == (isKnown ? ["0 1 ", "0 3 hello"] : ["1 none", "3 5|hello|0|"]))
    }

    @Test("that fails ends with the origin's 401, once")
    func refused() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { Self.serve($0, notes, refuses: true) }
        let record = try await withUpstream { await $0.answer(to: self.request(origin, "alice")) }
        #expect(record.head?.status.rawValue == 401)
        #expect(record.text == "refused")
        #expect(record.violations == [])
        #expect(record.trailers == Fields())
    }

    @Test("keeps a connection for its credential: no other, and nobody without one, gets it")
    func affinity() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { Self.serve($0, notes) }
        try await withUpstream { upstream in
            #expect(await upstream.answer(to: self.request(origin, "alice")).text == "in")
            #expect(await upstream.answer(to: self.request(origin, nil)).text == "out")
            #expect(await upstream.answer(to: self.request(origin, "bob")).text == "in")
            #expect(await upstream.answer(to: self.request(origin, "alice")).text == "in")
            #expect(await upstream.answer(to: self.request(origin, nil)).text == "out")
        }
        // Connection 0 is alice's. Bob may log in on the one that nobody had logged in on.
        let alices = notes.all.filter { $0.hasPrefix("0 ") }
        #expect(alices == ["0 1 ", "0 3 ", "0 in "])
        #expect(!notes.all.contains { $0.hasSuffix("in ") && !$0.hasPrefix("0 ") })
    }

    @Test(
        "that a client goes through by itself leaves nobody else logged in (RFC 4559 §6)",
        arguments: ["NTLM", "ntlm", "Negotiate", "nEgotiate"])
    func passedOn(_ scheme: String) async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { Self.serve($0, notes) }
        try await withUpstream { upstream in
            #expect(await upstream.answer(to: self.request(origin, nil)).text == "out")
            for type in [1, 3] as [UInt8] {
                let message = Data(Array("NTLMSSP\0".utf8) + [type, 0, 0, 0])
                var request = self.request(origin, nil)
                request.fields.append(
                    "Authorization", "\(scheme) \(message.base64EncodedString())")
                #expect(await upstream.answer(to: request).text == (type == 1 ? "asked" : "in"))
            }
            #expect(await upstream.answer(to: self.request(origin, nil)).text == "out")
        }
        // A connection for each message, and the one of those who do not log in.
        #expect(notes.all == ["0 0 ", "1 1 ", "2 3 ", "0 0 "])
    }

    @Test("by Negotiate without a ticket passes the origin's 401 on; the connection is used once")
    func negotiate() async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.respond("401 No", "WWW-Authenticate: Negotiate\r\n", "no ticket")
            }
        }
        try await withUpstream { upstream in
            for _ in 0..<2 {
                var request = self.request(origin, nil)
                request.connectionAuthentication = ConnectionAuthentication(
                    scheme: .negotiate, user: ""
                ) { [] }
                let record = await upstream.answer(to: request)
                #expect(record.head?.status.rawValue == 401)
                #expect(record.violations == [])
            }
        }
        #expect(origin.connectionCount == 2)
    }

    @Test("with a parent is one of all requests through it, tunnels included")
    func parent() async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let content = connection.read(Int(field("Content-Length", in: head) ?? "") ?? 0)
                let stage = Self.stage(head, "Proxy-Authorization")
                let method = head.prefix { $0 != " " }
                notes.add("\(connection.index) \(method) \(stage) \(content ?? "")")
                if stage == 1 {
                    let fields = "Proxy-Authenticate: NTLM \(Self.challenge)\r\n"
                    connection.respond("407 No", fields, "asked")
                } else if method == "CONNECT" {
                    connection.write("HTTP/1.1 200 OK\r\n\r\n")
                    _ = connection.waitForEnd()
                } else {
                    connection.respond("200 OK", "", "in")
                }
            }
        }
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .ntlm, as: .alice)) }) {
            upstream in
            let put = await upstream.answer(
                to: .example(.put, length: .known(5)), body: ScriptedContent(text: "hello"))
            let get = await upstream.answer(to: .example(host: "other.example"))
            for record in [put, get] {
                #expect(record.text == "in")
                #expect(record.violations == [])
            }
            _ = try #require(await upstream.dialled()).get()
        }
        #expect(
            notes.all == [
                "0 PUT 1 ", "0 PUT 3 hello", "0 GET 0 ", "1 CONNECT 1 ", "1 CONNECT 3 ",
            ])
    }
}
