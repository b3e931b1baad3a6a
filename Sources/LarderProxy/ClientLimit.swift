import NIOCore
import Synchronization

/// How many connections each client has, and whether it may have one more.
struct ClientCounts {
    enum Verdict: Equatable {
        case admitted
        /// - Parameters:
        ///   - count: how often anybody was refused so far.
        ///   - isNews: whether that was not said for an hour.
        case refused(count: UInt64, isNews: Bool)
    }

    /// nil: as many as it likes.
    ///
    /// Lowered, it leaves open what is.
    var maximum: Int?
    private var open: [ClientSource: Int] = [:]
    private var refusals = AcceptTrouble()

    /// How often a connection was refused.
    var refused: UInt64 { self.refusals.count }
    var isEmpty: Bool { self.open.isEmpty }

    init(maximum: Int?) {
        self.maximum = maximum
    }

    /// Whether there was a place, which is taken then until `leave`.
    mutating func enter(_ client: ClientSource, at now: NIODeadline) -> Verdict {
        let count = self.open[client, default: 0]
        if let maximum = self.maximum, count >= maximum {
            let isNews = self.refusals.failed(at: now)
            return .refused(count: self.refusals.count, isNews: isNews)
        }
        self.open[client] = count + 1
        return .admitted
    }

    mutating func leave(_ client: ClientSource) {
        guard let count = self.open[client] else { return }
        self.open[client] = count > 1 ? count - 1 : nil
    }
}

/// The counts of all listeners.
///
/// They are kept without a limit, too: one that comes by a reload is about what is open already.
final class ClientLimit: Sendable {
    private let counts: Mutex<ClientCounts>

    init(maximum: Int?) {
        self.counts = Mutex(ClientCounts(maximum: maximum))
    }

    var refused: UInt64 { self.counts.withLock { $0.refused } }

    func follow(maximum: Int?) {
        self.counts.withLock { $0.maximum = maximum }
    }

    func enter(_ client: ClientSource) -> ClientCounts.Verdict {
        self.counts.withLock { $0.enter(client, at: .now()) }
    }

    func leave(_ client: ClientSource) {
        self.counts.withLock { $0.leave(client) }
    }
}
