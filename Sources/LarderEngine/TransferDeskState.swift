import LarderHTTP
import LarderSession

/// A transfer as its desk keeps it.
struct TransferEntry {
    let transfer: Transfer
    var machine: TransferMachine
    /// Of the client's fetch that brings it.
    var received: (@Sendable () -> UInt64)?
    var length: UInt64?
    /// How far it came at best, from its beginning on, in bytes.
    var reached: UInt64 = 0
    /// How often all of it came and was not stored.
    var unkept = 0
    /// It is written down.
    var isNoted = false
    /// It is asked for again, and counts as one of those.
    var isActive = false
    var reading: TransferReading?
    var exchange: (any Exchange)?
    var timer: (any TimerToken)?

    /// When the first request for it came.
    var begun: Timestamp { self.machine.deadline - TransferDesk.patience }

    var fact: TransferFact {
        let (read, length) = self.reading?.progress ?? (0, nil)
        let activity: TransferFact.Activity =
            switch self.machine.state {
            case .running, .over: .running
            case .queued: .queued
            case .waiting(let until, let cause): .waiting(until: until, cause: cause)
            }
        return TransferFact(
            id: self.transfer.id, uri: self.transfer.request.uri.description,
            principal: self.transfer.part.principal, begun: self.begun,
            deadline: self.machine.deadline, received: self.received?() ?? read,
            length: length ?? self.length, activity: activity)
    }
}

/// All of a desk's transfers, as a value.
struct TransferDeskState {
    var entries: [UInt64: TransferEntry] = [:]
    /// Those that wait for their turn, in order.
    var queue: [UInt64] = []
    /// How many are asked for again now.
    private(set) var active = 0
    /// Of the thread that sees to those whose turn it is.
    var beginning = OneAtATime()
    var isClosed = false
    var isFullTold = false
    /// What those may have who are not connected any more; nil: that cannot be asked yet.
    var leave: (@Sendable (Requester, TargetURI) -> RequesterLeave?)?

    /// Takes an entry out, wherever it stands.
    mutating func take(_ id: UInt64) -> TransferEntry? {
        self.rest(id)
        self.queue.removeAll { $0 == id }
        if self.entries.count < TransferDesk.limit / 2 { self.isFullTold = false }
        return self.entries.removeValue(forKey: id)
    }

    /// One is not asked for any more, if it was.
    mutating func rest(_ id: UInt64) {
        guard self.entries[id]?.isActive == true else { return }
        self.entries[id]?.isActive = false
        self.active -= 1
    }

    /// The one whose turn it is, and who is to be asked whether it may be had; nil: none for now.
    mutating func next() -> (Transfer, @Sendable (Requester, TargetURI) -> RequesterLeave?)? {
        guard !self.isClosed, self.active < TransferDesk.concurrency, let leave = self.leave,
            !self.queue.isEmpty
        else { return nil }
        let id = self.queue.removeFirst()
        guard let transfer = self.entries[id]?.transfer else { return nil }
        self.entries[id]?.machine.begins()
        self.entries[id]?.isActive = true
        self.active += 1
        return (transfer, leave)
    }

    /// One for the same that no fetch brings now.
    func waiting(for transfer: Transfer) -> (UInt64, TransferEntry)? {
        for (id, entry) in self.entries where entry.transfer.isSame(as: transfer) {
            switch entry.machine.state {
            case .waiting, .queued: return (id, entry)
            case .running, .over: break
            }
        }
        return nil
    }

    func hasRoom(for transfer: Transfer) -> Bool {
        guard self.entries.count < TransferDesk.limit else { return false }
        let own = self.entries.values.count { $0.transfer.requester == transfer.requester }
        return own < TransferDesk.share
    }

    /// Takes one in that was written down; false where it is to be forgotten.
    mutating func takeUp(_ transfer: Transfer) -> Bool {
        // It stays where it is for the next start.
        guard !self.isClosed else { return true }
        // A client may have come first, and asked for the same. Two that were under way at once may be two
        // variants.
        let isThere = self.entries.values.contains {
            $0.transfer.isSame(as: transfer)
                && $0.transfer.request.fields == transfer.request.fields
        }
        guard !isThere, self.entries.count < TransferDesk.limit else { return false }
        var entry = TransferEntry(
            transfer: transfer,
            machine: TransferMachine(deadline: transfer.deadline, isQueued: true))
        entry.isNoted = true
        self.entries[transfer.id] = entry
        self.queue.append(transfer.id)
        return true
    }

    /// The one that is to be written down; nil where it is over, or was.
    mutating func note(_ id: UInt64) -> TransferEntry? {
        guard !self.isClosed, let entry = self.entries[id], !entry.isNoted else { return nil }
        self.entries[id]?.isNoted = true
        return entry
    }
}
