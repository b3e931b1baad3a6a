import LarderCookies
import LarderCredentials
import Synchronization

/// What would be lost if a part of a session were let go now, from the least on.
package enum Residue: Comparable, Sendable {
    /// Nothing: all of it is in a storage, or there is none of it.
    case nothing
    /// What is in memory alone: cookies and credentials of the session, all of an ephemeral one, and
    /// what a storage that has failed did not take.
    case memory
    /// Something is under way that ends by itself: an exchange, or changes on their way to a storage.
    /// Who came back meanwhile would find the state of before.
    case underWay
}

extension SessionCookies {
    /// What would be lost of the cookies.
    package var residue: Residue {
        self.look { jar, backlog, isWriting, isKept in
            if isWriting { return .underWay }
            if jar.count == 0, backlog.isEmpty { return .nothing }
            let keepsAll = isKept && backlog.isEmpty && !jar.holdsSessionCookies
            return keepsAll ? .nothing : .memory
        }
    }
}

extension SessionCredentials {
    /// What would be lost of the credentials.
    ///
    /// Where they were accepted is not counted: the next challenge tells again.
    package var residue: Residue {
        self.state.withLock { state in
            if state.isSaving { return .underWay }
            if !state.pending.isEmpty { return .memory }
            let isKept = self.storage != nil && !state.hasReported
            let holds = !state.store.isEmpty
            return !holds || (isKept && state.store.isPermanent) ? .nothing : .memory
        }
    }
}

extension Session {
    /// Whether an exchange or a fetch is under way.
    package var isBusy: Bool {
        self.live.openExchanges.current > 0 || self.live.openFetches.current > 0
    }
}
