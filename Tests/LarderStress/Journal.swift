import LarderHTTP
import LarderPolicy

/// A stored response, as far as it can differ from others of its URL.
struct Entry: Hashable, Sendable {
    var version: UInt64
    /// How often a 304 has freshened it.
    var freshened: UInt64 = 0
    var isInvalid = false
    /// What is there of a partial response; nil where that is all.
    var ranges: [Range<UInt64>]?

    /// `VERSION FRESHENED INVALID RANGES`, with `*` for all.
    var text: String {
        let ranges = self.ranges.map {
            $0.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
        }
        return "\(self.version) \(self.freshened) \(self.isInvalid ? 1 : 0) \(ranges ?? "*")"
    }

    init(
        version: UInt64, freshened: UInt64 = 0, isInvalid: Bool = false,
        ranges: [Range<UInt64>]? = nil
    ) {
        self.version = version
        self.freshened = freshened
        self.isInvalid = isInvalid
        self.ranges = ranges
    }

    init?(words: [Substring]) {
        guard words.count == 4, let version = UInt64(words[0]), let freshened = UInt64(words[1])
        else { return nil }
        self.init(version: version, freshened: freshened, isInvalid: words[2] == "1")
        if words[3] == "*" { return }
        self.ranges = words[3].split(separator: ",").compactMap { text in
            let ends = text.split(separator: "-").compactMap { UInt64($0) }
            return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
        }
    }

    /// The entry that a stored head claims to be; nil where it makes no sense.
    init?(_ head: StoredHead, of key: Int) {
        guard let tag = head.fields.string("ETag"), tag.hasPrefix("\"\(key)-"),
            let version = UInt64(tag.dropFirst("\"\(key)-".count).dropLast()),
            let freshened = head.fields.string("X-Freshened").flatMap({ UInt64($0) })
        else { return nil }
        self.init(
            version: version, freshened: freshened, isInvalid: head.isInvalidated,
            ranges: head.extent?.ranges)
    }
}

/// What a writer says of itself, line by line, to whoever judges what it leaves behind.
///
/// ```
/// begin KEY ENTRY      it begins to make this of the key; `-` for nothing
/// done KEY             and that is visible
/// left KEY             and that came to nothing: it stays as it was
/// ```
enum JournalLine: Sendable, Equatable {
    case begin(Int, Entry?)
    case done(Int)
    case left(Int)

    var text: String {
        switch self {
        case .begin(let key, let entry): "begin \(key) \(entry?.text ?? "-")\n"
        case .done(let key): "done \(key)\n"
        case .left(let key): "left \(key)\n"
        }
    }

    init?(_ text: some StringProtocol) {
        let words = text.split(separator: " ").map { Substring($0) }
        guard words.count >= 2, let key = Int(words[1]) else { return nil }
        switch words[0] {
        case "begin" where words.count == 3 && words[2] == "-": self = .begin(key, nil)
        case "begin":
            guard let entry = Entry(words: Array(words[2...])) else { return nil }
            self = .begin(key, entry)
        case "done": self = .done(key)
        case "left": self = .left(key)
        default: return nil
        }
    }
}

/// What may be found of each URL, by all that was said.
struct Expectations: Sendable {
    private struct State: Sendable {
        /// What was acknowledged last.
        var settled: Entry?
        /// What was begun and has not been acknowledged: `.some(nil)` is a removal.
        var begun: Entry??
    }

    private var states: [Int: State] = [:]

    mutating func hear(_ line: JournalLine) {
        switch line {
        case .begin(let key, let entry):
            self.states[key, default: State()].begun = .some(entry)
        case .done(let key):
            guard let begun = self.states[key]?.begun else { return }
            self.states[key] = State(settled: begun)
        case .left(let key):
            self.states[key]?.begun = nil
        }
    }

    /// A writer has died, and this is what it left.
    mutating func adopt(_ found: [Int: Entry]) {
        self.states = found.mapValues { State(settled: $0) }
    }

    /// What is wrong with what was found of a URL; nil where nothing is.
    ///
    /// - Parameter mayBeGone: it may have been evicted.
    func objection(to found: Entry?, of key: Int, mayBeGone: Bool) -> String? {
        let state = self.states[key] ?? State()
        if found == state.settled { return nil }
        if let begun = state.begun, found == begun { return nil }
        if found == nil, mayBeGone { return nil }
        return "/\(key): found \(found?.text ?? "nothing"), acknowledged "
            + "\(state.settled?.text ?? "nothing"), begun "
            + "\(state.begun.map { $0?.text ?? "removal" } ?? "nothing")"
    }

    var keys: Set<Int> { Set(self.states.keys) }
    /// How many URLs have something that was acknowledged.
    var settled: Int { self.states.values.count { $0.settled != nil } }
}
