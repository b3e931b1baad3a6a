import ArgumentParser
import LarderConfig
import LarderDaemon

/// The verb `larder serve`.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the proxy.",
        discussion: """
            SIGTERM and SIGINT let exchanges under way end, within timeouts.drain; a second one ends \
            at once. SIGHUP reads the configuration again and opens log files anew, as "larder reload" does.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: ArgumentHelp(
            "Listen here instead of where the configuration says; may be repeated.",
            discussion: """
                One address replaces that of a single listener, which keeps its other settings. \
                Otherwise listeners are replaced as a whole, which is refused where one has settings \
                other than the defaults; those whose address is named stay.
                """, valueName: "address"))
    var listen: [String] = []

    func run() async throws {
        let override = try ListenOverride(self.listen)
        let readAgain: @Sendable () throws(ConfigurationError) -> LoadedSettings = {
            [options] () throws(ConfigurationError) in
            var loaded = try options.loadAgain()
            if let objection = override.objection(to: loaded.settings) {
                throw ConfigurationError(
                    problems: objection.causes.map {
                        ConfigurationProblem(file: loaded.file ?? "--listen", message: $0)
                    })
            }
            override.apply(to: &loaded)
            return loaded
        }
        // Once: the configuration may be a pipe, which has nothing for whoever reads it again.
        var loaded = try self.options.load()
        // Of the start the usage is wrong; of a reload the file that has changed since.
        if let objection = override.objection(to: loaded.settings) { throw objection }
        override.apply(to: &loaded)
        try await Daemon.serve(loaded, reload: readAgain)
    }
}
