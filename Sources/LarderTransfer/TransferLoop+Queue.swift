import LarderHTTP

/// How transfers wait for a connection, and take turns.
extension TransferLoop {
    /// Has a transfer wait for a connection, for as long as its observer would have it wait.
    func awaitTurn(_ transfer: Transfer) {
        if let destination = transfer.destination { self.endForAnother(at: destination) }
        guard let observer = transfer.observer else { return }
        self.follow(observer, of: transfer)
        self.reconsider(transfer)
    }

    /// Has a transfer that nobody waits for end as soon as another waits for a connection.
    func offerEnd(of transfer: Transfer) {
        guard transfer.phase != .over, let destination = transfer.destination else { return }
        let id = transfer.fetch.id
        self.changeQueue { $0.offerEnd(of: id, for: destination) }
        self.endForAnother(at: destination)
    }

    /// Ends one of those that nobody waits for, where others wait for its connection.
    private func endForAnother(at destination: ConnectionQueue.Destination) {
        while let id = self.changeQueue({ $0.takeOffer(for: destination) }) {
            let transfer = self.transfer(id)
            if let transfer, transfer.phase != .over, transfer.receiver.endsForAnother() { return }
            self.changeQueue { $0.keep(id, for: destination) }
        }
    }

    /// Wants to hear from now on when a transfer's observer is suspended, or goes on.
    func follow(_ observer: any TransferObserver, of transfer: Transfer) {
        observer.transferWaits { [fetch = transfer.fetch] in fetch.suspensionChanged() }
    }

    /// Has a transfer stand still while its observer is suspended, passed over where it waits for a
    /// connection.
    func reconsider(_ transfer: Transfer) {
        guard let observer = transfer.observer else { return }
        let isSuspended = observer.isSuspended
        transfer.isStandingStill = isSuspended
        // No time runs meanwhile.
        defer { self.touch(transfer) }
        guard let destination = transfer.destination else { return }
        let id = transfer.fetch.id
        if isSuspended {
            guard !transfer.isPassedOver else { return }
            transfer.isPassedOver = self.changeQueue { $0.hold(id, for: destination) }
            if !transfer.isPassedOver {
                self.launch(self.changeQueue { $0.stopWaiting(for: id, to: destination) })
            }
        } else if transfer.isPassedOver {
            transfer.isPassedOver = false
            let mayGo = self.changeQueue { $0.release(id, for: destination) }
            if mayGo { self.launch([id]) }
        }
    }

    /// Gives up a transfer's place, and has those go that may go now.
    func yieldPlace(_ transfer: Transfer) {
        guard let destination = transfer.destination else { return }
        transfer.destination = nil
        let id = transfer.fetch.id
        let isDead =
            transfer.phase == .over && !transfer.isWhole && !transfer.hasBegunRequest
        self.launch(self.changeQueue { $0.leave(id, for: destination, isDead: isDead) })
    }

    func launch(_ admitted: [UInt64]) {
        for id in admitted {
            guard !self.isOver, let transfer = self.transfer(id), transfer.phase != .over else {
                continue
            }
            do throws(UpstreamFailure) {
                try self.launch(transfer)
            } catch {
                transfer.end(error)
            }
            self.touch(transfer)
        }
    }

    /// Changes the queue, outside of its property.
    @inline(__always)
    func changeQueue<Result>(_ change: (inout ConnectionQueue) -> Result) -> Result {
        var queue = exchange(&self.queue, with: ConnectionQueue(limit: 0))
        defer { self.queue = queue }
        return change(&queue)
    }
}
