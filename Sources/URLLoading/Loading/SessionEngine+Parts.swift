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
}

extension URLAuthenticationChallenge {
    /// The challenge that puts a question of a handshake to a program.
    static func about(
        _ question: LoadTrust.Question, _ url: URL?
    ) -> URLAuthenticationChallenge? {
        URLAuthenticationChallenge()
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
