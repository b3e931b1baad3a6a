import LarderPolicy

/// A response on its way from `commit` to the lower tier's `.visible`.
struct Landing: Sendable {
    /// The id it has in memory; also names it where memory did not take it.
    let ticket: ObjectID
    let key: HashedKey
    let isInMemory: Bool
    /// As it was committed, to know the lower tier's copy by.
    let object: StoredObject
    /// Lower ids that it replaces: hidden from lookups, for memory has shown it already.
    let replaced: [ObjectID]
    /// It was removed on its way: to be removed again as soon as it has landed.
    var isDoomed = false
    /// It was freshened on its way: the head to write once it has landed.
    var newHead: StoredHead?
    /// Removals that have not ended before it is gone.
    var waiters: [PendingRemoval] = []
}

/// Responses committed to the lower tier that it has neither shown nor given up yet: a value.
///
/// A lower tier that is busy commits hundreds at once, and each lookup in it asks for those of its
/// key: so they are found by key and by ticket.
struct Landings: Sendable {
    private var byTicket: [ObjectID: Landing] = [:]
    /// Tickets by the hash of the key, in the order in which they were committed.
    private var tickets: [Int: [ObjectID]] = [:]

    var all: some Collection<Landing> { self.byTicket.values }

    func contains(_ key: HashedKey) -> Bool {
        self.tickets[key.hashed]?.contains { self.byTicket[$0]?.key == key } ?? false
    }

    /// The landings of a key.
    func landings(of key: HashedKey) -> [Landing] {
        guard let tickets = self.tickets[key.hashed] else { return [] }
        return tickets.compactMap { self.byTicket[$0] }.filter { $0.key == key }
    }

    mutating func insert(_ landing: Landing) {
        self.byTicket[landing.ticket] = landing
        self.tickets[landing.key.hashed, default: []].append(landing.ticket)
    }

    /// Takes out a landing that has come to its end.
    mutating func end(_ ticket: ObjectID) -> Landing? {
        guard let landing = self.byTicket.removeValue(forKey: ticket) else { return nil }
        let hash = landing.key.hashed
        if self.tickets[hash]?.count == 1 {
            self.tickets[hash] = nil
        } else {
            self.tickets[hash]?.removeAll { $0 == ticket }
        }
        return landing
    }

    /// Dooms those of `tickets` that are landing; they are settled with `removal` when they are gone.
    mutating func doom(_ tickets: [ObjectID], for removal: PendingRemoval?) {
        for ticket in tickets where self.byTicket[ticket] != nil {
            self.byTicket[ticket]?.isDoomed = true
            if let removal {
                removal.expectOneMore()
                self.byTicket[ticket]?.waiters.append(removal)
            }
        }
    }

    /// Whether a removal has not ended before it is gone.
    func isAwaited(_ ticket: ObjectID) -> Bool {
        self.byTicket[ticket]?.waiters.isEmpty == false
    }

    /// Dooms those of a key.
    mutating func doom(_ key: HashedKey, for removal: PendingRemoval?) {
        self.doom(self.landings(of: key).map(\.ticket), for: removal)
    }

    /// Notes the head to write once the response has landed; false where it is not landing.
    mutating func setNewHead(_ head: StoredHead, ticket: ObjectID) -> Bool {
        guard self.byTicket[ticket] != nil else { return false }
        self.byTicket[ticket]?.newHead = head
        return true
    }
}
