import LarderHTTP
import LarderProxy

/// Hands the proxy's exchanges to the access log's writer, as lines of the chosen format.
struct ProxyLog: ExchangeLog {
    let format: AccessLogFormatter
    let writer: LogWriter

    func record(_ entry: ExchangeEntry) {
        self.writer.record(self.format.line(AccessLogEntry(entry)))
    }
}

extension AccessLogEntry {
    init(_ entry: ExchangeEntry) {
        self.init(
            end: entry.began + entry.duration, duration: entry.duration,
            client: entry.client.text, method: entry.method, target: entry.uri,
            version: entry.version.map { "HTTP/\($0.major).\($0.minor)" } ?? "",
            status: Int(entry.status?.rawValue ?? 0),
            bytesSent: entry.responseHeadBytes &+ entry.responseBodyBytes,
            outcome: Self.outcome(of: entry))
        self.bytesReceived = entry.requestBodyBytes
        self.origin = entry.origin
        self.referer = entry.referer
        self.userAgent = entry.userAgent
        self.id = String(entry.exchange, radix: 36)
        self.cacheStatus = entry.cacheStatus?.member(named: "larder") ?? ""
        self.wasAborted = entry.failure != nil
    }

    private static func outcome(of entry: ExchangeEntry) -> Outcome {
        if entry.isTunnel { return .tunnel }
        guard let status = entry.cacheStatus else {
            return entry.status?.rawValue == 403 ? .denied : .own
        }
        return Outcome(status, fromMemory: status.isFromMemory)
    }
}
