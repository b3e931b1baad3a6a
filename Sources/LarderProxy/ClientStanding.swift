import LarderCredentials
import LarderHTTP
import LarderSession

/// What a connection has found out about its client, and need not find out again with each request.
///
/// Confined to the connection's loop. A reference, as it is asked several times a request: of a value
/// that large each question made a copy.
final class ClientStanding {
    private struct Verified {
        /// The credentials, byte for byte.
        let value: Secret
        let generation: UInt64
        let user: String
    }

    private struct Chosen {
        let name: String?
        let generation: UInt64
        let session: any ExchangeSession
        let sessionName: String
    }

    /// As of the request at work.
    private(set) var identity: ClientIdentity
    /// The client may say in fields of Larder's how its requests are treated.
    private(set) var isTrusted: Bool
    private var verified: Verified?
    private var chosen: Chosen?
    private var permits: (@Sendable (Method, TargetURI) -> Bool)?
    private var destinations: ClientDestinations?

    /// What access rules can tell it from others by, but for its user.
    let place: ClientPlace

    init(_ address: ClientAddress, listener: ListenerOptions) {
        self.place = ClientPlace(address)
        self.identity = ClientIdentity(address: address)
        self.isTrusted = listener.trusts(self.identity)
    }

    // MARK: Who it is

    /// Whose credentials these are, if they are those that were verified last.
    ///
    /// The time it takes depends on the lengths alone.
    func user(of value: FieldValue, generation: UInt64) -> String? {
        guard let verified = self.verified, verified.generation == generation else { return nil }
        let known = verified.value.revealed
        guard known.count == value.count,
            zip(known, value).reduce(UInt8(0), { $0 | ($1.0 ^ $1.1) }) == 0
        else { return nil }
        return verified.user
    }

    /// Notes that credentials were verified.
    ///
    /// - Parameter generation: the authenticator's, as of before it was asked.
    func verified(_ value: Secret, generation: UInt64, user: String) {
        self.verified = Verified(value: value, generation: generation, user: user)
    }

    /// The next request is this user's, or nobody's.
    func become(_ user: String?, listener: ListenerOptions) {
        guard user != self.identity.user else { return }
        self.identity.user = user
        self.isTrusted = listener.trusts(self.identity)
        self.chosen = nil
        self.permits = nil
        self.destinations = nil
    }

    // MARK: What follows from that

    /// The session for requests that ask for none by name, where it has been chosen before and the
    /// choice still holds.
    func usualSession(in directory: any SessionDirectory) -> (any ExchangeSession)? {
        guard let chosen = self.chosen, chosen.name == nil,
            chosen.generation == directory.generation
        else { return nil }
        return chosen.session
    }

    /// The name of the session that was chosen last; empty where none was.
    var sessionName: String { self.chosen?.sessionName ?? "" }

    /// The session for a request.
    ///
    /// - Parameter name: what `Larder-Session` asks for.
    func session(named name: String?, in directory: any SessionDirectory) -> SessionChoice {
        // Before the choice: a change while it is made makes it old.
        let generation = directory.generation
        if let chosen = self.chosen, chosen.generation == generation, chosen.name == name {
            return .session(chosen.session, name: chosen.sessionName)
        }
        let choice = directory.session(for: self.identity, named: name)
        if case .session(let session, let sessionName) = choice {
            self.chosen = Chosen(
                name: name, generation: generation, session: session, sessionName: sessionName)
        } else {
            self.chosen = nil
        }
        return choice
    }

    /// Where a redirection may lead this client: made once, and only for whoever asks.
    func permits(
        own: OwnAuthorities, access: any AccessPolicy
    ) -> @Sendable (Method, TargetURI) -> Bool {
        if let permits = self.permits { return permits }
        let permits = Self.permits(self.identity, own: own, access: access)
        self.permits = permits
        return permits
    }

    /// Which targets a client may have.
    static func permits(
        _ identity: ClientIdentity, own: OwnAuthorities, access: any AccessPolicy
    ) -> @Sendable (Method, TargetURI) -> Bool {
        { method, uri in
            guard !own.contains(host: uri.host, port: uri.port) else { return false }
            let query = AccessQuery(
                client: identity.address, user: identity.user, method: method, host: uri.host,
                port: uri.port)
            return access.judge(query) == .allowed
        }
    }

    /// Which addresses this client's requests may be led to: made once, and only where rules speak of
    /// addresses.
    func destinations(access: any AccessPolicy) -> ClientDestinations {
        if let destinations = self.destinations { return destinations }
        let destinations = ClientDestinations(self.identity, access)
        self.destinations = destinations
        return destinations
    }
}

/// The access rules, asked about the addresses that the names in a client's requests lead to.
///
/// What has been stored is served by the name alone; what is fetched for one client and shared with
/// others is judged for the one.
final class ClientDestinations: DestinationPolicy {
    private let identity: ClientIdentity
    private let access: any AccessPolicy

    init(_ identity: ClientIdentity, _ access: any AccessPolicy) {
        self.identity = identity
        self.access = access
    }

    func objection(_ method: Method, _ uri: TargetURI, at address: String) -> String? {
        guard let address = IPAddress(address) else { return Self.detail }
        let query = AccessQuery(
            client: self.identity.address, user: self.identity.user, method: method, host: uri.host,
            port: uri.port, address: address)
        guard case .denied(let rule) = self.access.judge(query) else { return nil }
        return rule == AccessVerdict.ownAddresses ? RequestRouter.ownAddresses : Self.detail
    }

    private static let detail = "the access rules do not allow the address that the host leads to"
}

/// Where a client asks from, as far as access rules may tell.
///
/// Nothing but numbers, so that it is compared and kept with each request for next to nothing.
struct ClientPlace: Equatable {
    private let address: IPAddress?
    private let peer: PeerCredentials?

    init(_ client: ClientAddress) {
        switch client {
        case .ip(let address, _, _): (self.address, self.peer) = (address, nil)
        case .unix(let peer): (self.address, self.peer) = (nil, peer)
        }
    }
}
