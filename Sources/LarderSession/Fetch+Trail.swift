import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// Where redirections led that were followed on the way to the origin's answer.
extension Fetch {
    /// nil: nobody follows any.
    private var ledTo: [TargetURI]? { self.state.withLock { $0.connection.ledTo } }

    /// Whether a response says anything of a stored one.
    func isOfSameResource(_ stored: StoredHead, _ response: ResponseHead) -> Bool {
        RedirectionTrail.isOfSameResource(stored, response, ledTo: self.ledTo)
    }

    /// Keeps with a head where the redirections led that brought it, or have brought it again.
    func noteTrail(in head: inout StoredHead) {
        guard let ledTo = self.ledTo else { return }
        head.attachment = RedirectionTrail(ledTo)?.attachment
    }
}

extension Session {
    /// Whether a stored response may answer a client, by where redirections led that were followed for
    /// it: as if they were followed now.
    func mayShow(_ head: StoredHead, for request: Request) -> Bool {
        guard self.role == .intermediary, let trail = RedirectionTrail(of: head) else {
            return true
        }
        guard let conduct = self.conduct, conduct.followsRedirects,
            let permits = request.sealed?.permits
        else { return false }
        return trail.isPermitted { permits(request.method, $0) }
    }
}
