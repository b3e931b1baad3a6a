import CCurl
import LarderHTTP

/// What follows from what was noted of transfers, once libcurl has returned.
extension TransferLoop {
    func expire() {
        guard let next = self.deadlines.next, next <= self.now else { return }
        // What libcurl has finished is not late, however long this thread took to see it.
        self.collectCompletions()
        while let (id, wait) = self.deadlines.takeExpired(self.now) {
            // Of one that is over and undelivered the receiver will learn how it ended.
            guard let transfer = self.transfer(id), transfer.phase != .over else { continue }
            self.touch(transfer)
            switch wait {
            case .content: transfer.goOnSending()
            // It has moved meanwhile, and will wait anew.
            case _ where wait != .resource && transfer.hasMoved(since: wait): break
            case .leave: transfer.releaseContent()
            default:
                guard let failure = wait.failure(self.configuration) else { continue }
                if wait != .resource, self.wasSuspended(transfer, in: wait) { continue }
                self.detach(transfer)
                // The turn that gives places to those who wait comes before it is let go of.
                self.leaveLookups(transfer)
                transfer.end(failure)
            }
        }
    }

    /// Whether a transfer whose time is up was suspended in it: it then waits anew from when it went
    /// on, or will when it does.
    ///
    /// That is only asked here: whoever suspends a request need not tell its loop, and one that nobody
    /// suspends costs nothing.
    private func wasSuspended(_ transfer: Transfer, in wait: Wait) -> Bool {
        guard let observer = transfer.observer else { return false }
        if observer.isSuspended {
            self.follow(observer, of: transfer)
            // It may have gone on before it knew whom to tell.
            self.reconsider(transfer)
            return true
        }
        guard let resumedAgo = observer.resumedAgo else { return false }
        self.deadlines.enter(transfer.waiting, wait, .read() - resumedAgo)
        guard transfer.waiting.moment <= self.now else { return true }
        self.deadlines.leave(transfer.waiting)
        return false
    }

    /// A transfer stands still, as its receiver does.
    ///
    /// Of a socket that it neither wanted nor wants libcurl says nothing. So it is where a request took a
    /// connection that lay idle, and so much of the answer was there at once: the rest lies unread in what
    /// still counts as idle, and would be taken for bytes that nobody asked for. So it is, too, where the
    /// exchange before is over and was not seen to yet: then the socket is not even idle.
    func held(_ transfer: Transfer) {
        self.touch(transfer)
        guard !transfer.hasKnownSocket, let easy = transfer.easy,
            let ends = ConnectionEnds(of: easy)
        else { return }
        // Asked once: it may be held again before libcurl wants the socket.
        transfer.hasKnownSocket = true
        transfer.heldSocket = self.poller.takeUnwanted(ends)
    }

    /// What a transfer was held on is its own no more: idle from now on, unless another has it already.
    private func leaveHeldSocket(of transfer: Transfer) {
        guard let socket = transfer.heldSocket.take() else { return }
        let isUsed = self.transfers.entries.contains {
            $0.value.easy != nil && $0.value.heldSocket == socket
        }
        if !isUsed { self.poller.exchangeEnded(on: socket) }
    }

    // MARK: What libcurl has finished

    func collectCompletions() {
        while let (context, result) = unsafe self.multi.nextCompletion() {
            guard let transfer = unsafe EasyHandle.transfer(context), let easy = transfer.easy
            else { continue }
            if self.libcurlEnded(transfer) { continue }
            if transfer.goesOn(after: result), self.sendAnew(transfer, easy) { continue }
            if result == CURLE_COULDNT_CONNECT, self.looksUpAnew(transfer, easy) { continue }
            let end = CurlEnd(result, of: easy)
            if transfer.hasLogin { easy.learnLogin(of: transfer, end) }
            self.leaveHeldSocket(of: transfer)
            if transfer.dial != nil, result == CURLE_OK {
                self.handOver(easy, transfer)
            } else {
                transfer.end(end)
            }
            // Among many somebody is awake anyway: with 64 it cost a request 4 % more CPU time.
            if self.transfers.count > 1 || !transfer.isToldFirst { self.detach(transfer) }
            self.touch(transfer)
        }
    }

    /// Gives libcurl a transfer once more, for a connection of its own.
    ///
    /// - Returns: false where that is not to be had; it is over then.
    func sendAnew(_ transfer: Transfer, _ easy: EasyHandle) -> Bool {
        guard self.multi.remove(easy) == CURLM_OK else { return false }
        easy.connectAnew(true)
        transfer.phase = .queued
        guard easy.firstError == CURLE_OK, self.multi.add(easy) == CURLM_OK else { return false }
        self.touch(transfer)
        return true
    }

    /// Takes the socket of a dial out of libcurl's hands.
    ///
    /// libcurl has no other way to part with one than to close it (CURLINFO_ACTIVESOCKET(3) only
    /// lends), so it closes a second descriptor of the same connection. It has read nothing beyond
    /// the parent's answer: it reads that byte by byte.
    private func handOver(_ easy: EasyHandle, _ transfer: Transfer) {
        guard let socket = easy.activeSocket, let own = self.poller.handOver(socket) else {
            transfer.end(
                UpstreamFailure(
                    .connectionLimitReached, party: .larder,
                    detail: "no descriptor for the connection"))
            return
        }
        transfer.end(DialledSocket(own))
    }

    // MARK: What is to be told

