import Glibc
import LarderHTTP

/// How transfers wait for the look-up of a name.
///
/// libcurl says when it is about to begin one, and is told no where there is no place for it: it then
/// ends the transfer, which is given to it again when there is. So nothing is to be done for one that
/// finds a connection or a name that libcurl knows.
extension TransferLoop {
    /// Whether libcurl may begin to look a transfer's name up; called by libcurl.
    func mayLookUp(_ transfer: Transfer) -> Bool {
        guard let name = transfer.lookedUpName else { return true }
        let (id, now) = (transfer.fetch.id, self.now)
        guard self.changeLookups({ $0.take(name, for: id, now) }) else {
            transfer.awaitedName = name
            if transfer.nameAwaitedSince == nil {
                transfer.nameAwaitedSince = self.now
                self.counters.lookupDelayed()
                self.port.limits.reached(.nameLookups)
            }
            return false
        }
        transfer.hasLookupPlace = true
        transfer.hasLookedUp = true
        return true
    }

    /// Has a transfer's name looked up once more where nobody takes a connection at the addresses that
    /// are known of it: it may have moved since.
    ///
    /// - Returns: false where that is not to be had, or was done already; the transfer is over then.
    func looksUpAnew(_ transfer: Transfer, _ easy: EasyHandle) -> Bool {
        guard !transfer.hasLookedUp, let name = transfer.lookedUpName,
            !transfer.hasBegunRequest, transfer.failure == nil, transfer.addressObjection == nil
        else { return false }
        transfer.hasLookedUp = true
        transfer.nameAwaitedSince = nil
        easy.forgetName(name)
        return self.sendAnew(transfer, easy)
    }

    /// libcurl has ended its part in a transfer.
    ///
    /// - Returns: whether that is because it waits for a name.
    func libcurlEnded(_ transfer: Transfer) -> Bool {
        if transfer.hasLookupPlace {
            transfer.hasLookupPlace = false
            self.changeLookups { $0.ended(transfer.fetch.id) }
        }
        guard transfer.awaitedName != nil, transfer.phase == .queued else { return false }
        self.detach(transfer)
        return true
    }

    /// A transfer has an address, and a socket for it.
    func socketOpened(_ transfer: Transfer) {
        if transfer.hasLookupPlace {
            transfer.hasLookupPlace = false
            self.changeLookups { $0.found(transfer.fetch.id) }
        }
        let limit = self.configuration.share(of: self.configuration.maximumConnections)
        if limit > 0, self.poller.used >= limit { self.port.limits.reached(.connections) }
    }

    /// A transfer is let go of, or about to end; once more, nothing happens.
    func leaveLookups(_ transfer: Transfer) {
        if let name = transfer.awaitedName.take() {
            self.changeLookups { $0.leave(name, transfer.fetch.id) }
        } else if transfer.hasLookupPlace, transfer.phase == .queued {
            transfer.hasLookupPlace = false
            self.changeLookups { $0.ended(transfer.fetch.id) }  // It never began.
        }
    }

    /// Has those go on that may look up a name now, or need not any more.
    func admitLookups() {
        guard self.lookups.isWaitedFor else { return }
        // One that was refused just now is still libcurl's: it is launched with another handle.
        self.collectCompletions()
        let (placed, known) = self.changeLookups { $0.admit(self.now) }
        for id in placed { self.transfer(id)?.hasLookupPlace = true }
        let admitted = placed + known
        for id in admitted { self.transfer(id)?.awaitedName = nil }
        // Another has just looked it up.
        for id in known { self.transfer(id)?.hasLookedUp = true }
        self.launch(admitted)
        for id in placed {
            // It could not begin.
            guard let transfer = self.transfer(id), transfer.easy == nil else { continue }
            transfer.hasLookupPlace = false
            self.changeLookups { $0.ended(id) }
        }
    }

    /// Changes the look-ups, outside of their property.
    private func changeLookups<Result>(_ change: (inout NameLookups) -> Result) -> Result {
        var lookups = exchange(&self.lookups, with: NameLookups(limit: 0, lifetime: .zero))
        defer { self.lookups = lookups }
        return change(&lookups)
    }
}

extension Transfer {
    /// libcurl is about to lead a host to addresses; false where the transfer has to wait for that.
    ///
    /// One whose connection died under its request does not, as it has begun already.
    func resolutionBegan() -> Bool {
        guard self.phase == .queued else { return true }
        self.loop.touch(self)
        guard self.loop.mayLookUp(self) else { return false }
        self.phase = .resolving
        return true
    }

    /// What libcurl looks up for the transfer, as it remembers it; nil for an address and for
    /// `localhost`, for which it asks nobody.
    fileprivate var lookedUpName: String? {
        let (host, port) =
            self.way.parent.map { ($0.host, $0.port) }
            ?? (self.request.uri.host, self.request.uri.port)
        return NameLookups.isLookedUp(host) ? "\(host):\(port)" : nil
    }
}

extension NameLookups {
    /// Of many loops each has enough for pages whose parts lie on many hosts.
    static func limit(_ configuration: TransferConfiguration) -> Int {
        let total = configuration.nameLookups
        return Swift.max(configuration.share(of: total), Swift.min(total, 16))
    }

    /// Whether a host is a name for which somebody may have to be asked.
    static func isLookedUp(_ host: String) -> Bool {
        if host.hasPrefix("[") { return false }
        var address = in_addr()
        if unsafe inet_pton(AF_INET, host, &address) == 1 { return false }
        // For a name with a final dot libcurl asks somebody, whichever it is.
        return !host.isLocalhost || host.hasSuffix(".")
    }
}
