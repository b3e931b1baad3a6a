import Dispatch
import LarderHTTP

/// How long each operation of a stream task may take.
///
/// No time runs before the task has begun, as there is nobody to be told of its end. Confined to the
/// queue on which it tells; unchecked for that reason.
final class OperationTimers: @unchecked Sendable {
    private struct Limit: Sendable {
        let patience: @Sendable () -> Duration?
        let expired: @Sendable () -> Void
        var time: Duration
    }

    private let queue: DispatchQueue
    private var timers: [Int: any DispatchSourceTimer] = [:]
    /// What was asked before the task began; nil: it has.
    private var early: [Int: Limit]? = [:]

    init(on queue: DispatchQueue) {
        self.queue = queue
    }

    /// The task has begun.
    func begin() {
        for (number, limit) in self.early.take() ?? [:] { self.start(limit, of: number) }
    }

    /// - Parameters:
    ///   - patience: how much longer it may take, asked when its time is up; nil: no longer.
    ///   - expired: called once on the queue, unless the operation's timer is cancelled before.
    func limit(
        _ number: Int, to timeout: Duration, patience: @escaping @Sendable () -> Duration?,
        expired: @escaping @Sendable () -> Void
    ) {
        let limit = Limit(patience: patience, expired: expired, time: timeout)
        guard self.early == nil else {
            self.early?[number] = limit
            return
        }
        self.start(limit, of: number)
    }

    private func start(_ limit: Limit, of number: Int) {
        let timer = DispatchSource.makeTimerSource(queue: self.queue)
        timer.schedule(deadline: .now() + .microseconds(Int(clamping: limit.time.inMicroseconds)))
        timer.setEventHandler { [weak self] in
            self?.cancel(number)
            guard let self, let more = limit.patience() else { return limit.expired() }
            var rest = limit
            rest.time = more
            self.start(rest, of: number)
        }
        timer.activate()
        self.timers[number] = timer
    }

    func cancel(_ number: Int) {
        self.early?[number] = nil
        self.timers.removeValue(forKey: number)?.cancel()
    }

    func cancelAll() {
        for timer in self.timers.values { timer.cancel() }
        self.timers = [:]
        self.early = nil
    }
}
