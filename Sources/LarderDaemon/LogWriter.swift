import NIOPosix
import Synchronization

/// Writes log lines off the event loops: a bounded queue and one thread.
///
/// ```
/// event loops ──record──▶ queue (bounded; full: dropped and counted) ──▶ one thread ──▶ sink
/// ```
///
/// The thread sleeps until lines are there and takes all of them at once. A sink that is slow or
/// broken costs lines, never a client's time.
package final class LogWriter: Sendable {
    /// What the writer has to tell, on its own thread.
    package enum Notice: Sendable, Equatable {
        /// Lines were lost because the queue was full; told once they fit again.
        case lost(UInt64)
        /// The sink failed with this `errno`; told once until it works again.
        case failed(CInt)
        case reopenFailed(CInt)
    }

    private enum Job {
        case line([UInt8])
        case reopen
        case replace(SinkBox)
        case flushed(@Sendable () -> Void)
    }

    private struct Queue {
        var jobs: [Job] = []
        var bytes = 0
        /// A drain is on its way or at work: it takes what is added meanwhile.
        var isScheduled = false
        var lost: UInt64 = 0
        var lostInAll: UInt64 = 0
    }

    /// Holds the sink that is written to.
    ///
    /// Unchecked: only `drain` touches it, and there is one at a time (`Queue.isScheduled`), on a
    /// pool of one thread.
    private final class SinkBox: @unchecked Sendable {
        var sink: any LogSink
        var isFailing = false

        init(_ sink: sending any LogSink) {
            self.sink = sink
        }
    }

    private let queue = Mutex(Queue())
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let capacity: Int
    private let box: SinkBox
    private let notice: @Sendable (Notice) -> Void

    /// - Parameters:
    ///   - sink: used by the writer's thread alone from now on.
    ///   - capacity: bytes that may wait.
    ///   - notice: hears what went wrong; must not block.
    package init(
        sink: sending any LogSink, capacity: Int = 4 << 20,
        notice: @escaping @Sendable (Notice) -> Void
    ) {
        self.box = SinkBox(sink)
        self.capacity = capacity
        self.notice = notice
        self.thread.start()
    }

    /// Lines lost since the start.
    package var lost: UInt64 { self.queue.withLock { $0.lostInAll } }

    /// Takes a line, its line feed included.
    ///
    /// Returns at once; any thread.
    package func record(_ line: [UInt8]) {
        self.add { queue in
            guard queue.bytes + line.count <= self.capacity else {
                queue.lost += 1
                queue.lostInAll += 1
                return
            }
            queue.bytes += line.count
            queue.jobs.append(.line(line))
        }
    }

    /// Opens the sink's file anew, after the lines that were recorded before.
    package func reopen() { self.add { $0.jobs.append(.reopen) } }

    /// Writes to another sink from the next line on.
    package func replace(sink: sending any LogSink) {
        let box = SinkBox(sink)
        self.add { $0.jobs.append(.replace(box)) }
    }

    /// Calls `completion`, on the writer's thread, once all lines recorded before are written.
    package func flush(_ completion: @escaping @Sendable () -> Void) {
        self.add { $0.jobs.append(.flushed(completion)) }
    }

    /// Writes what is there and ends the thread.
    ///
    /// Nothing may be recorded after it.
    package func close() async {
        await withCheckedContinuation { done in self.flush { done.resume() } }
        // Fails only when it was closed before.
        try? await self.thread.shutdownGracefully()
    }

    private func add(_ change: (inout Queue) -> Void) {
        let mustSchedule = self.queue.withLock { queue in
            change(&queue)
            guard !queue.isScheduled, !queue.jobs.isEmpty else { return false }
            queue.isScheduled = true
            return true
        }
        guard mustSchedule else { return }
        self.thread.submit { state in
            // Cancelled when the thread has ended: nobody is left who could write.
            if case .active = state { self.drain() }
        }
    }

    private func drain() {
        while let (jobs, lost) = self.take() {
            var lines: [[UInt8]] = []
            for job in jobs {
                if case .line(let line) = job {
                    lines.append(line)
                    continue
                }
                self.write(&lines)
                self.perform(job)
            }
            self.write(&lines)
            if lost > 0 { self.notice(.lost(lost)) }
        }
    }

    /// What is in the queue; nil when it is empty, and then this drain is over.
    private func take() -> (jobs: [Job], lost: UInt64)? {
        self.queue.withLock { queue in
            guard !queue.jobs.isEmpty else {
                queue.isScheduled = false
                return nil
            }
            defer {
                queue.jobs.removeAll()
                queue.bytes = 0
                queue.lost = 0
            }
            return (queue.jobs, queue.lost)
        }
    }

    private func perform(_ job: Job) {
        switch job {
        case .line: break
        case .reopen:
            let code = self.box.sink.reopen()
            if code != 0 { self.notice(.reopenFailed(code)) }
        case .replace(let fresh):
            self.box.sink = fresh.sink
            self.box.isFailing = false
        case .flushed(let completion): completion()
        }
    }

    private func write(_ lines: inout [[UInt8]]) {
        guard !lines.isEmpty else { return }
        let code = self.box.sink.write(lines)
        if code != 0 {
            let count = UInt64(lines.count)
            self.queue.withLock { $0.lostInAll += count }
            if !self.box.isFailing { self.notice(.failed(code)) }
        }
        self.box.isFailing = code != 0
        lines.removeAll(keepingCapacity: true)
    }
}
