import LarderConfig
import Logging
import Synchronization

/// The daemon's own log: to standard error, where the journal and people read it.
///
/// A thread of its own writes it. Standard error may be a pipe that nobody reads for a while, or a terminal
/// that was stopped: who has something to say does not wait for that.
final class DaemonLog: Sendable {
    /// The least severe level that is logged, changeable while the proxy runs.
    final class Level: Sendable {
        private let level: Mutex<Logger.Level>

        init(_ level: LogSettings.Level) {
            self.level = Mutex(level.level)
        }

        func set(_ level: LogSettings.Level) {
            self.level.withLock { $0 = level.level }
        }

        fileprivate var current: Logger.Level { self.level.withLock { $0 } }
    }

    /// How many bytes may wait for standard error; what does not fit is lost, and counted.
    private static let capacity = 256 << 10
    /// How long its end waits for a standard error that takes nothing.
    private static let closingTime = Duration.seconds(1)

    let logger: Logger
    private let writer: LogWriter
    private let lost = LostMessages()

    /// - Parameter sink: used by the log's thread alone from now on.
    init(
        _ level: Level, to sink: sending any LogSink = DescriptorSink.standardError(),
        capacity: Int = DaemonLog.capacity
    ) {
        let lost = self.lost
        let writer = LogWriter(sink: sink, capacity: capacity) { notice in
            // What cannot be written can be told when it can.
            if case .lost(let lines) = notice { lost.tell(lines) }
        }
        self.writer = writer
        self.logger = Logger(label: "larder") { label in
            let stream = StreamLogHandler(label: label, stream: Lines(writer: writer))
            return Handler(shared: level, stream: stream)
        }
        lost.set(self.logger)
    }

    /// Writes a line as it is.
    func say(_ line: String) { self.writer.record(Array((line + "\n").utf8)) }

    /// Closes it once `body` has ended, however that does.
    func closing<Result, Failure: Error>(
        _ body: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        do throws(Failure) {
            let result = try await body()
            await self.close()
            return result
        } catch {
            await self.close()
            throw error
        }
    }

    /// Writes what is there, unless that takes too long; what is logged after it is dropped.
    func close() async {
        await self.writer.close(within: Self.closingTime)
        self.lost.set(nil)
    }

    /// Says in the log itself what it has lost.
    private final class LostMessages: Sendable {
        private let logger = Mutex<Logger?>(nil)

        func set(_ logger: Logger?) { self.logger.withLock { $0 = logger } }

        func tell(_ lines: UInt64) {
            let logger = self.logger.withLock { $0 }
            logger?.warning(
                "messages lost, as standard error took none", metadata: ["lines": "\(lines)"])
        }
    }

    /// Hands over each line as the handler writes it: in one call.
    private struct Lines: TextOutputStream, Sendable {
        let writer: LogWriter

        func write(_ line: String) { self.writer.record(Array(line.utf8)) }
    }

    /// Looks at the shared level, which the stream's own handler could not follow.
    private struct Handler: LogHandler {
        let shared: Level
        var stream: StreamLogHandler

        init(shared: Level, stream: StreamLogHandler) {
            self.shared = shared
            self.stream = stream
            self.stream.logLevel = .trace
        }

        var logLevel: Logger.Level {
            get { self.shared.current }
            set { self.stream.logLevel = newValue }
        }

        var metadata: Logger.Metadata {
            get { self.stream.metadata }
            set { self.stream.metadata = newValue }
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { self.stream[metadataKey: key] }
            set { self.stream[metadataKey: key] = newValue }
        }

        func log(event: LogEvent) {
            self.stream.log(event: event)
        }
    }
}

extension LogSettings.Level {
    var level: Logger.Level {
        switch self {
        case .trace: .trace
        case .debug: .debug
        case .info: .info
        case .notice: .notice
        case .warning: .warning
        case .error: .error
        case .critical: .critical
        }
    }
}
