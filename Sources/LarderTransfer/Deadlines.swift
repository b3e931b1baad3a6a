import LarderHTTP

/// What a transfer waits for, each with a time of its own.
enum Wait: Int, CaseIterable {
    case connection, name, handshake, tunnel, leave, head, sending, receiving
    /// A moment in which an answer may have ended that came before all content was sent.
    case content
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
        case .content: .milliseconds(100)
        case .head: configuration.idleTimeout ?? configuration.responseTimeout
        case .sending, .receiving: configuration.idleTimeout ?? configuration.stallTimeout
        case .resource: configuration.resourceTimeout
        }
    }

    /// What it means when that time has passed.
    ///
    /// Nil where nothing is wrong: content is then sent without the origin's leave, or asked for again.
    func failure(_ configuration: TransferConfiguration) -> UpstreamFailure? {
        var failure = self.failure
        failure?.limit = self.namedLimit(configuration)
        return failure
    }

    /// The bound behind `limit(_:)`.
    private func namedLimit(_ configuration: TransferConfiguration) -> UpstreamFailure.Limit? {
        switch self {
        case .name: .resolve
        case .handshake: .connect
        case .tunnel: .response
        case .head: configuration.idleTimeout == nil ? .response : .idle
        case .sending, .receiving: configuration.idleTimeout == nil ? .stall : .idle
        case .connection, .leave, .content, .resource: nil
        }
    }

    private var failure: UpstreamFailure? {
        switch self {
        case .leave, .content: nil
        case .connection:
            UpstreamFailure(
                .connectionLimitReached, party: .larder, cause: .connectionLimit,
                detail: "no connection became free in time")
        case .name:
            UpstreamFailure(
                .dnsTimeout, cause: .idleTimeout, detail: "the name was not resolved in time")
        case .handshake:
            UpstreamFailure(
                .connectionTimeout, cause: .idleTimeout,
                detail: "the connection did not stand in time")
        case .tunnel:
            UpstreamFailure(
                .connectionTimeout, cause: .idleTimeout,
                detail: "the parent laid no tunnel in time")
        case .head:
            UpstreamFailure(
                .httpResponseTimeout, cause: .idleTimeout, detail: "no response began in time")
        case .sending:
            UpstreamFailure(
                .connectionWriteTimeout, cause: .idleTimeout,
                detail: "the origin stopped taking the request's content")
        case .receiving:
            UpstreamFailure(
                .connectionReadTimeout, cause: .idleTimeout,
                detail: "the origin stopped in the middle of the response")
        case .resource:
            // RFC 9209 §2.3.24: "waiting for the complete response".
            UpstreamFailure(
                .httpResponseTimeout, cause: .resourceTimeout,
                detail: "the response was not whole in time")
        }
    }
}

/// A transfer's place in the timetable of `Deadlines`.
///
/// Not `Sendable`: belongs to the loop of its transfer.
final class WaitEntry: Timed {
    /// The fetch's.
    let id: UInt64
    /// What the request says itself of how long it waits, in nanoseconds.
    private let idle: UInt64?
    private let resource: UInt64?
    fileprivate(set) var wait: Wait?
    var moment = MonotonicTime(nanoseconds: 0)
    var place: Int?

    init(id: UInt64, idle: Duration? = nil, resource: Duration? = nil) {
        self.id = id
        self.idle = idle.map(\.inNanoseconds)
        self.resource = resource.map(\.inNanoseconds)
    }

    fileprivate func ownLimit(_ wait: Wait) -> UInt64? {
        switch wait {
        case .name, .handshake, .tunnel, .head, .sending, .receiving: self.idle
        case .resource: self.resource
        case .connection, .leave, .content: nil
        }
    }
}

/// The times at which transfers have waited too long.
///
/// To begin a wait, to begin it anew and to end it are a few steps in a heap. libcurl's own timeouts
/// know neither kinds below a second nor who paused a transfer.
///
/// Not `Sendable`: belongs to one loop.
final class Deadlines {
    private let timetable = Timetable<WaitEntry>()
    /// In nanoseconds.
    private let limits: [UInt64?]

    init(_ configuration: TransferConfiguration) {
        self.limits = Wait.allCases.map { $0.limit(configuration)?.inNanoseconds }
    }

    /// The moment at which the next transfer has waited too long.
    var next: MonotonicTime? { self.timetable.first?.moment }

    /// Takes out what has waited too long, and says for what.
    func takeExpired(_ now: MonotonicTime) -> (id: UInt64, wait: Wait)? {
        guard let entry = self.timetable.first, entry.moment <= now, let wait = entry.wait else {
            return nil
        }
        self.leave(entry)
        return (entry.id, wait)
    }

    /// Has a transfer wait for something from `now` on, and for nothing else in this place.
    ///
    /// What has no limit is not waited for.
    func enter(_ entry: WaitEntry, _ wait: Wait, _ now: MonotonicTime) {
        guard let limit = entry.ownLimit(wait) ?? self.limits[wait.rawValue] else {
            return self.leave(entry)
        }
        entry.wait = wait
        self.timetable.enter(entry, at: now.adding(limit))
    }

    func leave(_ entry: WaitEntry) {
        guard entry.wait != nil else { return }
        entry.wait = nil
        self.timetable.leave(entry)
    }
}
