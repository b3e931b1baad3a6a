import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon

/// What `larder cache purge` is to remove.
typealias CacheSelection = PurgeSelection

/// The arguments `URL | --host H | --pattern GLOB | --all`.
struct SelectionArguments: ParsableArguments {
    @Argument(help: "Every variant of this URL.", transform: urlArgument)
    var url: String?

    @Option(
        help: ArgumentHelp(
            "Everything of this host; *.example.com stands for all below it, .example.com for both.",
            valueName: "host"))
    var host: HostSelector?

    @Option(
        help: ArgumentHelp(
            "Every URL that this fits as a whole; * stands for anything.", valueName: "glob"),
        transform: patternArgument)
    var pattern: String?

    @Flag(help: "Everything.")
    var all = false

    func selection() throws(CommandFailure) -> CacheSelection {
        let given: [CacheSelection?] = [
            self.url.map { .url($0) }, self.host.map { .host($0.text) },
            self.pattern.map { .pattern($0) }, self.all ? .all : nil,
        ]
        let selections = given.compactMap(\.self)
        guard let selection = selections.first, selections.count == 1 else {
            throw CommandFailure(
                .usage,
                selections.isEmpty ? "nothing to remove is named" : "several things are named",
                remedy: "give one of URL, --host, --pattern and --all")
        }
        return selection
    }
}
