/// Says which addresses a request may be sent to: a name may lead to one that nobody would have named.
package protocol DestinationPolicy: AnyObject, Sendable {
    /// Why a connection to this address may not be made for a request, or used again: a line for
    /// people; nil where it may.
    ///
    /// It is asked on the thread of a transfer loop, and must not block. Of a request on its way through
    /// a parent proxy it is not asked: what the parent connects to it alone knows.
    ///
    /// - Parameters:
    ///   - uri: what is asked for, after all redirections.
    ///   - address: as inet_ntop(3) writes it.
    func objection(_ method: Method, _ uri: TargetURI, at address: String) -> String?
}
