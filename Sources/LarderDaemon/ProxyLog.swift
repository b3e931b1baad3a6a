import LarderConfig
import LarderHTTP
import LarderPolicy
import LarderProxy
import LarderSession
import Logging
import Synchronization

/// Hands the proxy's exchanges to the access log's writer, as lines of the chosen format.
///
/// Format and destination may change while exchanges end: each is written by those of its moment.
final class ProxyLog: ExchangeLog {
    private struct State {
        var formatter: AccessLogFormatter
        /// nil: no access log is wanted.
        var writer: LogWriter?
    }

    private let state: Mutex<State>
    private let log: Logger
    private let writes: Atomic<Bool>
    /// The cache's name in `Cache-Status`.
    private let name: String

    /// - Throws: when the log's file cannot be opened.
    init(_ settings: LogSettings, name: String, log: Logger) throws(LogError) {
        self.log = log
        self.name = name
        let writer = try LogWriter.open(settings.accessDestination, notice: Self.teller(log))
        self.writes = Atomic(writer != nil)
        self.state = Mutex(
            State(formatter: AccessLogFormatter(settings.accessFormat), writer: writer))
    }

    var isOn: Bool { self.writes.load(ordering: .relaxed) }

    func recorder() -> any ExchangeRecorder { Recorder(self) }

    /// Makes the lines of one loop.
    private final class Recorder: ExchangeRecorder {
        private let log: ProxyLog
        private var line = LogLine()

        init(_ log: ProxyLog) {
            self.log = log
        }

        func record(_ entry: ExchangeEntry) {
            let (formatter, writer) = self.log.state.withLock { ($0.formatter, $0.writer) }
            guard let writer else { return }
            self.line.clear()
            formatter.write(AccessLogEntry(entry, name: self.log.name), to: &self.line)
            self.hand(to: writer)
        }

        func record(_ facts: EntryFacts, of pattern: EntryPattern) {
            let (formatter, writer) = self.log.state.withLock { ($0.formatter, $0.writer) }
            guard let writer else { return }
            let draft: AccessLogDraft
            if let known = pattern.draft as? AccessLogDraft, known.format == formatter.format {
                draft = known
            } else {
                draft = AccessLogDraft(
                    pattern.entry(with: facts), name: self.log.name, formatter, &self.line)
                pattern.draft = draft
            }
            draft.write(facts, to: &self.line)
            self.hand(to: writer)
        }

        /// Hands the line over; another writer may have taken the place of this one since.
        private func hand(to writer: LogWriter) {
            var writer = writer
            while !writer.record(self.line.bytes) {
                let current = self.log.state.withLock { $0.writer }
                guard let current, current !== writer else { return }
                writer = current
            }
        }
    }

    /// Changes over to these settings, and opens the file anew where the destination stays.
    ///
    /// Another destination has another writer: the one before may be at work on a pipe that nobody
    /// reads, and is waited for a second at most.
    ///
    /// - Throws: when the new file cannot be opened; then everything stays as it was.
    func change(from old: LogSettings, to new: LogSettings) async throws(LogError) {
        let current = self.state.withLock { $0.writer }
        var writer = current
        if old.accessDestination == new.accessDestination {
            // The writer opens it on its own thread, too late for whoever wants to know.
            try LogWriter.check(new.accessDestination)
            current?.reopen()
        } else {
            writer = try LogWriter.open(new.accessDestination, notice: Self.teller(self.log))
        }
        let formatter = AccessLogFormatter(new.accessFormat)
        self.state.withLock { $0 = State(formatter: formatter, writer: writer) }
        self.writes.store(writer != nil, ordering: .relaxed)
        if writer !== current { await self.close(current, within: Self.shortestClosing) }
    }

    /// Writes what is there and ends the log: what is recorded after it is dropped, as where none is
    /// wanted.
    ///
    /// - Parameter limit: how long a reader that does not read is waited for, a second at least.
    func close(within limit: Duration = .zero) async {
        self.writes.store(false, ordering: .relaxed)
        let writer = self.state.withLock { $0.writer.take() }
        await self.close(writer, within: max(limit, Self.shortestClosing))
    }

    private static let shortestClosing = Duration.seconds(1)

    private func close(_ writer: LogWriter?, within limit: Duration) async {
        guard let writer, await !writer.close(within: limit) else { return }
        self.log.warning("access log closed with lines unwritten: its reader does not read")
    }

    private static func teller(_ log: Logger) -> @Sendable (LogWriter.Notice) -> Void {
        { notice in
            switch notice {
            case .losing:
                log.warning("access log lines are being lost: they are written too slowly")
            case .lost(let lines):
                log.warning("access log lines lost", metadata: ["lines": "\(lines)"])
            case .reopenFailed(let code):
                log.error(
                    "access log cannot be opened anew",
                    metadata: ["cause": "\(LogError.text(code))"])
            case .failed(let code):
                log.error(
                    "access log cannot be written",
                    metadata: ["cause": "\(SystemError.text(code))"])
            }
        }
    }
}

extension AccessLogEntry {
    init(_ entry: ExchangeEntry, name: String) {
        self.init(
            end: entry.began + entry.duration, duration: entry.duration,
            client: entry.client.text, method: entry.method, target: entry.uri,
            version: entry.version.map { "HTTP/\($0.major).\($0.minor)" } ?? "",
            status: Int(entry.status?.rawValue ?? 0),
            bytesSent: entry.responseHeadBytes &+ entry.responseBodyBytes,
            outcome: Self.outcome(of: entry))
        self.user = entry.user
        self.uid = entry.client.uid
        self.session = entry.session
        self.bytesReceived = entry.requestBodyBytes
        self.origin = entry.origin.address
        self.isParent = entry.origin.isParent
        self.referer = entry.referer
        self.userAgent = entry.userAgent
        self.id = String(entry.exchange, radix: 36)
        self.cacheStatus = entry.cacheStatus?.member(named: name) ?? ""
        self.reason = entry.cacheStatus.flatMap { status in
            status.detail ?? (status.hit ? PolicyReason.fresh.rawValue : nil)
        }
        self.rule = entry.rule
        self.acts = entry.acts.map(\.rawValue)
        self.contentType = entry.contentType
        self.error = entry.failure
        self.errorType = entry.errorType?.rawValue
        // A failure that was told in an answer is no answer cut short.
        self.wasAborted = entry.wasCut
    }

    private static func outcome(of entry: ExchangeEntry) -> Outcome {
        if entry.isDenied { return .denied }
        // One that came to nothing was a tunnel to be, nevertheless.
        if entry.isTunnel || (entry.request?.method == .connect && entry.cacheStatus != nil) {
            return .tunnel
        }
        guard let status = entry.cacheStatus else {
            return entry.status == nil ? .unanswered : .own
        }
        return Outcome(status, fromMemory: status.isFromMemory)
    }
}
