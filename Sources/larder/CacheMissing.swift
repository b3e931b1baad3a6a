import ArgumentParser
import LarderConfig
import LarderControl

/// The verb `larder cache missing`.
struct CacheMissing: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "missing",
        abstract: "List what was asked for offline and was not in the cache.",
        discussion: """
            A session or listener with the cache policy return-cache-dont-load asks no origin. The \
            running proxy remembers what was missing then, the first missed first, until it ends.
            """)

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    @Flag(help: "Forget them once they are listed.")
    var clear = false

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func run() async throws {
        let view = try CacheView(self.options, self.session)
        var text = CacheMissingText(
            width: Output.width, isSplit: view.session.principals != .none)
        var unlisted: UInt64 = 0
        let name = view.session.name.text
        let isAsked = try view.ask(.listMissing(session: name, clears: self.clear)) { reply in
            switch reply {
            case .missing(let miss):
                if self.json {
                    try Output.line(try JSONLine.of(miss))
                } else {
                    for line in text.add(miss) { try Output.line(line) }
                }
            case .unlistedMissing(let count): unlisted = count
            default: break
            }
            return true
        }
        guard isAsked else {
            throw CommandFailure(
                .unavailable, "no proxy is running, and only a running one knows what was missing",
                remedy: CommandFailure.start)
        }
        for line in text.finish() { try Output.line(line) }
        if unlisted > 0 {
            Output.note("\(Human.count(unlisted, "request")) for further URLs are not listed")
        }
    }
}

/// The listing of `larder cache missing`, for people.
struct CacheMissingText {
    private let isSplit: Bool
    private var table: Table

    /// - Parameter isSplit: the session has principals, and it is to be told who asked.
    init(width: Int?, isSplit: Bool) {
        self.isSplit = isSplit
        var columns: [Table.Column] = [
            .init(title: "URL", isElastic: true), .init(title: "COUNT", isNumber: true),
            .init(title: "FIRST"), .init(title: "LAST"),
        ]
        if isSplit { columns.append(.init(title: "PRINCIPAL")) }
        self.table = Table(columns, width: width)
    }

    mutating func add(_ miss: MissingURL) -> [String] {
        let method = miss.method == "GET" ? "" : "\(miss.method) "
        var cells = [
            Printable.text(method + miss.url), Human.count(miss.count),
            Human.date(microseconds: miss.firstMicroseconds),
            Human.date(microseconds: miss.lastMicroseconds),
        ]
        if self.isSplit { cells.append(Printable.text(miss.principal ?? "-")) }
        return self.table.add(cells)
    }

    mutating func finish() -> [String] { self.table.finish() }
}
