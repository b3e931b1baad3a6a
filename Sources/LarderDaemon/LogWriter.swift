import LarderHTTP
import NIOCore
import NIOPosix
import Synchronization

/// Writes log lines off the event loops that serve clients: a bounded queue and one thread.
///
/// ```
/// event loops ──record──▶ queue (bounded; full: dropped and counted) ──▶ one thread ──▶ sink
/// ```
///
/// The thread sleeps until lines are there and writes all of them at once. After that it lets lines
/// gather for `gathering`, or until there are `batch` bytes of them: a line that comes after a rest is
/// written at once, and under load a wake-up and a call of the system serve hundreds. A sink that is
/// slow or broken costs lines, never a client's time.
package final class LogWriter: Sendable {
    /// What the writer has to tell, on its own thread, or on the one that records.
    package enum Notice: Sendable, Equatable {
        /// The queue is full, and lines are being lost; told when that begins.
        case losing
        /// Lines were lost because the queue was full, or the sink failed; told once they fit, or it works,
        /// again.
        case lost(UInt64)
        /// The sink failed with this `errno`; told once until it works again.
        case failed(CInt)
        case reopenFailed(CInt)
    }

    private enum Control: Sendable {
        case reopen
        case flushed(@Sendable () -> Void)
    }

    /// Whether the thread looks into the queue without being called.
    private enum Look { case never, later, soon }

    private struct Queue {
        /// Whole lines, one behind the other.
        var lines: [UInt8] = []
        /// What to do when so many of the bytes are written.
        var controls: [(offset: Int, control: Control)] = []
        var look = Look.never
        var lost: UInt64 = 0
        var lostInAll: UInt64 = 0
        /// It was told, and lines did not fit for a while since.
        var isLosing = false
        var isClosed = false

        /// - Returns: whether the thread has to be called for what was added.
        mutating func mustCall(isUrgent: Bool) -> Bool {
            switch self.look {
            case .soon: return false
            case .later where !isUrgent && self.lines.count < LogWriter.batch: return false
            case .never, .later:
                self.look = .soon
                return true
            }
        }
    }

    private struct Batch {
        var lines: [UInt8] = []
        var controls: [(offset: Int, control: Control)] = []
        var lost: UInt64 = 0
    }

    /// The sink that is written to, and what the thread needs beside it.
    ///
    /// Unchecked: touched on the writer's thread only, once it is made.
    private final class Desk: @unchecked Sendable {
        let sink: any LogSink
        var isFailing = false
        /// Lines lost since it fails.
        var lost: UInt64 = 0
        /// The thread will look into the queue when a time has passed.
        var hasTimer = false
        /// Empty, with room for the next lines.
        var spare: [UInt8] = []

        init(_ sink: sending any LogSink) {
            self.sink = sink
        }
    }

    private static let batch = 64 << 10

    private let queue = Mutex(Queue())
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let thread: any EventLoop
    private let capacity: Int
    private let gathering: TimeAmount
    private let desk: Desk
    private let notice: @Sendable (Notice) -> Void

    /// - Parameters:
    ///   - sink: used by the writer's thread alone from now on.
    ///   - capacity: bytes that may wait.
    ///   - gathering: how long lines wait for others after a write.
    ///   - notice: hears what went wrong; must not block.
    package init(
        sink: sending any LogSink, capacity: Int = 4 << 20,
        gathering: Duration = .milliseconds(50),
        notice: @escaping @Sendable (Notice) -> Void
    ) {
        self.desk = Desk(sink)
        self.capacity = capacity
        self.gathering = .microseconds(gathering.inMicroseconds)
        self.notice = notice
        self.thread = self.group.next()
    }

    /// Lines lost since the start.
    package var lost: UInt64 { self.queue.withLock { $0.lostInAll } }

    /// Takes a line, its line feed included.
    ///
    /// Returns at once; any thread.
    ///
    /// - Returns: false once it is closed: the line is not taken then. One that does not fit counts as
    ///   lost.
    @discardableResult
    package func record(_ line: [UInt8]) -> Bool {
        let (isTaken, mustCall, beginsToLose) = self.queue.withLock { queue in
            guard !queue.isClosed else { return (false, false, false) }
            guard queue.lines.count + line.count <= self.capacity else {
                defer { queue.isLosing = true }
                queue.lost += 1
                queue.lostInAll += 1
                return (true, false, !queue.isLosing)
            }
            queue.lines += line
            return (true, queue.mustCall(isUrgent: false), false)
        }
        if mustCall { self.call() }
        // The sink may take nothing for hours: whoever reads the log is to know before.
        if beginsToLose { self.notice(.losing) }
        return isTaken
    }

    /// Opens the sink's file anew, after the lines that were recorded before.
    package func reopen() { self.add(.reopen) }

    /// Calls `completion`, on the writer's thread, once all lines recorded before are written.
    package func flush(_ completion: @escaping @Sendable () -> Void) {
        self.add(.flushed(completion))
    }

    /// Writes what is there and ends the thread.
    ///
    /// Nothing is taken after it.
    ///
    /// - Parameter limit: how long a sink may take that takes nothing, such as a pipe that nobody
    ///   reads; the thread then ends whenever that does.
    /// - Returns: whether everything is written.
    @discardableResult
    package func close(within limit: Duration = .seconds(3_600)) async -> Bool {
        let closing = Task {
            await withCheckedContinuation { done in
                self.add(.flushed { done.resume() }, isLast: true)
            }
            // Fails only when it was closed before.
            try? await self.group.shutdownGracefully()
        }
        return await BoundedWait.ended(closing, within: limit)
    }

    private func add(_ control: Control, isLast: Bool = false) {
        let mustCall = self.queue.withLock { queue in
            queue.isClosed = queue.isClosed || isLast
            queue.controls.append((queue.lines.count, control))
            return queue.mustCall(isUrgent: true)
        }
        if mustCall { self.call() }
    }

    private func call() { self.thread.execute { self.work() } }
}

