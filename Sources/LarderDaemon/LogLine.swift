import LarderConfig
import LarderHTTP

/// What differs between exchanges that are otherwise alike, as the access log tells it.
struct LogFacts {
    var end: Timestamp
    /// In microseconds.
    var duration: Int64
    var client: String
    var user: String?
    var uid: UInt32?
    var bytesSent: UInt64
    var id = ""
    var session = ""
    var cacheStatus = ""
}

extension LogFacts {
    init(_ entry: AccessLogEntry) {
        self.init(
            end: entry.end, duration: entry.duration.inMicroseconds, client: entry.client,
            user: entry.user, uid: entry.uid, bytesSent: entry.bytesSent, id: entry.id,
            session: entry.session, cacheStatus: entry.cacheStatus)
    }
}

/// A line of the access log in the making.
struct LogLine {
    /// A stretch of a line that is made of `LogFacts`.
    enum Part {
        /// When, and who: what every format begins with.
        case start
        case bytesSent
        /// Columns that only the JSON format has.
        case duration, cacheStatus
    }

    /// Where a part stands.
    struct Place {
        var part: Part
        var range: Range<Int>
    }

    var bytes: [UInt8] = []
    /// The places of the parts, in order; empty where nobody asked for them.
    private(set) var places: [Place] = []
    private var keepsPlaces = false
    private var clock = LogClock()

    /// Begins another line.
    mutating func clear(keepsPlaces: Bool = false) {
        self.bytes.removeAll(keepingCapacity: true)
        self.places = []
        self.keepsPlaces = keepsPlaces
    }

    mutating func add(_ part: Part, _ facts: LogFacts, _ format: LogSettings.AccessFormat) {
        let start = self.bytes.count
        switch part {
        case .start: self.start(facts, format)
        case .bytesSent: self.bytes.add(decimal: facts.bytesSent)
        case .duration:
            LogObject.add("durationMicroseconds", number: facts.duration, &self.bytes)
        case .cacheStatus: LogObject.add("cacheStatus", facts.cacheStatus, &self.bytes)
        }
        if self.keepsPlaces {
            self.places.append(Place(part: part, range: start..<self.bytes.count))
        }
    }

    private mutating func start(_ facts: LogFacts, _ format: LogSettings.AccessFormat) {
        switch format {
        case .squid:
            let milliseconds = UInt64(clamping: facts.end.microseconds / 1000)
            self.bytes.add(decimal: milliseconds / 1000)
            self.bytes.append(UInt8(ascii: "."))
            self.bytes.add(decimal: milliseconds % 1000, width: 3)
            let elapsed = UInt64(clamping: facts.duration / 1000)
            // Right-aligned, as Squid does it.
            self.bytes.append(ASCII.space)
            var most: UInt64 = 10
            for _ in 0..<5 {
                if elapsed < most { self.bytes.append(ASCII.space) }
                most *= 10
            }
            self.bytes.add(decimal: elapsed)
            self.bytes.append(ASCII.space)
            LogEscape.word(facts.client, &self.bytes)
            self.bytes.append(ASCII.space)
        case .combined:
            LogEscape.word(facts.client, &self.bytes)
            self.bytes += " - ".utf8
            LogEscape.word(facts.user ?? "", &self.bytes)
            self.bytes += " [".utf8
            self.clock.common(facts.end, &self.bytes)
            self.bytes.append(UInt8(ascii: "]"))
        case .json:
            self.bytes += "{\"time\":\"".utf8
            self.clock.internet(facts.end, &self.bytes)
            self.bytes.append(UInt8(ascii: "\""))
            LogObject.add("id", facts.id, &self.bytes)
            LogObject.add("session", facts.session, &self.bytes)
            LogObject.add("client", facts.client, &self.bytes)
            LogObject.add("user", facts.user, &self.bytes)
            if let uid = facts.uid { LogObject.add("uid", number: Int64(uid), &self.bytes) }
        }
    }
}
