package import LarderProxy
package import Logging

/// What happens with clients' credentials that whoever runs the proxy should know.
package enum AuthenticationNotice: Sendable, Equatable {
    /// The first failure of an address for some time; those that follow soon are not told.
    ///
    /// - Parameter user: as the client named itself; empty where it has not.
    case refused(client: ClientAddress, user: String)
    /// There were so many failures that nothing new of this user at this address is looked at for a
    /// while, or of anybody there.
    case throttled(client: ClientAddress, user: String)
    /// A file with credentials that everybody on this machine may read.
    case readableByOthers(path: String)

    /// Bytes of a user's name that are shown.
    private static let longestName = 64

    /// Writes it to the log; names are escaped, as strangers choose them.
    package func record(to log: Logger) {
        switch self {
        case .refused(let client, let user):
            log.warning(
                "a client's credentials were refused",
                metadata: ["client": "\(client.text)", "user": "\(Self.shown(user))"])
        case .throttled(let client, let user):
            log.warning(
                "a client failed too often and is not listened to for a time",
                metadata: ["client": "\(client.text)", "user": "\(Self.shown(user))"])
        case .readableByOthers(let path):
            log.warning(
                "a file with credentials can be read by everybody; chmod 600 it",
                metadata: ["path": "\(path)"])
        }
    }

    /// A user's name in printable ASCII, and only its beginning.
    static func shown(_ user: String) -> String {
        var name: [UInt8] = []
        LogEscape.word(String(decoding: user.utf8.prefix(Self.longestName), as: UTF8.self), &name)
        return String(decoding: name, as: UTF8.self)
    }
}
