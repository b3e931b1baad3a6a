package import LarderConfig
import LarderHTTP

/// Turns an entry into a line.
///
/// A pure function of the entry. Every byte that a stranger chose is escaped, so that a line is one
/// line, its fields are where they should be, and a terminal that shows it does nothing else.
package struct AccessLogFormatter: Sendable, Equatable {
    let format: LogSettings.AccessFormat

    package init(_ format: LogSettings.AccessFormat) {
        self.format = format
    }

    /// The line, its line feed included.
    package func line(_ entry: AccessLogEntry) -> [UInt8] {
        var line = LogLine()
        self.write(entry, to: &line)
        return line.bytes
    }

    /// Adds the line, its line feed included.
    func write(_ entry: AccessLogEntry, to line: inout LogLine) {
        let facts = LogFacts(entry)
        line.add(.start, facts, self.format)
        switch self.format {
        case .squid: Self.squid(entry, facts, &line)
        case .combined: Self.combined(entry, facts, &line)
        case .json: Self.json(entry, facts, &line)
        }
        line.bytes.append(0x0A)
    }

    /// Squid's native format: time, milliseconds, client, result/status, bytes, method, URL, user,
    /// hierarchy/origin, type.
    private static func squid(
        _ entry: AccessLogEntry, _ facts: LogFacts, _ line: inout LogLine
    ) {
        line.bytes += entry.outcome.squid.utf8
        if entry.wasAborted { line.bytes += "_ABORTED".utf8 }
        line.bytes.append(UInt8(ascii: "/"))
        line.bytes.add(decimal: UInt64(clamping: entry.status), width: 3)
        line.bytes.append(ASCII.space)
        line.add(.bytesSent, facts, .squid)
        line.bytes.append(ASCII.space)
        LogEscape.word(entry.method, &line.bytes)
        line.bytes.append(ASCII.space)
        LogEscape.word(entry.target, &line.bytes)
        line.bytes.append(ASCII.space)
        LogEscape.word(entry.user ?? "", &line.bytes)
        line.bytes += " \(entry.hierarchy)/".utf8
        LogEscape.word(entry.peer, &line.bytes)
        line.bytes.append(ASCII.space)
        // Parameters such as a charset are left out, as Squid does.
        let type = entry.contentType.map { $0.prefix { $0 != ";" && $0 != " " } } ?? ""
        LogEscape.word(String(type), &line.bytes)
    }

    /// The combined format of web servers.
    private static func combined(
        _ entry: AccessLogEntry, _ facts: LogFacts, _ line: inout LogLine
    ) {
        line.bytes += " \"".utf8
        // Spaces inside the method or target would shift the fields of the request line.
        LogEscape.word(entry.method, &line.bytes)
        line.bytes.append(ASCII.space)
        LogEscape.word(entry.target, &line.bytes)
        line.bytes.append(ASCII.space)
        LogEscape.word(entry.version, &line.bytes)
        line.bytes += "\" \(entry.status) ".utf8
        line.add(.bytesSent, facts, .combined)
        line.bytes += " \"".utf8
        LogEscape.quoted(entry.referer ?? "-", &line.bytes)
        line.bytes += "\" \"".utf8
        LogEscape.quoted(entry.userAgent ?? "-", &line.bytes)
        line.bytes.append(UInt8(ascii: "\""))
    }

    /// One JSON object (RFC 8259) with everything that is known.
    private static func json(_ entry: AccessLogEntry, _ facts: LogFacts, _ line: inout LogLine) {
        LogObject.add("method", entry.method, &line.bytes)
        LogObject.add("url", entry.target, &line.bytes)
        LogObject.add("version", entry.version, &line.bytes)
        LogObject.add("status", number: Int64(clamping: entry.status), &line.bytes)
        line.bytes += ",\"bytesSent\":".utf8
        line.add(.bytesSent, facts, .json)
        LogObject.add(
            "bytesReceived", number: Int64(clamping: entry.bytesReceived), &line.bytes)
        line.add(.duration, facts, .json)
        LogObject.add("outcome", entry.outcome.word, &line.bytes)
        line.add(.cacheStatus, facts, .json)
        LogObject.add("reason", entry.reason, &line.bytes)
        LogObject.add("rule", entry.rule, &line.bytes)
        LogObject.add("acts", entry.acts, &line.bytes)
        LogObject.add("origin", entry.origin, &line.bytes)
        if entry.isParent { LogObject.add("parent", isTrue: true, &line.bytes) }
        LogObject.add("type", entry.contentType, &line.bytes)
        LogObject.add("referer", entry.referer, &line.bytes)
        LogObject.add("userAgent", entry.userAgent, &line.bytes)
        LogObject.add("error", entry.error, &line.bytes)
        LogObject.add("errorType", entry.errorType, &line.bytes)
        if entry.wasAborted { LogObject.add("aborted", isTrue: true, &line.bytes) }
        line.bytes.append(UInt8(ascii: "}"))
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
        case .standIn: "TCP_REFRESH_FAIL_OLD"
        case .onlyIfCachedMiss: "TCP_OFFLINE_MISS"
        // Squid's TCP_CLIENT_REFRESH_MISS is for clients that forbid a hit, which is a miss here.
        case .bypass: "TCP_MISS"
        case .tunnel: "TCP_TUNNEL"
        case .denied: "TCP_DENIED"
        case .own: "NONE"
        case .unanswered: "NONE_ABORTED"
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
        case .standIn: "stand-in"
        case .onlyIfCachedMiss: "only-if-cached-miss"
        case .bypass: "bypass"
        case .tunnel: "tunnel"
        case .denied: "denied"
        case .own: "own"
        case .unanswered: "unanswered"
        }
    }
}

extension AccessLogEntry {
    /// Where the answer came from, in Squid's words.
    fileprivate var hierarchy: String {
        self.origin.isEmpty ? "HIER_NONE" : self.isParent ? "FIRSTUP_PARENT" : "HIER_DIRECT"
    }

    /// The origin's address without its port, and without the brackets of IPv6, as Squid has it.
    fileprivate var peer: String {
        guard let colon = self.origin.lastIndex(of: ":"),
            self.origin.hasPrefix("[") || self.origin.firstIndex(of: ":") == colon
        else { return self.origin }
        let host = self.origin.hasSuffix("]") ? self.origin[...] : self.origin[..<colon]
        return String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host)
    }
}
