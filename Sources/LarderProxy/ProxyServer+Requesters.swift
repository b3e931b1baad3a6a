package import LarderHTTP
package import LarderSession
import Synchronization

extension ProxyServer {
    /// What somebody may have who is not connected any more; nil: not this target.
    ///
    /// By the access rules of this moment, as for a client who asks for it now.
    package func leave(
        for requester: Requester, to uri: TargetURI
    ) -> RequesterLeave? {
        let own = OwnAuthorities(
            listeners: self.state.withLock { $0.endpoints }, local: nil,
            names: self.configuration.hostNames)
        guard let address = ClientAddress(requester) else { return nil }
        let client = ClientIdentity(address: address, user: requester.user)
        let access = self.access
        let permits = ClientStanding.permits(client, own: own, access: access)
        guard permits(.get, uri) else { return nil }
        return RequesterLeave(
            permits: permits,
            destinations: access.judgesAddresses ? ClientDestinations(client, access) : nil)
    }
}

extension Requester {
    init(_ client: ClientIdentity) {
        self.init(address: client.address.text, uid: client.address.uid, user: client.user)
    }
}

extension ClientAddress {
    /// Where somebody asked from; nil where that was never an address.
    fileprivate init?(_ requester: Requester) {
        if let address = IPAddress(requester.address) {
            self = .ip(address, text: requester.address, port: 0)
        } else if requester.address.hasPrefix("unix:") {
            self = .unix(requester.uid.map { PeerCredentials(uid: $0, pid: 0) })
        } else {
            return nil
        }
    }
}
