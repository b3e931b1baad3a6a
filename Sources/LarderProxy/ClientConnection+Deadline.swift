import Glibc
import LarderHTTP
import NIOCore

/// The one deadline of a connection, and the timer behind it.
///
/// Deadlines move with every request, the timer does not: it fires when it was once set to, sees
/// that the deadline has moved on, and is set again. So a busy connection pays for a timer once
/// in the time of a timeout, not once a request.
struct ConnectionTimer {
    /// What is waited for.
    enum Wait: Hashable { case nothing, request, head, content, sending, lingering, lastLingering }

    var wait = Wait.nothing
    /// The wait goes on, but what it waits for has moved.
    var hasProgressed = false
    var deadline: NIODeadline?
    var armedFor: NIODeadline?
    var callback: NIOScheduledCallback?
    /// A moment just read from the clock, to be used instead of reading it again.
    var now: NIODeadline?
    /// Bytes of the answer that the socket had taken when the wait began.
    var taken: Int64 = 0
    /// Bytes of the answer that had been written when the wait began.
    var written: UInt64 = 0
}

/// How long each wait may last.
///
/// In the loops' own unit: a deadline is set with each request.
struct ConnectionWaits {
    private let request: TimeAmount
    private let head: TimeAmount
    private let content: TimeAmount
    private let sending: TimeAmount
    private let lingering: TimeAmount
    private let lastLingering: TimeAmount

    init(_ configuration: ProxyConfiguration) {
        self.request = .nanoseconds(configuration.idleTimeout.inNanoseconds)
        self.head = .nanoseconds(configuration.headTimeout.inNanoseconds)
        self.content = .nanoseconds(configuration.requestBodyTimeout.inNanoseconds)
        self.sending = .nanoseconds(configuration.sendTimeout.inNanoseconds)
        self.lingering = .nanoseconds(configuration.lingerTimeout.inNanoseconds)
        self.lastLingering = min(
            self.lingering, .nanoseconds(configuration.lastLingerTimeout.inNanoseconds))
    }

    func time(for wait: ConnectionTimer.Wait) -> TimeAmount? {
        switch wait {
        case .nothing: nil
        case .request: self.request
        case .head: self.head
        case .content: self.content
        case .sending: self.sending
        case .lingering: self.lingering
        case .lastLingering: self.lastLingering
        }
    }
}

/// Wakes a connection.
private struct TimerHandler: NIOScheduledCallbackHandler {
    let connection: ClientConnection

    func handleScheduledCallback(eventLoop: some EventLoop) {
        self.connection.timerFired()
    }
}

extension ClientConnection {
    /// Sets the deadline that belongs to what is waited for now.
    func updateDeadline() {
        let wait = self.currentWait
        let former = self.timer.wait
        guard wait != former || self.timer.hasProgressed else { return }
        self.timer.wait = wait
        self.timer.hasProgressed = false
        let read = self.timer.now.take()
        guard let time = self.shared.waits.time(for: wait) else {
            self.timer.deadline = nil
            return
        }
        let now = read ?? .now()
        switch wait {
        case .sending: self.timer.taken = self.takenBytes
        case .content: self.timer.written = self.writtenBytes
        case .lastLingering:
            // One that lingers already does so no longer than it would have.
            if former == .lingering, let until = self.timer.deadline, until < now + time { return }
        case .nothing, .request, .head, .lingering: break
        }
        self.setDeadline(now + time)
    }

    private var currentWait: ConnectionTimer.Wait {
        guard self.context != nil else { return .nothing }
        if self.state.isLingering, self.hasSentAll {
            return self.loop.isDraining ? .lastLingering : .lingering
        }
        if self.isClosing || self.state.isLingering || !self.isWritable { return .sending }
        if self.state.isIdle { return .request }
        if self.state.isReceivingHead { return .head }
        // A client that waits for leave, or for a session to take what it has sent, owes nothing.
        if self.state.awaitsContent, let upload = self.upload, !upload.isPaused,
            !upload.clientWaits, self.state.reading == .content || self.discardsMore
        {
            return .content
        }
        return .nothing
    }

