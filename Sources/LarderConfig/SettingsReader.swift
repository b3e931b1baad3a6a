import Yams

/// Reads a configuration file into settings, by the table.
///
/// Goes on after a problem, so that one look shows all that is wrong. Only what breaks the YAML
/// itself, or a key given twice, ends the reading.
struct SettingsReader {
    let file: String
    /// Where sessions keep what they are given no place for; nil where no session is read.
    private(set) var places: Places?
    var problems: [ConfigurationProblem] = []
    /// What is right but can have no effect; no reason to refuse the file.
    var warnings: [ConfigurationProblem] = []
    private(set) var origins: [String: SettingOrigin] = [:]
    var settings = Settings()
    /// Where each setting and each section that was given stands, for checks once all are known.
    var marks: [String: Mark] = [:]

    var ruleMarks: [Mark?] = []
    var presetMarks: [Mark?] = []

    private static let groups = [
        "listeners", "routes", "sessions", "access", "injections", "parents", "cache-rules",
    ]

    init(file: String) {
        self.file = file
    }

    /// What a file says.
    struct Result {
        var settings: Settings
        var origins: [String: SettingOrigin]
        var cacheRules: [LocatedRule]
        var warnings: [ConfigurationProblem]
        var grounds: ListenerGrounds
    }

    /// - Parameters:
    ///   - file: the file's name, for messages.
    ///   - places: where sessions keep what the file gives no place.
    ///   - library: where the presets are that the file names; gets the directory that it names.
    static func read(
        _ text: String, file: String, places: Places, library: (FilePath?) -> PresetLibrary
    ) throws(ConfigurationError) -> Result {
        var reader = SettingsReader(file: file)
        reader.places = places
        if let root = try reader.compose(text) { reader.readRoot(root) }
        reader.checkTogether()
        var rules = reader.locatedRules(calling: "cache-rules")
        if !reader.settings.presets.isEmpty {
            rules += reader.readPresets(from: library(reader.settings.presetDirectory))
        }
        try reader.throwProblems()
        return Result(
            settings: reader.settings, origins: reader.origins, cacheRules: rules,
            warnings: reader.warnings, grounds: reader.listenerGrounds)
    }

    /// The one document of a text; nil where it is empty.
    func compose(_ text: String) throws(ConfigurationError) -> Node? {
        do {
            let root = try Yams.compose(yaml: text)
            return root.flatMap { $0.isEmptyScalar ? nil : $0 }
        } catch {
            throw ConfigurationError(problems: self.problems(of: error, in: text))
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
            case "routes":
                self.readList(value, "routes", by: SettingsTable.route, \.routes, .init())
            case "injections":
                self.readList(
                    value, "injections", by: SettingsTable.injection, \.injections, .init())
            case "parents":
                self.readList(value, "parents", by: SettingsTable.parent, \.parents, .init())
            default:
                self.readList(value, "access", by: SettingsTable.access, \.access, .init())
            }
        }
        self.read(
            mapping, by: SettingsTable.general, label: "", into: \.self, besides: Self.groups)
    }

    private mutating func readListeners(_ node: Node) {
        self.readList(node, "listeners", by: SettingsTable.listener, \.listeners, .init())
        if self.settings.listeners.isEmpty {
            self.report(
                node,
                "listeners: there is none; leave it out for the default, or name one, such as "
                    + "\"- address: 127.0.0.1:3128\"")
        }
    }

    /// Reads a list of sections.
    private mutating func readList<Section>(
        _ node: Node, _ name: String, by table: [Setting<Section>],
        _ list: WritableKeyPath<Settings, [Section]>, _ fresh: Section
    ) {
        guard let items = self.items(node, name) else { return }
        self.settings[keyPath: list] = items.map { _ in fresh }
        if items.isEmpty, let mark = node.mark {
            self.marks[name] = mark
            self.origins[name] = .file(line: mark.line)
        }
        for (index, item) in items.enumerated() {
            let label = "\(name)[\(index)]"
            self.marks[label] = item.mark
            guard let mapping = self.mapping(item, label) else { continue }
            if let need = Self.needs[name], mapping[need.key] == nil {
                self.report(item, "\(label): needs \(need.remedy)")
            }
            self.read(
                mapping, by: table, label: "\(label).", into: list.appending(path: \.[index]))
        }
    }

    /// The one setting that each item of a list must have.
    private static let needs: [String: (key: String, remedy: String)] = [
        "listeners": ("address", "an address, such as 127.0.0.1:3128"),
        "access": ("action", "an action, allow or deny"),
        "routes": ("session", "a session, the one that answers"),
        "injections": ("credential", "a credential, by its name in \"larder credentials\""),
        "parents": ("via", "a way, such as via: direct or via: http://proxy.example.com:3128"),
    ]

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
                // A word in the place of the mapping is its mode: `cookies: jar`.
                if value.scalar != nil, let mode = table.first(where: { $0.path == "\(path).mode" })
                {
                    self.read(value, key: key, as: mode, label: label, into: section)
                    continue
                }
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
            if let example = setting.pairs {
                self.pairs(value, name, such: example)
            } else {
                self.scalars(value, key: key, setting.isList, name)
            }
        guard let scalars = found else { return }
        let problems = setting.accept(scalars.map(\.string), &self.settings[keyPath: section])
        if setting.path == "presets" { self.presetMarks = scalars.map { $0.mark ?? key.mark } }
        self.marks[name] = value.mark ?? key.mark
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
    private mutating func pairs(
        _ value: Node, _ name: String, such example: String
    ) -> [Node.Scalar]? {
        guard let mapping = value.mapping else {
            self.report(value, "\(name): takes pairs, such as \(example)")
            return nil
        }
        var pairs: [Node.Scalar] = []
        for (key, value) in mapping {
            guard let left = key.scalar, let right = value.scalar, !value.isEmptyScalar else {
                self.report(key, "\(name): takes pairs of plain values, such as \(example)")
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
    /// Where a setting stands, or else the nearest section around it that was given.
    func mark(_ path: String) -> Mark? {
        var path = path[...]
        while true {
            if let mark = self.marks[String(path)] { return mark }
            guard let end = path.lastIndex(of: ".") else { return nil }
            path = path[..<end]
        }
    }

    /// ` (line 3)` where the setting was given; nothing where it has its default.
    func line(_ path: String) -> String {
        self.mark(path).map { " (line \($0.line))" } ?? ""
    }
}
