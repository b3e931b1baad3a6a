import Foundation
import LarderHTTP
import LarderSession
import LarderStore
import LarderTransfer

// What the engine takes from the parts of a configuration.

extension URLSessionConfiguration {
    /// Where responses are stored; nil: nowhere.
    var engineStore: (any ObjectStore)? {
        self.urlCache == nil
            ? nil : MemoryStore(MemoryConfiguration(capacity: .mebibytes(4)))
    }

    /// How requests meet cookies; nil: they do not.
    var engineCookies: (any HopCookies)? { nil }

    /// Which proxies lead where.
    var engineParents: ParentRules { ParentRules() }
}

extension HTTPURLResponse {
    /// A response as HTTP gave it.
    static func of(_ head: ResponseHead, at url: URL) -> URLResponse {
        var fields: [String: String] = [:]
        for pair in head.fields.pairs {
            fields[pair.name] = fields[pair.name].map { "\($0), \(pair.value)" } ?? pair.value
        }
        return HTTPURLResponse(
            url: url, statusCode: Int(head.status.rawValue), httpVersion: "HTTP/1.1",
            headerFields: fields)
            ?? URLResponse(
                url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
    }
}

extension URLAuthenticationChallenge {
    /// The challenge that puts a question of a handshake to a program.
    static func about(
        _ question: LoadTrust.Question, _ url: URL?
    ) -> URLAuthenticationChallenge? {
        nil
    }
}

extension URLCredential {
    /// The client certificate that it stands for.
    var engineIdentity: TLSIdentity? { nil }
}

extension CountingUpstream {
    /// Whether upstreams measure what they do.
    static var measures: Bool { false }
}
