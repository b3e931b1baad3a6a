import Foundation
import LarderCredentials
import LarderHTTP
import LarderSession
import LarderTransfer

/// What a proxy on the way says to a load.
extension HTTPLoad {
    /// The proxy on the way; nil: none.
    var proxy: ProxyParty? {
        guard let url = self.order.request.url, let uri = try? TargetURI(loading: url),
            let parent = self.engine.rules.parents.parent(
                host: uri.host, port: uri.port, scheme: uri.scheme), parent.kind != .socks5
        else { return nil }
        return ProxyParty(
            host: parent.host, port: parent.port, kind: uri.scheme == .https ? .https : .http)
    }

    /// What a proxy says that wants a login for a tunnel, as the response that it is (RFC 9110
    /// §15.5.8), so that it is answered like any other.
    func tunnelRefusal(_ failure: ExchangeFailure) -> Answer? {
        guard let upstream = failure.upstream, upstream.cause == .proxyAuthenticationRequired,
            !upstream.proxyChallenges.isEmpty
        else { return nil }
        var head = ResponseHead(status: StatusCode(407), reason: "Proxy Authentication Required")
        for value in upstream.proxyChallenges { head.fields.append("Proxy-Authenticate", value) }
        return Answer(
            head: head, bodyLength: .known(0), body: .none, cacheStatus: failure.cacheStatus)
    }
}
