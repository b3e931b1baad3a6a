import Foundation
import LarderHTTP

@testable import LarderTransfer

extension ScriptedOrigin {
    /// This, as a parent.
    func parent(
        _ kind: Parent.Kind = .http, _ authentication: Parent.Authentication = .none,
        as login: ParentLogin? = nil, named name: String = "name"
    ) -> Parent {
        Parent(
            kind: kind, host: "127.0.0.1", port: self.port, authentication: authentication,
            credential: login.map { login in ParentCredential(name: name) { login } })
    }
}

extension ParentLogin {
    static let alice = ParentLogin(user: "alice", password: Array("open sesame".utf8))
    static let bob = ParentLogin(user: "bob", password: Array("swordfish".utf8))
}

extension ParentRules {
    /// One parent for everything.
    static func all(_ parent: Parent) -> ParentRules {
        ParentRules([Rule(via: .parent(parent)) { _, _ in true }])
    }
}

extension Request {
    /// To an origin that no resolver here knows.
    static func example(
        _ method: LarderHTTP.Method = .get, _ target: String = "/a//b?c=%20",
        fields: Fields = Fields(), length: BodyLength = .none, host: String = "origin.example"
    ) -> Request {
        Request(
            method: method,
            uri: TargetURI(scheme: .http, host: host, port: 8080, pathAndQuery: target),
            fields: fields, bodyLength: length)
    }
}

extension CurlUpstream {
    /// Dials and waits for what comes of it.
    func dialled(
        _ host: String = "origin.example", _ port: UInt16 = 2222
    ) async -> Result<DialledSocket, UpstreamFailure>? {
        await withCheckedContinuation { continuation in
            let via: Fields = ["Via": "1.1 before", "via": "1.1 us"]
            let dial = self.dial(host: host, port: port, via: via) {
                continuation.resume(returning: $0)
            }
            if dial == nil { continuation.resume(returning: nil) }
        }
    }
}

extension OriginConnection {
    /// Writes a whole response with this content.
    func respond(_ status: String, _ fields: String = "", _ text: String = "") {
        self.write(
            "HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(text.utf8.count)\r\n\r\n\(text)")
    }

    /// Bytes, as SOCKS sends them.
    func readBytes(_ count: Int) -> [UInt8]? {
        self.readRaw(count)
    }
}

/// The value of a field in a head as it was sent.
func field(_ name: String, in head: String) -> String? {
    for line in head.components(separatedBy: "\r\n") {
        let parts = line.split(separator: ":", maxSplits: 1)
        if parts.count == 2, parts[0].lowercased() == name.lowercased() {
            return parts[1].trimmingCharacters(in: .whitespaces)
        }
    }
    return nil
}
