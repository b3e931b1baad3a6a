package import LarderHTTP
package import LarderSession

/// Which session answers a client.
package enum SessionChoice: Sendable {
    /// - Parameter name: the session's, for the log.
    case session(any ExchangeSession, name: String)
    case refused(OwnAnswer)
}

/// Finds the session for each request that comes through one listener.
///
/// Called on event loops, for many connections at once; must not block.
package protocol SessionDirectory: AnyObject, Sendable {
    /// Changes whenever a choice made before may no longer hold.
    ///
    /// Read once a request: a connection keeps its last choice while this, the user and the name
    /// stay the same.
    var generation: UInt64 { get }

    /// - Parameter name: the session that a trusted client asks for in `Larder-Session`, as it was
    ///   received; nil where it asks for none.
    func session(for client: ClientIdentity, named name: String?) -> SessionChoice
}

/// One session for everybody.
package final class OneSessionDirectory: SessionDirectory {
    private let session: any ExchangeSession
    private let name: String

    /// - Parameter name: the only one that clients may ask for.
    package init(_ session: any ExchangeSession, name: String = "default") {
        self.session = session
        self.name = name
    }

    package var generation: UInt64 { 0 }

    package func session(for client: ClientIdentity, named name: String?) -> SessionChoice {
        guard let name, name != self.name else { return .session(self.session, name: self.name) }
        return .refused(.unknownSession(nearest: nil))
    }
}

extension OwnAnswer {
    /// 400, for a name that no session has.
    ///
    /// - Parameter nearest: the name that was meant, where one is near and the client may use it.
    package static func unknownSession(nearest: String?) -> OwnAnswer {
        let remedy = nearest.map { "; did you mean \($0)?" } ?? ""
        return OwnAnswer(
            400, error: .httpRequestError,
            detail: "Larder-Session names a session that is not there\(remedy)")
    }

    /// 403, for a session that is there, but not for this client.
    package static let sessionNotAllowed = OwnAnswer(
        403, error: .httpRequestDenied,
        detail: "Larder-Session names a session that this client may not use")
}

/// The request field by which a client that is trusted names the session it wants.
package enum SessionField {
    package enum Reading: Equatable {
        case absent
        case named(String)
        /// - Parameter detail: for people; says nothing of what was received.
        case refused(detail: String)
    }

    /// Far longer than any session's name.
    private static let longestName = 128

    package static func read(_ fields: Fields) -> Reading {
        let name = FieldName(.larderSession)
        guard fields.contains(name) else { return .absent }
        let members = fields.members(name)
        guard members.count == 1, let member = members.first, !member.isEmpty,
            member.count <= Self.longestName, member.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return .refused(detail: "Larder-Session must hold one name") }
        return .named(String(decoding: member, as: UTF8.self))
    }
}
