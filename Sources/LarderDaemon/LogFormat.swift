package import LarderConfig
import LarderHTTP

/// Turns an entry into a line.
///
/// A pure function of the entry. Every byte that a stranger chose is escaped, so that a line is one
/// line, its fields are where they should be, and a terminal that shows it does nothing else.
package struct AccessLogFormatter: Sendable {
    private let format: LogSettings.AccessFormat

    package init(_ format: LogSettings.AccessFormat) {
        self.format = format
    }

    /// The line, its line feed included.
    package func line(_ entry: AccessLogEntry) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        switch self.format {
        case .squid: Self.squid(entry, &line)
        case .combined: Self.combined(entry, &line)
        case .json: Self.json(entry, &line)
        }
        line.append(0x0A)
        return line
    }

    /// Squid's native format: time, milliseconds, client, result/status, bytes, method, URL, user,
    /// hierarchy/origin, type.
    private static func squid(_ entry: AccessLogEntry, _ line: inout [UInt8]) {
        let end = entry.end
        let milliseconds = UInt64(clamping: end.microseconds / 1000)
        line += "\(milliseconds / 1000).".utf8
        line += LogClock.padded(milliseconds % 1000, 3)
        let elapsed = String(max(0, entry.duration.inMicroseconds / 1000))
        line += String(repeating: " ", count: max(1, 7 - elapsed.count)).utf8
        line += "\(elapsed) ".utf8
        LogEscape.word(entry.client, &line)
        line += " \(entry.outcome.squid)\(entry.wasAborted ? "_ABORTED" : "")/".utf8
        line += LogClock.padded(UInt64(clamping: entry.status), 3)
        line += " \(entry.bytesSent) ".utf8
        LogEscape.word(entry.method, &line)
        line.append(ASCII.space)
        LogEscape.word(entry.target, &line)
        line.append(ASCII.space)
        LogEscape.word(entry.user ?? "", &line)
        line += " \(entry.hierarchy)/".utf8
        LogEscape.word(entry.peer, &line)
        line.append(ASCII.space)
        // Parameters such as a charset are left out, as Squid does.
        let type = entry.contentType.map { $0.prefix { $0 != ";" && $0 != " " } } ?? ""
        LogEscape.word(String(type), &line)
    }

    /// The combined format of web servers.
    private static func combined(_ entry: AccessLogEntry, _ line: inout [UInt8]) {
        LogEscape.word(entry.client, &line)
        line += " - ".utf8
        LogEscape.word(entry.user ?? "", &line)
        line += " [\(LogClock.common(entry.end))] \"".utf8
        // Spaces inside the method or target would shift the fields of the request line.
        LogEscape.word(entry.method, &line)
        line.append(ASCII.space)
        LogEscape.word(entry.target, &line)
        line.append(ASCII.space)
        LogEscape.word(entry.version, &line)
        line += "\" \(entry.status) \(entry.bytesSent) \"".utf8
        LogEscape.quoted(entry.referer ?? "-", &line)
        line += "\" \"".utf8
        LogEscape.quoted(entry.userAgent ?? "-", &line)
        line.append(UInt8(ascii: "\""))
    }

    /// One JSON object (RFC 8259) with everything that is known.
    private static func json(_ entry: AccessLogEntry, _ line: inout [UInt8]) {
        var object = LogObject()
        object.add("time", LogClock.internet(entry.end))
        object.add("id", entry.id)
        object.add("session", entry.session)
        object.add("client", entry.client)
        object.add("user", entry.user)
        if let uid = entry.uid { object.add("uid", number: uid) }
        object.add("method", entry.method)
        object.add("url", entry.target)
        object.add("version", entry.version)
        object.add("status", number: entry.status)
        object.add("bytesSent", number: entry.bytesSent)
        object.add("bytesReceived", number: entry.bytesReceived)
        object.add("durationMicroseconds", number: entry.duration.inMicroseconds)
        object.add("outcome", entry.outcome.word)
        object.add("cacheStatus", entry.cacheStatus)
        object.add("reason", entry.reason)
        object.add("acts", entry.acts)
        object.add("origin", entry.origin)
        object.add("type", entry.contentType)
        object.add("referer", entry.referer)
        object.add("userAgent", entry.userAgent)
        object.add("error", entry.error)
        if entry.wasAborted { object.add("aborted", isTrue: true) }
        line += object.finished()
    }
}

extension AccessLogEntry.Outcome {
    /// The outcome in Squid's words.
    fileprivate var squid: String {
        switch self {
        case .memoryHit: "TCP_MEM_HIT"
        case .diskHit: "TCP_HIT"
        case .collapsed: "TCP_CF_HIT"
        case .miss: "TCP_MISS"
        case .validated: "TCP_REFRESH_UNMODIFIED"
        case .refreshed: "TCP_REFRESH_MODIFIED"
        case .staleHit: "TCP_STALE_HIT"
        case .onlyIfCachedMiss: "TCP_OFFLINE_MISS"
        case .bypass: "TCP_CLIENT_REFRESH_MISS"
        case .tunnel: "TCP_TUNNEL"
        case .denied: "TCP_DENIED"
        case .own: "NONE"
        }
    }

    /// The outcome in one word of our own.
    package var word: String {
        switch self {
        case .memoryHit: "memory-hit"
        case .diskHit: "disk-hit"
        case .collapsed: "collapsed"
        case .miss: "miss"
        case .validated: "validated"
        case .refreshed: "refreshed"
        case .staleHit: "stale-hit"
        case .onlyIfCachedMiss: "only-if-cached-miss"
        case .bypass: "bypass"
        case .tunnel: "tunnel"
        case .denied: "denied"
        case .own: "own"
        }
    }
}

extension AccessLogEntry {
    /// Where the answer came from, in Squid's words.
    fileprivate var hierarchy: String { self.origin.isEmpty ? "HIER_NONE" : "HIER_DIRECT" }

    /// The origin's address without its port, and without the brackets of IPv6, as Squid has it.
    fileprivate var peer: String {
        guard let colon = self.origin.lastIndex(of: ":"),
            self.origin.hasPrefix("[") || self.origin.firstIndex(of: ":") == colon
        else { return self.origin }
        let host = self.origin.hasSuffix("]") ? self.origin[...] : self.origin[..<colon]
        return String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host)
    }
}
