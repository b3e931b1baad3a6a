import Dispatch
import Glibc
package import LarderHTTP
package import LarderSession

/// The machine's own time of day (`clock_gettime(2)`, `CLOCK_REALTIME`).
package struct SystemClock: WallClock {
    package init() {}

    package func now() -> Timestamp {
        var time = timespec()
        // It fails only for a bad clock or a bad pointer, of which there is neither here.
        guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else {
            return Timestamp(seconds: 0)
        }
        return Timestamp(
            microseconds: Int64(time.tv_sec) &* 1_000_000 &+ Int64(time.tv_nsec) / 1000)
    }
}

/// Timers on one of Dispatch's queues, for what happens seldom.
package struct DispatchTimers: Timers {
    private let queue: DispatchQueue

    package init(label: String = "larder.timers") {
        self.queue = DispatchQueue(label: label)
    }

    package func schedule(
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

        func cancel() {
            self.item.cancel()
        }
    }
}
