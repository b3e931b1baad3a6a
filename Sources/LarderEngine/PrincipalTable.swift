import LarderHTTP
import LarderSession
import Synchronization

/// The principals of a session that are in memory: made when they come, and let go when others need
/// the room.
///
/// Who is let go loses what is in memory alone: cookies and credentials of the session, and in an
/// ephemeral one all of them. So those go first who have none of it, and nobody goes with whom
/// something is under way. To refuse newcomers instead would let the first thousand lock all others
/// out.
///
/// Any thread may use it.
final class PrincipalTable: Sendable {
    /// How many are held beside those that are held by somebody else, or are busy.
    static let limit = 1024

    private struct Entry {
        var session: PrincipalSession
        var lastUse: UInt64
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var uses: UInt64 = 0
        /// What those did that were let go.
        var retired = SessionCounters()
        var isClosed = false

        mutating func touch(_ principal: String) -> PrincipalSession? {
            guard !self.isClosed, let session = self.entries[principal]?.session else { return nil }
            self.uses &+= 1
            self.entries[principal]?.lastUse = self.uses
            return session
        }

        mutating func insert(_ session: PrincipalSession) {
            self.uses &+= 1
            self.entries[session.principal] = Entry(session: session, lastUse: self.uses)
        }

        /// Lets go of as many as are too many, unless somebody has used them since or holds them.
        mutating func makeRoom(_ limit: Int, from spares: [Spare]) {
            for spare in spares where self.entries.count >= limit {
                guard self.entries[spare.principal]?.lastUse == spare.lastUse,
                    var entry = self.entries.removeValue(forKey: spare.principal)
                else { continue }
                if isKnownUniquelyReferenced(&entry.session) {
                    self.retired = self.retired + entry.session.session.counters()
                } else {
                    self.entries[spare.principal] = entry
                }
            }
        }
    }

    /// A part that may be let go, as it was when that was found out.
    private struct Spare {
        let principal: String
        let lastUse: UInt64
    }

    private let state = Mutex(State())
    private let limit: Int
    /// Makes one that has not read anything yet.
    private let make: @Sendable (String) -> PrincipalSession
    /// Has it read what was kept.
    private let open: @Sendable (PrincipalSession) -> Void

    init(
        limit: Int = PrincipalTable.limit, make: @escaping @Sendable (String) -> PrincipalSession,
        open: @escaping @Sendable (PrincipalSession) -> Void
    ) {
        self.limit = limit
        self.make = make
        self.open = open
    }

    /// The part of a principal, which is made where there is none; nil once the table is closed.
    func session(of principal: String) -> PrincipalSession? {
        if let known = self.state.withLock({ $0.touch(principal) }) { return known }
        // Not under the lock: they take others.
        let made = self.make(principal)
        let spares = self.spares()
        let (found, isNew) = self.state.withLock { state -> (PrincipalSession?, Bool) in
            if state.isClosed { return (nil, false) }
            if let other = state.touch(principal) { return (other, false) }
            state.makeRoom(self.limit, from: spares)
            state.insert(made)
            return (made, true)
        }
        if isNew { self.open(made) }
        return found
    }

    /// How many are enough to choose from: a few may be held by a connection.
    private static let enough = 32

    /// The parts to let go of where there are too many, in this order.
    ///
    /// First those that have nothing to lose, then those with which nothing is under way, which lose
    /// what is in memory alone, as if their session had ended; among equals, the one that was used the
    /// longest ago. The part of all stays: rules look for its credentials.
    private func spares() -> [Spare] {
        let entries = self.state.withLock { state in
            state.entries.count < self.limit ? [:] : state.entries
        }
        let byUse = entries.filter { !$0.key.isEmpty }.sorted {
            $0.value.lastUse < $1.value.lastUse
        }
        var (first, second): ([Spare], [Spare]) = ([], [])
        for (principal, entry) in byUse where first.count < Self.enough {
            let spare = Spare(principal: principal, lastUse: entry.lastUse)
            switch entry.session.residue {
            case .nothing: first.append(spare)
            case .memory: second.append(spare)
            case .underWay: break
            }
        }
        return first + second
    }

    /// Takes in a part that was made elsewhere.
    func adopt(_ session: PrincipalSession) {
        self.state.withLock { $0.insert(session) }
        self.open(session)
    }

    /// The parts in memory, by name.
    var all: [PrincipalSession] {
        self.state.withLock { $0.entries.values.map(\.session) }
            .sorted { $0.principal < $1.principal }
    }

    /// What all did, also those that were let go.
    var counters: SessionCounters {
        let (sessions, retired) = self.state.withLock {
            ($0.entries.values.map(\.session), $0.retired)
        }
        return sessions.reduce(retired) { $0 + $1.session.counters() }
    }

    /// Lets go of all, which end; nobody is made any more.
    func close() async {
        let sessions = self.state.withLock { state in
            state.isClosed = true
            return state.entries.values.map(\.session)
        }
        for session in sessions { await session.endSession() }
    }
}
