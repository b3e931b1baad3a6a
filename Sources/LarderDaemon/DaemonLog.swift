import LarderConfig
import Logging
import Synchronization

/// The daemon's own log: to standard error, where the journal and people read it.
enum DaemonLog {
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

    static func make(_ level: Level) -> Logger {
        Logger(label: "larder") { label in
            Handler(shared: level, stream: StreamLogHandler.standardError(label: label))
        }
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
