import Yams

/// Reads a configuration file into settings, by the table.
///
/// Goes on after a problem, so that one look shows all that is wrong. Only what breaks the YAML
/// itself, or a key given twice, ends the reading.
struct SettingsReader {
    let file: String
    var problems: [ConfigurationProblem] = []
    private var origins: [String: SettingOrigin] = [:]
    var settings = Settings()
    /// Where each listener's session was named, for checks once all sessions are known.
    private var marks: [String: Mark] = [:]

    var ruleMarks: [Mark?] = []
    var presetMarks: [Mark?] = []

    private static let groups = ["listeners", "sessions", "access", "cache-rules"]

    init(file: String) {
        self.file = file
    }

    /// What a file says.
    struct Result {
        var settings: Settings
        var origins: [String: SettingOrigin]
        var cacheRules: [LocatedRule]
    }

    /// - Parameters:
    ///   - file: the file's name, for messages.
    ///   - library: where the presets are that the file names; gets the directory that it names.
    static func read(
        _ text: String, file: String, library: (FilePath?) -> PresetLibrary
    ) throws(ConfigurationError) -> Result {
        var reader = SettingsReader(file: file)
        if let root = try reader.compose(text) { reader.readRoot(root) }
        reader.checkTogether()
        var rules = reader.locatedRules(calling: "cache-rules")
        if !reader.settings.presets.isEmpty {
            rules += reader.readPresets(from: library(reader.settings.presetDirectory))
        }
        try reader.throwProblems()
        return Result(settings: reader.settings, origins: reader.origins, cacheRules: rules)
    }

    /// The one document of a text; nil where it is empty.
    func compose(_ text: String) throws(ConfigurationError) -> Node? {
        do {
            let root = try Yams.compose(yaml: text)
            return root.flatMap { $0.isEmptyScalar ? nil : $0 }
        } catch {
            throw ConfigurationError(problems: self.problems(of: error))
        }
    }

    func throwProblems() throws(ConfigurationError) {
        guard !self.problems.isEmpty else { return }
        throw ConfigurationError(
            problems: self.problems.sorted { ($0.line, $0.column) < ($1.line, $1.column) })
    }

    private mutating func readRoot(_ root: Node) {
        guard let mapping = root.mapping else {
            self.report(root, "the file must hold settings, such as \"listeners:\"")
            return
        }
        for (key, value) in mapping where Self.groups.contains(key.plain) && !value.isEmptyScalar {
            switch key.plain {
            case "listeners": self.readListeners(value)
            case "sessions": self.readSessions(value)
            case "cache-rules": self.readCacheRules(value)
            default: self.readAccess(value)
            }
        }
        self.read(
            mapping, by: SettingsTable.general, label: "", into: \.self, besides: Self.groups)
    }

    private mutating func readListeners(_ node: Node) {
        guard let items = self.items(node, "listeners") else { return }
        self.settings.listeners = items.map { _ in ListenerSettings() }
        for (index, item) in items.enumerated() {
            let label = "listeners[\(index)]"
            guard let mapping = self.mapping(item, label) else { continue }
            if mapping["address"] == nil {
                self.report(item, "\(label): needs an address, such as 127.0.0.1:3128")
            }
            self.read(
                mapping, by: SettingsTable.listener, label: "\(label).",
                into: \.listeners[index])
            self.marks[label] = mapping["session"]?.mark ?? item.mark
        }
    }

    private mutating func readSessions(_ node: Node) {
        guard let mapping = self.mapping(node, "sessions") else { return }
        for (key, value) in mapping {
            let name: SessionName
            do throws(SettingTextProblem) {
                name = try SessionName(settingText: key.plain)
            } catch {
                self.report(
                    key,
                    "sessions: \"\(key.plain)\" is no name of a session; expected "
                        + SessionName.expectation)
                continue
            }
            let index: Int
            if let known = self.settings.sessions.firstIndex(where: { $0.name == name }) {
                index = known
            } else {
                index = self.settings.sessions.count
                self.settings.sessions.append(SessionSettings(name: name))
            }
            let label = "sessions.\(name.text)"
            self.marks[label] = key.mark
            if value.isEmptyScalar { continue }
            guard let inner = self.mapping(value, label) else { continue }
            self.read(
                inner, by: SettingsTable.session, label: "\(label).", into: \.sessions[index])
        }
    }

    private mutating func readAccess(_ node: Node) {
        guard let items = self.items(node, "access") else { return }
        self.settings.access = items.map { _ in AccessRule() }
        for (index, item) in items.enumerated() {
            let label = "access[\(index)]"
            guard let mapping = self.mapping(item, label) else { continue }
            if mapping["action"] == nil {
                self.report(item, "\(label): needs an action, allow or deny")
            }
            self.read(
                mapping, by: SettingsTable.access, label: "\(label).", into: \.access[index])
        }
    }
}

extension SettingsReader {
    /// Reads one mapping, and those inside it, into one section.
    ///
    /// - Parameters:
    ///   - label: stands before each name in messages and origins.
    ///   - prefix: the part of the names that leads to this mapping.
    ///   - besides: keys that someone else reads.
    mutating func read<Section>(
        _ mapping: Node.Mapping, by table: [Setting<Section>], label: String,
        prefix: String = "", into section: WritableKeyPath<Settings, Section>,
        besides: [String] = []
    ) {
        for (key, value) in mapping {
            let path = prefix + key.plain
            if besides.contains(path) { continue }
            if let setting = table.first(where: { $0.path == path }) {
                self.read(value, key: key, as: setting, label: label, into: section)
            } else if table.contains(where: { $0.path.hasPrefix("\(path).") }) {
                if value.isEmptyScalar { continue }
                guard let inner = self.mapping(value, label + path) else { continue }
                self.read(inner, by: table, label: label, prefix: "\(path).", into: section)
            } else {
                self.reportUnknown(
                    key, path: path, prefix: prefix, label: label,
                    paths: table.map(\.path) + besides)
            }
        }
    }

