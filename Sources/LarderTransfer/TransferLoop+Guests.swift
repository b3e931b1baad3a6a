import CCurl
import LarderHTTP

/// What a loop does on the thread of a guest (`GuestEntrance`), in the place of a turn.
extension TransferLoop {
    /// Whether a guest may begin a fetch: it probably finds a connection, so that nothing is to be
    /// done for it but to send and to look for the answer, and nothing else can happen meanwhile.
    ///
    /// No timer or handshake of another transfer runs on its thread, and no TLS library writes to a
    /// socket there, which would raise SIGPIPE: libcurl itself sends with MSG_NOSIGNAL.
    var mayHaveGuest: Bool {
        !self.isOver && self.transfers.isEmpty && self.poller.isPlain
            && self.poller.hasIdleSockets
    }

    /// Whether a fetch goes out without TLS or a login on its way.
    func isPlainWay(of order: FetchOrder) -> Bool {
        switch Way(to: order.request.uri, isDial: false, self.configuration.parents) {
        case .direct: true
        case .relay(let parent): parent.kind == .http && parent.authentication == .none
        case .tunnel: false
        }
    }

    /// Begins a fetch in the place of a turn, on the thread of a guest.
    ///
    /// Nobody is told anything there: what there is to tell stays for the loop's own thread, but for the
    /// answer that is returned.
    ///
    /// - Parameters:
    ///   - isAlone: no other loop of the thread has anything under way.
    ///   - answer: the answer, if it is there already and may be told by the guest when it has left. Not
    ///     returned: each hand that it went through would copy its fields.
    func begin(
        asGuest order: FetchOrder, _ now: MonotonicTime, isAlone: Bool,
        answer: inout WholeResponse?
    ) {
        self.now = now
        self.counters.guestBegan()
        // A task that a program has in its hands is told later anyhow.
        let isHushed = order.receiver.mayBeAnsweredAtOnce && self.poller.hush()
        self.begin(order)
        self.runTimer()
        self.collectCompletions()
        let isAnswered =
            isHushed
            && (self.takeAnswer(to: order, into: &answer)
                || isAlone && self.takeNeighbourAnswer(to: order, into: &answer))
        // Most programs that had their answer so come back for the next.
        if !isAnswered || !self.poller.isHushedIdle { self.poller.unhush() }
        self.awaitQuietly()
    }

    /// Waits a moment for a peer on a loopback address, and takes its answer if it comes meanwhile.
    ///
    /// Without it the guest leaves, the answer wakes the loop's thread, and that the one who awaits:
    /// two changes of thread in place of one, and 160 to 180 µs a request in place of 140
    /// (Tests/Benchmarks/NOTES.md). Other loops of the thread would have to wait for the guest, too, so it is
    /// alone. What is asked of them meanwhile waits until the guest has left.
    private func takeNeighbourAnswer(
        to order: FetchOrder, into answer: inout WholeResponse?
    ) -> Bool {
        guard let socket = self.poller.hushedWait, self.patience.mayWait() else { return false }
        var isAnswered = false
        if self.awaitAnswer(socket, GuestPatience.longest) {
            self.now = .read()
            self.check(self.multi.ready(socket, Int32(CURL_CSELECT_IN)))
            self.collectCompletions()
            isAnswered = self.takeAnswer(to: order, into: &answer)
        }
        // In vain was also what brought a part, or what the thread has to tell.
        self.patience.ended(isAnswered: isAnswered)
        return isAnswered
    }

    /// Takes the answer to what has just been begun, and lets go of the transfer, where it is over and
    /// nothing but that one call is left to be made; for a receiver that is known to take it at once.
    ///
    /// - Returns: whether it was taken.
    private func takeAnswer(to order: FetchOrder, into answer: inout WholeResponse?) -> Bool {
        guard let transfer = self.transfer(order.fetch.id), transfer.isToldFirst,
            !transfer.isMultiplexed
        else { return false }
        answer = self.takeWhole(transfer)
        guard answer != nil else { return false }
        self.detach(transfer)
        return true
    }
}
