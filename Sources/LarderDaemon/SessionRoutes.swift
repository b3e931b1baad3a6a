import LarderConfig
import LarderEngine
import LarderHTTP
import LarderProxy
import LarderSession
import Synchronization

/// Which session answers which client: the routes of the configuration, replaceable while the proxy
/// runs.
///
/// A connection keeps its session until the routes change.
final class SessionRoutes: Sendable {
    /// A session that may be led to.
    struct Place: Sendable {
        let name: SessionName
        let principals: PrincipalsWord
        /// Gives the part of a principal; nil once the session is closed.
        let part: @Sendable (String) -> (any ExchangeSession)?
    }

    private let places: [SessionName: Place]
    private let routes: Mutex<[RouteSettings]>
    private let counter = Atomic<UInt64>(0)

    init(_ places: [Place], routes: [RouteSettings]) {
        self.places = Dictionary(places.map { ($0.name, $0) }) { first, _ in first }
        self.routes = Mutex(routes)
    }

    var generation: UInt64 { self.counter.load(ordering: .acquiring) }

    /// The sessions that routes lead to and that are not open.
    func missing(_ routes: [RouteSettings]) -> [SessionName] {
        routes.map(\.session).filter { self.places[$0] == nil }
    }

    /// Puts other routes into force, for requests that come from now on.
    ///
    /// Whom they lead to a session that is `missing`, is answered with 503.
    func replace(by routes: [RouteSettings]) {
        self.routes.withLock { $0 = routes }
        self.counter.add(1, ordering: .releasing)
    }

    /// How one listener's clients find their sessions.
    func directory(of listener: ListenerSettings) -> any SessionDirectory {
        ListenerDirectory(self, listener)
    }

    fileprivate func choose(
        for client: ClientIdentity, named name: String?, at listener: ListenerSettings
    ) -> SessionChoice {
        let facts = client.facts
        let routes = self.routes.withLock { $0 }
        let fitting = routes.lazy.filter { $0.fits(facts, at: listener.address) }.map(\.session)
        var session = fitting.first ?? listener.session
        if let name {
            // Those that it may ask for; that there are others it learns only by their names.
            let own = Set([listener.session] + listener.namedSessions + Array(fitting))
            guard let named = self.places.keys.first(where: { $0.text == name }) else {
                let names = own.map(\.text).sorted()
                return .refused(.unknownSession(nearest: NearestName.of(name, among: names)))
            }
            guard own.contains(named) else { return .refused(.sessionNotAllowed) }
            session = named
        }
        guard let place = self.places[session] else { return .refused(.closed) }
        guard let principal = place.principals.principal(facts) else {
            return .refused(.withoutPrincipal(place.principals))
        }
        guard let part = place.part(principal) else { return .refused(.closed) }
        return .session(part, name: session.text)
    }
}

/// The routes as they look from one listener.
private final class ListenerDirectory: SessionDirectory {
    private let routes: SessionRoutes
    private let listener: ListenerSettings

    init(_ routes: SessionRoutes, _ listener: ListenerSettings) {
        self.routes = routes
        self.listener = listener
    }

    var generation: UInt64 { self.routes.generation }

    func session(for client: ClientIdentity, named name: String?) -> SessionChoice {
        self.routes.choose(for: client, named: name, at: self.listener)
    }
}

extension PrincipalsWord {
    /// Whose part of the session a client has: `user:alice`, `uid:1000`, `address:192.0.2.1`; ""
    /// where the session is not split, nil for a client that cannot be told.
    func principal(_ client: ClientFacts) -> String? {
        switch self {
        case .none: ""
        case .user: client.user.map { "user:\($0)" }
        case .uid: client.uid.map { "uid:\($0)" }
        case .address: client.address.map { "address:\($0)" }
        }
    }

    /// Whether a client may have the part of a principal.
    func mayHave(_ principal: String) -> Bool {
        self == .none ? principal.isEmpty : principal.hasPrefix("\(self.rawValue):")
    }
}

extension OwnAnswer {
    /// 403, for a client that has not what its session tells clients apart by.
    fileprivate static func withoutPrincipal(_ word: PrincipalsWord) -> OwnAnswer {
        let lack =
            switch word {
            case .none: "nothing"
            case .user: "a user name, and this one has proved none to the listener"
            case .uid: "a user of this machine, and this one comes through no Unix socket"
            case .address: "an address, and this one comes through a Unix socket"
            }
        return OwnAnswer(
            403, error: .httpRequestDenied,
            detail: "the session tells its clients apart by \(lack)")
    }

    /// 503, for a request that comes while the proxy ends.
    fileprivate static let closed = OwnAnswer(
        503, error: .proxyInternalResponse, detail: "the session is closed")
}
