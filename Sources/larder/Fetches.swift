import ArgumentParser
import LarderConfig
import LarderControl

/// The verb `larder fetches`.
struct Fetches: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List what the running proxy is fetching from origins.",
        discussion: """
            Of each session what others may share: the URL, how much has come of it, and how many \
            clients receive it. Neither answers from the cache nor tunnels are in it, nor requests that \
            go to the origin for one client alone.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func run() async throws {
        guard var client = try self.options.load().runningProxy(patience: .seconds(10)) else {
            throw CommandFailure(
                .unavailable, "no proxy is running, and only a running one fetches anything",
                remedy: CommandFailure.start)
        }
        var text = FetchesText(width: Output.width)
        try client.send(.listFetches) { reply in
            guard case .fetch(let fetch) = reply else { return true }
            if self.json {
                try Output.line(try JSONLine.of(fetch))
            } else {
                for line in text.add(fetch) { try Output.line(line) }
            }
            return true
        }
        for line in text.finish() { try Output.line(line) }
    }
}

/// The listing of `larder fetches`, for people.
struct FetchesText {
    private var table: Table

    init(width: Int?) {
        self.table = Table(
            [
                .init(title: "URL", isElastic: true), .init(title: "RECEIVED", isNumber: true),
                .init(title: "CLIENTS", isNumber: true), .init(title: "SESSION"),
            ], width: width)
    }

    mutating func add(_ fetch: FetchRecord) -> [String] {
        let part = fetch.principal.map { " (\($0))" } ?? ""
        return self.table.add([
            Printable.text(fetch.url), Human.size(fetch.bytesReceived),
            Human.count(UInt64(clamping: fetch.clients)), Printable.text(fetch.session + part),
        ])
    }

    mutating func finish() -> [String] { self.table.finish() }
}
