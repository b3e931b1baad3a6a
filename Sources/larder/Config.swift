import ArgumentParser
import LarderConfig
import LarderDaemon

/// The verb `larder config …`.
struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check and show the configuration.",
        subcommands: [ConfigCheck.self, ConfigShow.self, ConfigSettings.self])
}

/// The verb `larder config check [FILE]`.
struct ConfigCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Tell everything that is wrong with a configuration file.",
        discussion: """
            The files that it names for clients, certificates and the access log are tried, too, by the \
            user who asks.
            """)

    @Argument(
        help: "The file; the one that would be used where none is named.", completion: .file())
    var file: String?

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let loaded = try Configuration.load(
            named: self.file ?? self.options.file, environment: self.options.environment,
            currentDirectory: ConfigurationOptions.currentDirectory)
        let files = NamedFiles(trying: loaded)
        for warning in loaded.warnings + files.warnings {
            try Output.line("\(warning) (warning)")
        }
        guard files.problems.isEmpty else { throw ConfigurationError(problems: files.problems) }
        try Output.line(
            loaded.file.map { "\($0): no mistakes" } ?? "there is no file; defaults apply")
    }
}

/// The verb `larder config show`.
struct ConfigShow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show every value that a start would have, and where it comes from.")

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Print one JSON object a line.")
    var json = false

    private struct Row: Encodable {
        var setting: String
        var value: String
        var origin: String
    }

    func run() throws {
        let loaded = try self.options.load()
        var table = Table(
            [.init(title: "SETTING"), .init(title: "VALUE"), .init(title: "FROM")], width: nil)
        for setting in SettingsTable.effective(loaded) {
            let origin =
                switch setting.origin {
                case .default: "default"
                case .file(let line): "\(loaded.file ?? "file"):\(line)"
                }
            if self.json {
                try Output.line(
                    try JSONLine.of(
                        Row(setting: setting.path, value: setting.value, origin: origin)))
            } else {
                for line in table.add([setting.path, setting.value, origin]) {
                    try Output.line(line)
                }
            }
        }
        for line in table.finish() { try Output.line(line) }
    }
}

/// The verb `larder config settings`.
struct ConfigSettings: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings", abstract: "Describe every setting.")

    @Argument(help: "The setting of this name; where there is none, those whose name contains it.")
    var part: String?

    @Flag(help: "Print the configuration file that ships with Larder.")
    var yaml = false

    @Flag(help: "Print one JSON object a line.")
    var json = false

    private struct Row: Encodable {
        var setting: String
        var kind: String
        var list: Bool
        var standard: String
        var example: String?
        var bounds: String?
        var reload: Bool
        var about: String
    }

    func run() throws {
        if self.yaml { return try Output.bytes(Array(SettingsTable.shippedFile.utf8)) }
        let settings = Self.settings(named: self.part)
        for setting in settings {
            if self.json {
                try Output.line(
                    try JSONLine.of(
                        Row(
                            setting: setting.path, kind: setting.kind, list: setting.isList,
                            standard: setting.standard, example: setting.example,
                            bounds: setting.bounds,
                            reload: setting.changesWhileRunning, about: setting.about)))
            } else {
                for line in Self.lines(setting, width: min(Output.width ?? 100, 100)) {
                    try Output.line(line)
                }
            }
        }
        guard !settings.isEmpty else {
            throw CommandFailure(
                .nothingFound, "no setting's name contains \"\(self.part ?? "")\"",
                remedy: "\"larder config settings\" lists all")
        }
    }

    /// All settings for nil.
    private static func settings(named part: String?) -> [SettingDescription] {
        let all = SettingsTable.descriptions
        guard let part else { return all }
        let exact = all.filter { $0.path == part }
        return exact.isEmpty ? all.filter { $0.path.contains(part) } : exact
    }

    private static func lines(_ setting: SettingDescription, width: Int) -> [String] {
        var facts = setting.isList ? "list of \(setting.kind)" : setting.kind
        if let bounds = setting.bounds { facts += ", \(bounds)" }
        if let example = setting.example { facts += "; for example \(example)" }
        facts += setting.changesWhileRunning ? "; reload" : "; restart"
        return ["\(setting.path): \(setting.standard)"]
            + ["(\(facts))", setting.about].flatMap { text in
                Prose.wrap(text, width: width - 4).map { "    \($0)" }
            } + [""]
    }
}