    /// Sees to every transfer of which something was noted.
    func settle() {
        self.round.perform { self.settleAll() }
    }

    private func settleAll() {
        self.collectCompletions()
        while !self.touched.isEmpty {
            let room = exchange(&self.settling, with: [])
            var settling = exchange(&self.touched, with: room)
            for transfer in settling {
                transfer.isTouched = false
                // Ended while it lay here.
                guard !transfer.isForgotten else { continue }
                self.settle(transfer)
            }
            settling.removeAll(keepingCapacity: true)
            self.settling = settling
            self.collectCompletions()
        }
    }

    private func settle(_ transfer: Transfer) {
        transfer.tellSent()
        if transfer.sharing != .unknown, let destination = transfer.destination {
            self.launch(self.changeQueue { $0.learn(transfer.sharing, of: destination) })
        }
        if transfer.phase == .over { self.yieldPlace(transfer) }
        if transfer.easy != nil, transfer.isAnsweredEarly {
            transfer.end(CurlEnd())
            self.detach(transfer)
        }
        let isLeft = self.deliver(transfer)
        if transfer.phase == .over { self.detach(transfer) }
        guard isLeft else { return }
        if transfer.easy != nil {
            if transfer.mustReleaseContent {
                transfer.mustReleaseContent = false
                self.unpause(transfer, sendingGoesOn: true)
            } else if transfer.isHeld, !transfer.isPaused {
                self.unpause(transfer, sendingGoesOn: false)
            }
        }
        self.awaitNext(of: transfer)
    }

    private func awaitNext(of transfer: Transfer) {
        if let wait = transfer.wantedWait {
            if wait != transfer.waiting.wait || transfer.hasProgressed {
                // To wait for a look-up's turn and for the look-up is one wait.
                let begun = wait == .name ? transfer.nameAwaitedSince : nil
                self.deadlines.enter(transfer.waiting, wait, begun ?? self.now)
            }
        } else {
            self.deadlines.leave(transfer.waiting)
        }
        transfer.hasProgressed = false
        guard let entry = transfer.contentWaiting else { return }
        if !transfer.mayBeOver {
            self.deadlines.leave(entry)
        } else if entry.wait == nil {
            self.deadlines.enter(entry, .content, self.now)
        }
    }

    /// Sees to those touched transfers that have nothing to tell, and for which nothing is to be done
    /// but to wait; the others stay touched, but for those that are over.
    func awaitQuietly() {
        var touched = exchange(&self.touched, with: [])
        touched.removeAll { transfer in
            guard !transfer.isForgotten else { return true }
            guard transfer.isQuiet else { return false }
            transfer.isTouched = false
            self.awaitNext(of: transfer)
            return true
        }
        self.touched = touched
    }

    /// Tells the receiver what it is ready to hear; false when that was the last.
    private func deliver(_ transfer: Transfer) -> Bool {
        if self.deliverWhole(transfer) { return false }
        while !transfer.isPaused, let event = transfer.outbox.take() {
            if transfer.fetch.isCancelled { return true }  // The command is on its way.
            let receiver = transfer.receiver
            switch event {
            case .informational(let head):
                receiver.upstream(informational: head)
            case .head(let head):
                let demand = receiver.upstream(
                    head: head.head, bodyLength: head.bodyLength, connection: head.connection)
                transfer.isPaused = demand == .pause
            case .piece(let piece):
                transfer.isPaused = receiver.upstream(piece: piece) == .pause
            case .ended(.finished(let trailers)):
                self.forget(transfer)  // Before, so that who is told counts one less.
                receiver.upstream(finished: trailers)
                transfer.tellMeasurement()
                return false
            case .ended(.failed(let failure)):
                self.forget(transfer)
                receiver.upstream(failed: failure)
                transfer.tellMeasurement()
                return false
            case .ended(.connected(let socket)):
                self.forget(transfer)
                transfer.dial?.connected(socket)
                return false
            }
        }
        return true
    }

    /// Tells the receiver of a response that is whole already, if it takes those.
    ///
    /// As nearly every small one is: libcurl reads its head, its body and its end at once. One call
    /// spares the receiver to wake its client for the head and again for the body.
    private func deliverWhole(_ transfer: Transfer) -> Bool {
        guard let response = self.takeWhole(transfer) else { return false }
        transfer.receiver.upstream(whole: response)
        transfer.tellMeasurement()
        return true
    }

    /// Takes a response that is whole already, for a receiver that takes those, and lets go of the
    /// transfer.
    func takeWhole(_ transfer: Transfer) -> WholeResponse? {
        guard transfer.phase == .over, !transfer.isPaused, !transfer.fetch.isCancelled,
            transfer.receiver.takesWholeResponses, let response = transfer.outbox.takeWhole()
        else { return nil }
        self.forget(transfer)
        return response
    }

    /// Tells libcurl which directions stand still; it may call back before this returns.
    func unpause(_ transfer: Transfer, sendingGoesOn: Bool) {
        guard let easy = transfer.easy else { return }
        let receivingGoesOn = transfer.isHeld && !transfer.isPaused
        if receivingGoesOn { transfer.isHeld = false }
        let code = easy.pause(
            receiving: transfer.isHeld,
            sending: !sendingGoesOn && transfer.content?.isPending == true)
        self.touch(transfer)
        guard code != CURLE_OK, transfer.easy != nil else { return }
        transfer.end(CurlEnd(code, of: easy))
        self.detach(transfer)
    }
}
