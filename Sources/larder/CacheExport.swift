import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon
import LarderDisk

/// The verb `larder cache export`.
struct CacheExport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write what is stored on disk to a WARC or HAR file.",
        discussion: """
            WARC 1.1 (ISO 28500:2017): a request and a response record for each stored response, \
            with digests, whether a proxy runs or not. What is stored later than the beginning is \
            left out, and so is what is damaged or removed meanwhile, or has a head that no import \
            takes, which is counted. HAR has no room for heads that are not UTF-8, nor for more than \
            64 MiB of a response, in base 64 or escaped. The file has no name until it is whole, and \
            is readable by its owner alone: stored heads may hold cookies.
            """)

    @Argument(help: "The file; - is standard output.", completion: .file())
    var file: String

    @Argument(help: "Only the variants of this URL.", transform: urlArgument)
    var url: String?

    @Option(
        help: ArgumentHelp(
            "Only responses of this host; *.example.com stands for all below it, .example.com "
                + "for both.", valueName: "host"))
    var host: HostSelector?

    @Option(
        help: ArgumentHelp(
            "Only URLs that this fits as a whole; * stands for anything.", valueName: "glob"),
        transform: patternArgument)
    var pattern: String?

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    @Flag(help: "Write HAR 1.2 instead, for tools that read it.")
    var har = false

    @Flag(help: "Write over a file of that name.")
    var force = false

    @Flag(help: "Print the summary as one JSON object.")
    var json = false

    func run() async throws {
        let filter = try PurgeFilter(try self.selection())
        let view = try CacheView(self.options, self.session)
        guard let directory = view.loaded.cacheDirectory(of: view.session), view.disk != nil else {
            throw CommandFailure(
                .nothingFound, "the session \(view.session.name.text) has nothing on disk")
        }
        let output = try ArchiveFile(name: self.file, replaces: self.force)
        let summary = try self.export(directory, filter, to: output)
        try output.finish()
        // Standard output may be the archive.
        let text = self.json ? try JSONLine.of(summary) : summary.text
        if self.file == "-" { Output.note(text) } else { try Output.line(text) }
    }

    func selection() throws(CommandFailure) -> PurgeSelection {
        let given: [PurgeSelection] = [
            self.url.map { .url($0) }, self.host.map { .host($0.text) },
            self.pattern.map { .pattern($0) },
        ].compactMap(\.self)
        guard given.count < 2 else {
            throw CommandFailure(
                .usage, "several things are named", remedy: "give one of URL, --host and --pattern")
        }
        return given.first ?? .all
    }

    private func export(
        _ directory: String, _ filter: PurgeFilter, to output: ArchiveFile
    ) throws -> ExportSummary {
        let activity = ActivityLine()
        defer { activity.clear() }
        let began = wallClockMicroseconds()
        do {
            let inspector = try DiskInspector(directory: directory)
            let source = try ExportSource(inspector, startMicroseconds: began)
            let writer: any ExportFormat =
                self.har
                ? HARWriter(output, source: source)
                : WARCWriter(
                    output, source: source, session: self.session.session,
                    name: self.file == "-" ? nil : self.file)
            try writer.begin()
            try inspector.forEachObject { object in
                guard filter.matches(object.key) else { return true }
                try writer.write(object)
                let now = wallClockMicroseconds()
                activity.show(at: now) { writer.summary.progress(elapsed: now - began) }
                return true
            }
            try writer.end()
            return writer.summary
        } catch let error as StoreError {
            throw CommandFailure(store: error)
        }
    }
}

/// What an export came to.
struct ExportSummary: Encodable, Equatable {
    var responses: UInt64 = 0
    var records: UInt64 = 0
    var bodyBytes: UInt64 = 0
    var fileBytes: UInt64 = 0
    /// Stored responses that are not in the file, by reason.
    var leftOut: [String: UInt64] = [:]

    mutating func leave(out reason: ExportRefusal) {
        self.leftOut[reason.rawValue, default: 0] += 1
    }

    var text: String {
        let parts =
            [
                "exported \(Human.count(self.responses, "response")), \(Human.size(self.bodyBytes))"
            ]
            + self.leftOut.sorted { $0.key < $1.key }.map { "\(Human.count($0.value)) \($0.key)" }
        return parts.joined(separator: "; left out: ")
    }

    func progress(elapsed microseconds: Int64) -> String {
        "\(Human.count(self.responses, "response")), \(Human.size(self.fileBytes)), "
            + VerifySummary.rate(self.fileBytes, microseconds: microseconds)
    }
}

/// Why a stored response is not exported.
enum ExportRefusal: String, Error {
    /// It was stored after the export had begun.
    case later = "stored-later"
    case removed = "removed-meanwhile"
    case damaged = "damaged"
    /// Its key says more than a URI that may be shown: a password.
    case unnameable = "key-with-credentials"
    /// An import would refuse it, and all that lies behind it.
    case headTooLarge = "head-too-large"
    /// JSON has no bytes that are not UTF-8.
    case headNotText = "head-not-text"
    /// An import would not hold its entry.
    case tooLarge = "too-large"
}
