import LarderConfig
import Logging

/// The daemon's own log: to standard error, where the journal and people read it.
enum DaemonLog {
    static func make(level: Logger.Level) -> Logger {
        var log = Logger(label: "larder") { StreamLogHandler.standardError(label: $0) }
        log.logLevel = level
        return log
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
