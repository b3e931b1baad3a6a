import Dispatch
import LarderHTTP

/// How long each operation of a stream task may take.
///
/// Confined to the queue on which it tells; unchecked for that reason.
final class OperationTimers: @unchecked Sendable {
    private let queue: DispatchQueue
    private var timers: [Int: any DispatchSourceTimer] = [:]

    init(on queue: DispatchQueue) {
        self.queue = queue
    }

    /// - Parameter expired: called once on the queue, unless the operation's timer is cancelled before.
    func limit(_ number: Int, to timeout: Duration, expired: @escaping @Sendable () -> Void) {
        let timer = DispatchSource.makeTimerSource(queue: self.queue)
        timer.schedule(deadline: .now() + .microseconds(Int(clamping: timeout.inMicroseconds)))
        timer.setEventHandler { [weak self] in
            self?.cancel(number)
            expired()
        }
        timer.activate()
        self.timers[number] = timer
    }

    func cancel(_ number: Int) {
        self.timers.removeValue(forKey: number)?.cancel()
    }

    func cancelAll() {
        for timer in self.timers.values { timer.cancel() }
        self.timers = [:]
    }
}
