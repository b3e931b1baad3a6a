/// One rule about the freshness and storing of certain responses.
///
/// The first rule that fits a URL speaks for it; those of the file come before those of presets.
package struct CacheRuleSettings: Sendable, Equatable {
    /// What a rule may set aside.
    package enum Ignored: String, SettingWord {
        case noStore = "no-store"
        case isPrivate = "private"
        case noCache = "no-cache"
        case mustRevalidate = "must-revalidate"
        case maxAge = "max-age"
        case sMaxage = "s-maxage"
        case expires
        case vary
        case reload
        case setCookie = "set-cookie"
        case authorization
    }

    /// Whether responses are stored at all.
    package enum Storing: String, SettingWord { case `default`, never }

    /// nil: known by its place in the list.
    package var name: RuleName?
    /// Empty: all sessions.
    package var sessions: [SessionName] = []
    /// Empty: all hosts.
    package var hosts: [HostPattern] = []
    /// Empty: all paths.
    package var paths: [PathPattern] = []
    package var minimum: TimeSpan?
    package var maximum: TimeSpan?
    package var lifetime: TimeSpan?
    package var ignore: [Ignored] = []
    package var negative: [StatusLifetime] = []
    package var staleIfError: TimeSpan?
    package var store: Storing = .default

    package init() {}
}

/// A cache rule, and where it is written.
package struct LocatedRule: Sendable, Equatable {
    package var rule: CacheRuleSettings
    /// The rule's own name, or its place in its list: `cache-rules[2]`, `debian[0]`.
    package var name: String
    package var file: String
    package var line: Int

    package init(rule: CacheRuleSettings, name: String, file: String, line: Int) {
        self.rule = rule
        self.name = name
        self.file = file
        self.line = line
    }
}

/// How requests want the cache to be used; the words of the URL Loading System.
package enum CachePolicyWord: String, SettingWord {
    case useProtocol = "use-protocol"
    case reloadIgnoringLocal = "reload-ignoring-local"
    case reloadIgnoringAll = "reload-ignoring-all"
    case returnCacheElseLoad = "return-cache-else-load"
    case returnCacheDontLoad = "return-cache-dont-load"
    case reloadRevalidating = "reload-revalidating"
}
