import LarderHTTP

/// What a transfer waits for, each with a time of its own.
enum Wait: Int, CaseIterable {
    case connection, name, handshake, leave, head, sending, receiving

    func limit(_ configuration: TransferConfiguration) -> Duration {
        switch self {
        case .connection: configuration.queueTimeout
        case .name: configuration.resolveTimeout
        case .handshake: configuration.connectTimeout
        case .leave: configuration.continueTimeout
        case .head: configuration.responseTimeout
        case .sending, .receiving: configuration.stallTimeout
        }
    }

    /// What it means when that time has passed.
    ///
    /// Nil where nothing is wrong: the content is then sent without the origin's leave.
    var failure: UpstreamFailure? {
        switch self {
        case .leave: nil
        case .connection:
            UpstreamFailure(
                .connectionLimitReached, party: .larder, detail: "no connection became free in time"
            )
        case .name: UpstreamFailure(.dnsTimeout, detail: "the name was not resolved in time")
        case .handshake:
            UpstreamFailure(.connectionTimeout, detail: "the connection did not stand in time")
        case .head:
            UpstreamFailure(.httpResponseTimeout, detail: "no response began in time")
        case .sending:
            UpstreamFailure(
                .connectionWriteTimeout, detail: "the origin stopped taking the request's content")
        case .receiving:
            UpstreamFailure(
                .connectionReadTimeout, detail: "the origin stopped in the middle of the response")
        }
    }
}

/// The times at which transfers have waited too long.
///
/// All that wait for the same thing wait equally long, so each kind of wait is a list in the order
/// in which it began: to begin a wait, to begin it anew and to end it are a few pointers, and the
/// first of each list is the next to expire. libcurl's own timeouts know neither kinds below a
/// second nor who paused a transfer.
struct Deadlines {
    private var first: [Transfer?]
    private var last: [Transfer?]
    private let limits: [Duration]

    init(_ configuration: TransferConfiguration) {
        self.first = Wait.allCases.map { _ in nil }
        self.last = self.first
        self.limits = Wait.allCases.map { $0.limit(configuration) }
    }

    /// The moment at which the next transfer has waited too long.
    var next: MonotonicTime? {
        var soonest: MonotonicTime?
        for (transfer, limit) in zip(self.first, self.limits) {
            guard let transfer else { continue }
            let moment = transfer.waitBegan + limit
            soonest = soonest.map { Swift.min($0, moment) } ?? moment
        }
        return soonest
    }

    /// Takes out a transfer that has waited too long, and says for what.
    mutating func takeExpired(_ now: MonotonicTime) -> (Transfer, Wait)? {
        for wait in Wait.allCases {
            guard let transfer = self.first[wait.rawValue],
                transfer.waitBegan + self.limits[wait.rawValue] <= now
            else { continue }
            self.leave(transfer)
            return (transfer, wait)
        }
        return nil
    }

    /// Has a transfer wait for something from `now` on, and for nothing else.
    mutating func enter(_ transfer: Transfer, _ wait: Wait, _ now: MonotonicTime) {
        self.leave(transfer)
        transfer.wait = wait
        transfer.waitBegan = now
        transfer.previousWaiting = self.last[wait.rawValue]
        if let last = self.last[wait.rawValue] {
            last.nextWaiting = transfer
        } else {
            self.first[wait.rawValue] = transfer
        }
        self.last[wait.rawValue] = transfer
    }

    mutating func leave(_ transfer: Transfer) {
        guard let wait = transfer.wait else { return }
        transfer.wait = nil
        if let previous = transfer.previousWaiting {
            previous.nextWaiting = transfer.nextWaiting
        } else {
            self.first[wait.rawValue] = transfer.nextWaiting
        }
        if let next = transfer.nextWaiting {
            next.previousWaiting = transfer.previousWaiting
        } else {
            self.last[wait.rawValue] = transfer.previousWaiting
        }
        transfer.previousWaiting = nil
        transfer.nextWaiting = nil
    }
}
