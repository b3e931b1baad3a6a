import LarderHTTP

/// What a transfer waits for, each with a time of its own.
enum Wait: Int, CaseIterable {
    case connection, name, handshake, tunnel, leave, head, sending, receiving
    /// The end of it all, beside whatever else it waits for.
    case resource

    /// Nil where the wait has no limit.
    func limit(_ configuration: TransferConfiguration) -> Duration? {
        switch self {
        case .connection: configuration.queueTimeout
        case .name: configuration.resolveTimeout
        case .handshake: configuration.connectTimeout
        case .tunnel: configuration.tunnelTimeout
        case .leave: configuration.continueTimeout
        case .head: configuration.idleTimeout ?? configuration.responseTimeout
        case .sending, .receiving: configuration.idleTimeout ?? configuration.stallTimeout
        case .resource: configuration.resourceTimeout
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
        case .handshake, .tunnel:
            UpstreamFailure(.connectionTimeout, detail: "the connection did not stand in time")
        case .head:
            UpstreamFailure(.httpResponseTimeout, detail: "no response began in time")
        case .sending:
            UpstreamFailure(
                .connectionWriteTimeout, detail: "the origin stopped taking the request's content")
        case .receiving:
            UpstreamFailure(
                .connectionReadTimeout, detail: "the origin stopped in the middle of the response")
        case .resource:
            // RFC 9209 §2.3.24: "waiting for the complete response".
            UpstreamFailure(.httpResponseTimeout, detail: "the response was not whole in time")
        }
    }
}

/// A transfer's place in one of the lists of `Deadlines`.
///
/// Not `Sendable`: belongs to the loop of its transfer.
final class WaitEntry {
    /// The fetch's.
    let id: UInt64
    fileprivate(set) var wait: Wait?
    fileprivate var began = MonotonicTime(nanoseconds: 0)
    fileprivate var next: WaitEntry?
    fileprivate var previous: WaitEntry?

    init(id: UInt64) {
        self.id = id
    }
}

/// The times at which transfers have waited too long.
///
/// All that wait for the same thing wait equally long, so each kind of wait is a list in the order
/// in which it began: to begin a wait, to begin it anew and to end it are a few pointers, and the
/// first of each list is the next to expire. libcurl's own timeouts know neither kinds below a
/// second nor who paused a transfer.
struct Deadlines {
    private var first: [WaitEntry?]
    private var last: [WaitEntry?]
    private let limits: [Duration?]

    init(_ configuration: TransferConfiguration) {
        self.first = Wait.allCases.map { _ in nil }
        self.last = self.first
        self.limits = Wait.allCases.map { $0.limit(configuration) }
    }

    /// The moment at which the next transfer has waited too long.
    var next: MonotonicTime? {
        var soonest: MonotonicTime?
        for (entry, limit) in zip(self.first, self.limits) {
            guard let entry, let limit else { continue }
            let moment = entry.began + limit
            soonest = soonest.map { Swift.min($0, moment) } ?? moment
        }
        return soonest
    }

    /// Takes out what has waited too long, and says for what.
    mutating func takeExpired(_ now: MonotonicTime) -> (id: UInt64, wait: Wait)? {
        for wait in Wait.allCases {
            guard let entry = self.first[wait.rawValue], let limit = self.limits[wait.rawValue],
                entry.began + limit <= now
            else { continue }
            self.leave(entry)
            return (entry.id, wait)
        }
        return nil
    }

    /// Has a transfer wait for something from `now` on, and for nothing else in this place.
    ///
    /// What has no limit is not waited for. Cheap where nothing here began after `now`.
    mutating func enter(_ entry: WaitEntry, _ wait: Wait, _ now: MonotonicTime) {
        self.leave(entry)
        guard self.limits[wait.rawValue] != nil else { return }
        entry.wait = wait
        entry.began = now
        // Only a request that others led to began before those that are here.
        var previous = self.last[wait.rawValue]
        while let later = previous, later.began > now { previous = later.previous }
        entry.previous = previous
        entry.next = previous.map { $0.next } ?? self.first[wait.rawValue]
        if let next = entry.next {
            next.previous = entry
        } else {
            self.last[wait.rawValue] = entry
        }
        if let previous {
            previous.next = entry
        } else {
            self.first[wait.rawValue] = entry
        }
    }

    mutating func leave(_ entry: WaitEntry) {
        guard let wait = entry.wait else { return }
        entry.wait = nil
        if let previous = entry.previous {
            previous.next = entry.next
        } else {
            self.first[wait.rawValue] = entry.next
        }
        if let next = entry.next {
            next.previous = entry.previous
        } else {
            self.last[wait.rawValue] = entry.previous
        }
        entry.previous = nil
        entry.next = nil
    }
}