    private func setDeadline(_ deadline: NIODeadline) {
        self.timer.deadline = deadline
        if let armed = self.timer.armedFor, armed <= deadline { return }
        self.arm(deadline)
    }

    private func arm(_ deadline: NIODeadline) {
        guard let context = self.context else { return }
        self.timer.callback?.cancel()
        self.timer.armedFor = deadline
        // It throws where the loop is shutting down; then no timer is needed.
        self.timer.callback = try? context.eventLoop.assumeIsolated().scheduleCallback(
            at: deadline, handler: TimerHandler(connection: self))
    }

    func cancelTimer() {
        let callback = self.timer.callback
        self.timer.callback = nil
        self.timer.armedFor = nil
        self.timer.deadline = nil
        callback?.cancel()
    }

    func timerFired() {
        self.timer.armedFor = nil
        self.timer.callback = nil
        guard self.context != nil, self.tunnel == nil, let deadline = self.timer.deadline else {
            return
        }
        guard deadline <= .now() else {
            self.arm(deadline)
            return
        }
        self.giveWay()
    }

    /// Ends what is waited for, as its time is up.
    func giveWay() {
        self.expired()
        self.settle()
    }

    private func expired() {
        self.timer.deadline = nil
        switch self.timer.wait {
        // Writability changes at two marks only: between them a slow client still makes progress, and
        // what it took may have been filled up again at once.
        case .sending where self.takenBytes > self.timer.taken || self.kernelSendsOn:
            self.timer.hasProgressed = true
        case .sending:
            self.cutAtOnce("the client takes nothing of its answer")
        // A client that pauses in its upload keeps the answer that it takes meanwhile. The upload alone
        // cannot be ended: whoever sends it on would break off the whole exchange.
        case .content where self.writtenBytes > self.timer.written:
            self.timer.hasProgressed = true
        case .nothing, .request, .head, .content, .lingering, .lastLingering:
            self.apply(self.state.deadlinePassed())
        }
    }

    /// An answer that is being sent, as far as it was written; nothing before its head.
    private var writtenBytes: UInt64 {
        guard let exchange = self.exchange else { return 0 }
        return exchange.headBytes &+ exchange.bodyBytes
    }

    /// How much of an answer the socket has taken: what tells one moment from another, not what to rely
    /// on, as what frames it counts only as long as it waits.
    private var takenBytes: Int64 {
        Int64(clamping: self.writtenBytes) - Int64(self.unsentBytes)
    }

    /// Whether the kernel has sent the client anything in the time that it had.
    ///
    /// Some megabytes may lie in the socket, of which a third must be gone before it takes more: a client
    /// that reads slowly needs minutes for that. One that does not read at all lets no data through, and
    /// to one that is gone it is sent again and again.
    private var kernelSendsOn: Bool {
        guard let context = self.context, let socket = Self.socket(of: context),
            let time = self.shared.waits.time(for: .sending)
        else { return false }
        var info = tcp_info()
        var size = socklen_t(MemoryLayout<tcp_info>.size)
        guard unsafe getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0 else {
            return false
        }
        return info.tcpi_retransmits == 0
            && Int64(info.tcpi_last_data_sent) * 1_000_000 < time.nanoseconds
    }

    /// Bytes that were written and that the socket has not taken yet.
    var unsentBytes: Int {
        let options = self.context?.channel.syncOptions
        return (try? options?.getOption(.bufferedWritableBytes)) ?? 0
    }
}

extension Duration {
    /// Whole nanoseconds, as a wait: not negative, and at most a year, so that it can be added to
    /// any moment of the clock.
    var inNanoseconds: Int64 {
        min(max(self.inMicroseconds, 0), 31_536_000_000_000) * 1_000
    }
}
