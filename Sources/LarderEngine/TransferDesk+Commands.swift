import LarderHTTP
import LarderSession
import LarderState
import Synchronization

/// What is done with transfers from outside.
extension TransferDesk {
    /// Names who knows what those may have who are not connected any more; until then nothing is asked for
    /// again.
    ///
    /// - Parameter leave: gives nil: not this target. Any thread; must not block.
    func ask(_ leave: @escaping @Sendable (Requester, TargetURI) -> RequesterLeave?) {
        self.state.withLock { $0.leave = leave }
        self.beginNext()
    }

    /// Takes up transfers that were written down before the process began.
    func takeUp(_ transfers: [KeptTransfer], in part: PrincipalSession) {
        let now = self.clock.now()
        for kept in transfers {
            self.journal?.found(kept.id, of: part.principal)
            // A clock that was set back makes none last longer.
            let begun = min(kept.begun, now)
            let deadline = begun + Self.patience
            guard let uri = TargetURI(text: kept.uri), deadline > now else {
                self.journal?.over(kept.id, of: part.principal)
                let end: TransferEnd =
                    deadline > now
                    ? .refused("its URL cannot be read")
                    : .expired(cause: "the proxy has not run meanwhile")
                self.report(.ended(uri: kept.uri, end))
                continue
            }
            let transfer = Transfer(
                id: kept.id, Request(method: .get, uri: uri, fields: kept.fields),
                by: kept.requester, begun: begun, part: part, desk: self)
            let isKept = self.state.withLock { $0.takeUp(transfer) }
            if !isKept { self.journal?.over(kept.id, of: part.principal) }
        }
        self.beginNext()
    }

    /// What is not over, the oldest first, once it is written down, or could not be.
    func writtenFacts() async -> [TransferFact] {
        let facts = self.facts
        for fact in facts { self.note(fact.id) }
        await self.journal?.flush()
        return facts
    }

    /// What is not over, the oldest first.
    var facts: [TransferFact] {
        self.state.withLock { Array($0.entries.values) }.map(\.fact)
            .sorted { ($0.begun, $0.id) < ($1.begun, $1.id) }
    }

    /// Ends a transfer; a client that receives it goes on receiving.
    ///
    /// - Returns: whether there was one with this number.
    func cancel(_ id: UInt64) -> Bool {
        guard self.end(id, .cancelled) else { return false }
        self.beginNext()
        return true
    }

    /// Asks for nothing any more, and returns when what is not over is written down.
    func close() async {
        for id in self.state.withLock({ Array($0.entries.keys) }) { self.note(id) }
        let entries = self.state.withLock { state in
            state.isClosed = true
            state.leave = nil
            defer { (state.entries, state.queue) = ([:], []) }
            return Array(state.entries.values)
        }
        for entry in entries {
            entry.timer?.cancel()
            entry.reading?.abandon()
        }
        await self.journal?.flush()
    }
}
