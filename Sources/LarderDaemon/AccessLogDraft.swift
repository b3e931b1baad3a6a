import LarderConfig
import LarderHTTP
import LarderProxy

/// The line of an exchange that repeats itself: what stays is kept as it was written, and what
/// differs is written anew.
final class AccessLogDraft {
    let format: LogSettings.AccessFormat
    private let text: [UInt8]
    private let places: [LogLine.Place]
    private let bodyBytes: UInt64
    private let name: String
    private var cacheStatus: CacheStatus?
    private var cacheStatusText: String

    /// - Parameters:
    ///   - entry: one of the exchanges, whole.
    ///   - line: is written over.
    init(
        _ entry: ExchangeEntry, name: String, _ formatter: AccessLogFormatter, _ line: inout LogLine
    ) {
        let told = AccessLogEntry(entry, name: name)
        line.clear(keepsPlaces: true)
        formatter.write(told, to: &line)
        self.format = formatter.format
        self.text = line.bytes
        self.places = line.places
        self.bodyBytes = entry.responseBodyBytes
        self.name = name
        self.cacheStatus = entry.cacheStatus
        self.cacheStatusText = told.cacheStatus
    }

    /// Writes the line of another of the exchanges.
    func write(_ facts: EntryFacts, to line: inout LogLine) {
        let facts = self.facts(facts)
        line.clear()
        var written = 0
        for place in self.places {
            line.bytes += self.text[written..<place.range.lowerBound]
            line.add(place.part, facts, self.format)
            written = place.range.upperBound
        }
        line.bytes += self.text[written...]
    }

    private func facts(_ facts: EntryFacts) -> LogFacts {
        var told = LogFacts(
            end: facts.ended, duration: facts.ended.microseconds &- facts.began.microseconds,
            client: facts.client.text, uid: facts.client.uid,
            bytesSent: facts.responseHeadBytes &+ self.bodyBytes)
        guard self.format == .json else { return told }
        told.id = String(facts.exchange, radix: 36)
        told.session = facts.session
        if let status = self.cacheStatus, status.ttl != facts.ttl {
            // Once a second for what is asked for more often than that.
            self.cacheStatus?.ttl = facts.ttl
            self.cacheStatusText = self.cacheStatus?.member(named: self.name) ?? ""
        }
        told.cacheStatus = self.cacheStatusText
        return told
    }
}
