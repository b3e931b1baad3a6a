/// Loads the configuration: finds the file, reads it, checks it.
package enum Configuration {
    /// A file larger than this is not a configuration.
    package static let largestFile = 1 << 20

    /// Reads settings from text, and the presets that it names from their files.
    ///
    /// - Parameters:
    ///   - file: the file's name, for messages and origins.
    ///   - environment: decides where things lie.
    /// - Throws: every problem of the file.
    package static func parse(
        _ text: String, file: String, environment: ProcessEnvironment
    ) throws(ConfigurationError) -> LoadedSettings {
        guard text.utf8.count <= Self.largestFile else {
            throw ConfigurationError(problems: [
                ConfigurationProblem(file: file, message: "larger than 1 MiB; not a configuration")
            ])
        }
        let places = Places.of(environment, configuration: file)
        let read = try SettingsReader.read(text, file: file, places: places) { directory in
            PresetLibrary(
                directories: directory.map { [$0.text] }
                    ?? environment.presetDirectories(configuration: file))
        }
        var loaded = LoadedSettings(
            settings: read.settings, file: file, origins: read.origins, places: places,
            cacheRules: read.cacheRules)
        loaded.fileWarnings = read.warnings
        loaded.grounds = read.grounds
        return loaded
    }

    /// Loads the named file, or the first that is found where one may lie, or the defaults.
    ///
    /// - Parameters:
    ///   - named: the file that the user named; it must exist.
    ///   - currentDirectory: what a relative name is relative to.
    /// - Throws: every problem of the file, or that it cannot be read.
    package static func load(
        named: String?, environment: ProcessEnvironment, currentDirectory: String
    ) throws(ConfigurationError) -> LoadedSettings {
        if let named {
            let path = named.hasPrefix("/") ? named : "\(currentDirectory)/\(named)"
            guard let text = try Self.contents(path) else {
                throw ConfigurationError(problems: [
                    ConfigurationProblem(file: path, message: "there is no such file")
                ])
            }
            return try Self.parse(text, file: path, environment: environment)
        }
        for path in environment.configurationFiles {
            guard let text = try Self.contents(path) else { continue }
            return try Self.parse(text, file: path, environment: environment)
        }
        return LoadedSettings(
            settings: Settings(), file: nil, places: .of(environment, configuration: nil))
    }
}