    private mutating func read<Section>(
        _ value: Node, key: Node, as setting: Setting<Section>, label: String,
        into section: WritableKeyPath<Settings, Section>
    ) {
        let name = label + setting.path
        let found =
            setting.isPairs
            ? self.pairs(value, name) : self.scalars(value, key: key, setting.isList, name)
        guard let scalars = found else { return }
        let problems = setting.accept(scalars.map(\.string), &self.settings[keyPath: section])
        if setting.path == "presets" { self.presetMarks = scalars.map { $0.mark ?? key.mark } }
        for problem in problems {
            let mark = scalars[problem.index].mark ?? key.mark
            self.report(at: mark, "\(name): \(problem.message)")
        }
        self.origins[name] = .file(line: key.mark?.line ?? 0)
    }

    /// The scalars of one setting: itself, or its items.
    private mutating func scalars(
        _ value: Node, key: Node, _ isList: Bool, _ name: String
    ) -> [Node.Scalar]? {
        if value.isEmptyScalar {
            self.report(key, "\(name): has no value")
            return nil
        }
        if let scalar = value.scalar { return [scalar] }
        guard isList, let items = value.sequence else {
            self.report(value, "\(name): takes \(isList ? "a list of values" : "one value")")
            return nil
        }
        let scalars = items.compactMap(\.scalar)
        guard scalars.count == items.count else {
            self.report(value, "\(name): takes a list of plain values")
            return nil
        }
        return scalars
    }

    /// The pairs of one setting, each as one scalar.
    private mutating func pairs(_ value: Node, _ name: String) -> [Node.Scalar]? {
        guard let mapping = value.mapping else {
            self.report(value, "\(name): takes pairs, such as {404: 30 s}")
            return nil
        }
        var pairs: [Node.Scalar] = []
        for (key, value) in mapping {
            guard let left = key.scalar, let right = value.scalar, !value.isEmptyScalar else {
                self.report(key, "\(name): takes pairs of plain values, such as {404: 30 s}")
                return nil
            }
            pairs.append(
                Node.Scalar("\(left.string): \(right.string)", .implicit, .any, key.mark))
        }
        return pairs
    }

    mutating func mapping(_ node: Node, _ name: String) -> Node.Mapping? {
        if let mapping = node.mapping { return mapping }
        self.report(node, "\(name): takes settings of its own, such as \"name: value\"")
        return nil
    }

    mutating func items(_ node: Node, _ name: String) -> [Node]? {
        if let sequence = node.sequence { return Array(sequence) }
        self.report(node, "\(name): takes a list, each item beginning with \"- \"")
        return nil
    }
}

extension SettingsReader {
    /// What no row of its own can check.
    private mutating func checkTogether() {
        let names = self.settings.sessions.map(\.name.text)
        for (index, listener) in self.settings.listeners.enumerated() {
            let label = "listeners[\(index)]"
            if !names.contains(listener.session.text) {
                let nearest = NearestName.of(listener.session.text, among: names)
                let hint =
                    nearest.map { "did you mean \"\($0)\"?" }
                    ?? "there are: \(names.joined(separator: ", "))"
                self.report(
                    at: self.marks[label],
                    "\(label).session: there is no session \"\(listener.session.text)\"; \(hint)")
            }
            let address = listener.address
            if self.settings.listeners[..<index].contains(where: { $0.address == address }),
                !address.takesFreePort
            {
                self.report(
                    at: self.marks[label],
                    "\(label).address: \(address.settingText) is given to another listener already")
            }
        }
        for session in self.settings.sessions { self.check(session) }
        for (index, rule) in self.settings.cacheRules.enumerated() {
            for session in rule.sessions where !names.contains(session.text) {
                let nearest = NearestName.of(session.text, among: names)
                let remedy = nearest.map { "; did you mean \"\($0)\"?" } ?? ""
                self.report(
                    at: self.ruleMarks[index],
                    "cache-rules[\(index)].sessions: there is no session \"\(session.text)\"\(remedy)"
                )
            }
        }
        self.checkCacheRules()
    }

    private mutating func check(_ session: SessionSettings) {
        let label = "sessions.\(session.name.text)"
        let disk = "\(label).cache.disk"
        if session.kind == .ephemeral, session.cache.disk.bytes > 0, self.origins[disk] != nil {
            self.report(
                at: self.marks[label],
                "\(disk): an ephemeral session keeps nothing on disk; remove this or its kind")
        }
        let twin = self.settings.sessions.first {
            $0.name != session.name && $0.cache.directory == session.cache.directory
        }
        if let twin, let directory = session.cache.directory, twin.name.text < session.name.text {
            self.report(
                at: self.marks[label],
                "\(label).cache.directory: \(directory.text) is the cache of session "
                    + "\"\(twin.name.text)\" already")
        }
    }
}

extension ListenAddress {
    fileprivate var takesFreePort: Bool {
        switch self {
        case .ip(_, let port), .everywhere(let port), .localhost(let port): port == 0
        case .unix: false
        }
    }
}
