import LarderHTTP
import LarderSession
import Synchronization

/// The principals of a session that are in memory: made when they come, and let go when others need
/// the room.
///
/// Any thread may use it.
final class PrincipalTable: Sendable {
    /// How many are held beside those that a connection or an exchange holds.
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

        /// Lets go of the one that was used the longest ago, that nobody else holds, and in which
        /// nothing is under way.
        ///
        /// The part of all stays: rules look for its credentials.
        mutating func makeRoom(_ limit: Int) {
            guard self.entries.count >= limit else { return }
            let byUse = self.entries.filter { !$0.key.isEmpty }.sorted {
                $0.value.lastUse < $1.value.lastUse
            }
            .map(\.key)
            for principal in byUse {
                guard var entry = self.entries.removeValue(forKey: principal) else { continue }
                if isKnownUniquelyReferenced(&entry.session), entry.session.isIdle {
                    self.retired = self.retired + entry.session.session.counters()
                    return
                }
                self.entries[principal] = entry
            }
        }
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
        // Not under the lock: it takes others.
        let made = self.make(principal)
        let (found, isNew) = self.state.withLock { state -> (PrincipalSession?, Bool) in
            if state.isClosed { return (nil, false) }
            if let other = state.touch(principal) { return (other, false) }
            state.makeRoom(self.limit)
            state.insert(made)
            return (made, true)
        }
        if isNew { self.open(made) }
        return found
    }

    /// Takes in a part that was made elsewhere.
    func adopt(_ session: PrincipalSession) {
        self.state.withLock { $0.insert(session) }
        self.open(session)
    }

    /// Those in memory, by name.
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
