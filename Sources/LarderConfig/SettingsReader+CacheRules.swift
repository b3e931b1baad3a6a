import Yams

/// Cache rules, and the presets that are files of them.
extension SettingsReader {
    mutating func readCacheRules(_ node: Node) {
        guard let items = self.items(node, "cache-rules") else { return }
        self.settings.cacheRules = items.map { _ in CacheRuleSettings() }
        self.ruleMarks = items.map(\.mark)
        for (index, item) in items.enumerated() {
            let label = "cache-rules[\(index)]"
            self.marks[label] = item.mark
            guard let mapping = self.mapping(item, label) else { continue }
            self.read(
                mapping, by: SettingsTable.cacheRule, label: "\(label).",
                into: \.cacheRules[index])
        }
    }

    /// Reads the cache rules of one preset.
    static func readPreset(
        _ text: String, file: String, name: String
    ) throws(ConfigurationError) -> [LocatedRule] {
        var reader = SettingsReader(file: file)
        if let root = try reader.compose(text) {
            if let mapping = root.mapping {
                for (key, value) in mapping {
                    if key.plain == "cache-rules" {
                        reader.readCacheRules(value)
                    } else {
                        reader.report(key, "\(key.plain): a preset has only \"cache-rules:\"")
                    }
                }
            } else {
                reader.report(root, "a preset must hold \"cache-rules:\"")
            }
        }
        reader.checkCacheRules()
        try reader.throwProblems()
        return reader.locatedRules(calling: name)
    }

    /// What no row of its own can check.
    mutating func checkCacheRules() {
        for (index, rule) in self.settings.cacheRules.enumerated() {
            if let minimum = rule.minimum, let maximum = rule.maximum, minimum > maximum {
                self.report(
                    at: self.ruleMarks[index],
                    "cache-rules[\(index)]: the minimum of \(minimum.settingText) is above the "
                        + "maximum of \(maximum.settingText)")
            }
        }
    }

    /// The rules with their names and lines.
    func locatedRules(calling list: String) -> [LocatedRule] {
        self.settings.cacheRules.enumerated().map { index, rule in
            LocatedRule(
                rule: rule, name: rule.name?.text ?? "\(list)[\(index)]", file: self.file,
                line: self.ruleMarks[index]?.line ?? 0)
        }
    }

    /// The rules of all presets that the file names.
    ///
    /// A preset that is wrong in itself is told with its own file and line.
    mutating func readPresets(from library: PresetLibrary) -> [LocatedRule] {
        var rules: [LocatedRule] = []
        for (index, name) in self.settings.presets.enumerated() {
            let mark = self.presetMarks.indices.contains(index) ? self.presetMarks[index] : nil
            do throws(ConfigurationError) {
                guard let preset = try library.text(of: name) else {
                    self.reportUnknownPreset(name, at: mark, library)
                    continue
                }
                rules += try Self.readPreset(
                    preset.text, file: preset.path, name: name.text)
            } catch {
                self.problems += error.problems
            }
        }
        return rules
    }

    private mutating func reportUnknownPreset(
        _ name: PresetName, at mark: Mark?, _ library: PresetLibrary
    ) {
        let known = library.names
        var message = "presets: there is no preset \"\(name.text)\""
        if let nearest = NearestName.of(name.text, among: known) {
            message += "; did you mean \"\(nearest)\"?"
        } else if known.isEmpty {
            message += ", nor any other, in \(library.directories.joined(separator: ", "))"
        } else {
            message += "; there are: \(known.joined(separator: ", "))"
        }
        self.report(at: mark, message)
    }
}
