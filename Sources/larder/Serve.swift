import ArgumentParser
import LarderConfig
import LarderDaemon

/// The verb `larder serve`.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the proxy.",
        discussion: """
            SIGTERM and SIGINT let exchanges under way end, within timeouts.drain; a second one ends \
            at once. SIGHUP reads the configuration again and opens log files anew.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: ArgumentHelp(
            "Listen here instead of where the configuration says; may be repeated.",
            valueName: "address"))
    var listen: [String] = []

    func run() async throws {
        let read: @Sendable () throws(ConfigurationError) -> LoadedSettings = {
            [options, listen] () throws(ConfigurationError) in
            var loaded = try options.load()
            if !listen.isEmpty { loaded.settings.listeners = try Self.listeners(listen) }
            return loaded
        }
        try await Daemon.serve(try read(), reload: read, announce: Output.note)
    }

    static func listeners(
        _ addresses: [String]
    ) throws(ConfigurationError) -> [ListenerSettings] {
        var listeners: [ListenerSettings] = []
        for text in addresses {
            do throws(SettingTextProblem) {
                listeners.append(ListenerSettings(address: try ListenAddress(settingText: text)))
            } catch {
                let cause = error.cause.map { " \($0); expected " } ?? " is not "
                throw ConfigurationError(problems: [
                    ConfigurationProblem(
                        file: "--listen", message: "\"\(text)\"\(cause)\(ListenAddress.expectation)"
                    )
                ])
            }
        }
        return listeners
    }
}
