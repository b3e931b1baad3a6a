import Dispatch
import Glibc
import LarderHTTP
import LarderSession

/// The engine's, which lies in a module that needs more than a request does.
struct SystemClock: WallClock {
    func now() -> Timestamp {
        var time = timespec()
        guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else {
            return Timestamp(seconds: 0)
        }
        return Timestamp(
            microseconds: Int64(time.tv_sec) &* 1_000_000 &+ Int64(time.tv_nsec) / 1000)
    }
}

struct DispatchTimers: Timers {
    private let queue = DispatchQueue(label: "request-counts.timers")

    func schedule(
        after delay: Duration, _ work: @escaping @Sendable () -> Void
    ) -> any TimerToken {
        let item = DispatchWorkItem(block: work)
        let microseconds = Int(clamping: max(0, delay.inMicroseconds))
        self.queue.asyncAfter(deadline: .now() + .microseconds(microseconds), execute: item)
        return Token(item: item)
    }

    /// `DispatchWorkItem` is documented to be safe to cancel from any thread, but is not marked so.
    private struct Token: TimerToken, @unchecked Sendable {
        let item: DispatchWorkItem

        func cancel() { self.item.cancel() }
    }
}