/// On the writer's thread.
extension LogWriter {
    private func work() {
        repeat { self.write(self.take()) } while !self.mayRest()
        guard !self.desk.hasTimer else { return }
        self.desk.hasTimer = true
        self.thread.scheduleTask(in: self.gathering) { self.timePassed() }
    }

    private func timePassed() {
        self.desk.hasTimer = false
        let isWanted = self.queue.withLock { queue in
            // Else it was called, and is about to look anyway.
            guard queue.look == .later else { return false }
            queue.look = queue.lines.isEmpty ? .never : .soon
            return queue.look == .soon
        }
        if isWanted { self.work() }
    }

    private func take() -> Batch {
        let spare = self.desk.spare
        self.desk.spare = []
        return self.queue.withLock { queue in
            let batch = Batch(lines: queue.lines, controls: queue.controls, lost: queue.lost)
            queue.lines = spare
            queue.controls = []
            queue.isLosing = queue.lost > 0
            queue.lost = 0
            return batch
        }
    }

    /// Whether what came meanwhile is little enough to wait.
    private func mayRest() -> Bool {
        self.queue.withLock { queue in
            guard queue.controls.isEmpty, queue.lines.count < Self.batch else { return false }
            queue.look = .later
            return true
        }
    }

    private func write(_ batch: consuming Batch) {
        var written = 0
        for (offset, control) in batch.controls {
            self.write(batch.lines.span.extracting(written..<offset))
            written = offset
            self.perform(control)
        }
        self.write(batch.lines.span.extracting(written..<batch.lines.count))
        if batch.lost > 0 { self.notice(.lost(batch.lost)) }
        // After a flood its memory is given back.
        guard batch.lines.capacity <= 4 * Self.batch else { return }
        batch.lines.removeAll(keepingCapacity: true)
        self.desk.spare = batch.lines
    }

    private func perform(_ control: Control) {
        switch control {
        case .reopen:
            let code = self.desk.sink.reopen()
            if code != 0 { self.notice(.reopenFailed(code)) }
        case .flushed(let completion): completion()
        }
    }

    private func write(_ lines: Span<UInt8>) {
        guard !lines.isEmpty else { return }
        let failure = self.desk.sink.write(lines)
        let wasFailing = self.desk.isFailing
        self.desk.isFailing = failure != nil
        guard let failure else {
            if self.desk.lost > 0 { self.notice(.lost(self.desk.lost)) }
            self.desk.lost = 0
            return
        }
        self.queue.withLock { $0.lostInAll += failure.lost }
        self.desk.lost += failure.lost
        if !wasFailing { self.notice(.failed(failure.code)) }
    }
}
