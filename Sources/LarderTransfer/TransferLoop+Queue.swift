import LarderHTTP

/// How transfers wait for a connection, and take turns.
extension TransferLoop {
    /// Has a transfer wait for a connection, for as long as its observer would have it wait.
    func awaitTurn(_ transfer: Transfer) {
        guard let observer = transfer.observer else { return }
        observer.transferWaits { [fetch = transfer.fetch] in fetch.suspensionChanged() }
        self.reconsider(transfer)
    }

    /// Passes a transfer that waits for a connection over while its observer is suspended.
    func reconsider(_ transfer: Transfer) {
        guard let observer = transfer.observer, let destination = transfer.destination else {
            return
        }
        let id = transfer.fetch.id
        if observer.isSuspended {
            guard !transfer.isPassedOver else { return }
            transfer.isPassedOver = self.queue?.hold(id, for: destination) ?? false
        } else if transfer.isPassedOver {
            transfer.isPassedOver = false
            if self.queue?.release(id, for: destination) == true { self.launch([id]) }
        }
        // No time runs for one that is passed over.
        self.touch(transfer)
    }

    /// Gives up a transfer's place, and has those go that may go now.
    func yieldPlace(_ transfer: Transfer) {
        guard let destination = transfer.destination else { return }
        transfer.destination = nil
        self.launch(self.queue?.leave(transfer.fetch.id, for: destination) ?? [])
    }

    func launch(_ admitted: [UInt64]) {
        for id in admitted {
            guard !self.isOver, let transfer = self.transfers[id], transfer.phase != .over else {
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
}
