@testable import LarderCredentials
import LarderHTTP

/// Challenges, credentials and what follows them (RFC 9110 §11, RFC 7616, RFC 7617).
enum CredentialPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        var fields = Fields()
        for line in input.textLines {
            fields.append("WWW-Authenticate", line)
            try self.checkLine(line)
            try self.checkBasic(line)
            var information = Fields()
            information.append("Authentication-Info", line)
            if let read = AuthenticationInformation(information) {
                try hold(read.nextNonce?.isEmpty != true, "an empty nonce to use next")
            }
        }
        let challenges = Challenges(fields)
        try hold(challenges.list.count <= Challenges.countLimit, "\(challenges.list.count)")
        for challenge in challenges.list { try self.check(challenge) }
    }

    private static func checkLine(_ line: FieldValue) throws(Violation) {
        guard let challenges = try? Challenges.parse(line) else { return }
        let text = challenges.map(self.text).joined(separator: Array(", ".utf8))
        let again = try? Challenges.parse(Array(text)[...])
        try hold(again == challenges, "written and read again: \(Array(text).text)")
    }

    private static func text(_ challenge: Challenge) -> [UInt8] {
        var parts: [[UInt8]] = challenge.parameters.map { parameter in
            var quoted = Array("\(parameter.name)=\"".utf8)
            for byte in parameter.value {
                if byte == ASCII.quote || byte == ASCII.backslash {
                    quoted.append(ASCII.backslash)
                }
                quoted.append(byte)
            }
            return quoted + [ASCII.quote]
        }
        if let token = challenge.token68 { parts.insert(token, at: 0) }
        return Array("\(challenge.scheme) ".utf8)
            + Array(parts.joined(separator: Array(", ".utf8)))
    }

    private static func check(_ challenge: Challenge) throws(Violation) {
        let names = challenge.parameters.map(\.name)
        try hold(Set(names).count == names.count, "a parameter twice: \(names)")
        _ = challenge.realm
        guard let uri = TargetURI(text: "http://a.example/b/c"),
            let digest = try? DigestChallenge(challenge)
        else { return }
        try hold(!digest.nonce.isEmpty, "an empty nonce")
        _ = digest.covers(uri, from: uri)
        let credential = Credential(
            user: "ü:ser", password: Secret("\"secret\""), persistence: .forSession)
        var session = DigestSession(digest, credential: credential, cnonce: Array("abc".utf8))
        let target = DigestSession.Target(method: .get, uri: "/b/c")
        guard let value = try? session.fieldValue(for: target, hasher: Folding()) else { return }
        try hold(session.nonceCount == 1, "counted \(session.nonceCount)")
        // What is sent can be read with the grammar of what came.
        let read = try? Challenges.parse(value[...])
        try hold(
            read?.count == 1 && read?.first?["nonce"] == digest.nonce
                && read?.first?["realm"] == digest.realm && read?.first?["opaque"] == digest.opaque,
            "sent: \(value.text)")
        _ = session.renewed(by: digest, cnonce: [])
    }

    private static func checkBasic(_ line: FieldValue) throws(Violation) {
        if let octets = Base64.decode(line) {
            try hold(Base64.encode(octets)[...] == line, "base64 with two spellings: \(octets)")
        }
        try hold(Base64.decode(Base64.encode(Array(line))) == Array(line), "base64 loses bytes")
        guard let (user, password) = try? Basic.read(line) else { return }
        try hold(
            !user.contains(ASCII.colon) && !(user + password.revealed).hasControl,
            "the user \(user)")
    }

    /// A stand-in for a hash: the promises are about syntax.
    private struct Folding: DigestHasher {
        func hash(_ octets: [UInt8], by hash: DigestHash) -> [UInt8]? {
            var out = [UInt8](repeating: 0, count: 16)
            for (i, byte) in octets.enumerated() { out[i % 16] = out[i % 16] &* 31 &+ byte }
            return out
        }
    }
}
