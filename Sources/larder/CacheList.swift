import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon

/// The verb `larder cache list`.
struct CacheList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List what is stored.",
        discussion: """
            Rows come as they are found, in no order that means anything, unless they are to be \
            sorted. On a terminal they stand in a table; elsewhere one space lies between columns, \
            and numbers are bytes and seconds. With --json, "variant" tells responses for one URL apart: \
            the request's fields that select each, as Vary names them.

            Exit status: 0 also where there is nothing to list.
            """)

    @OptionGroup(title: "Which ones") var which: ListArguments
    @OptionGroup(title: "In what order") var order: ListOrderArguments
    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption
    @OptionGroup var principal: PrincipalOption

    @Flag(help: "Print one JSON object a line.")
    var json = false

    @Flag(
        name: [.customShort("0"), .customLong("null")],
        help: "Only the URLs, each with a NUL byte behind it, as \"xargs -0\" takes them.")
    var null = false

    func validate() throws {
        try self.which.check()
        try self.order.check()
        if self.json, self.null {
            throw ValidationError("--json and --null are two forms; give one of them")
        }
    }

    func run() async throws {
        let view = try CacheView(self.options, self.session)
        Interruption.listen()
        let form: RowWriter.Form = self.json ? .json : self.null ? .urls : .columns
        var writer = RowWriter(form, width: Output.width)
        var progress = ListProgress(total: try view.disk?.figures().objects ?? 0)
        var filter = self.which.filter
        filter.principal = try self.principal.principal(in: view.session)
        let listing = CacheListing(view: view, filter: filter)
        if let order = self.order.sort {
            try self.sorted(by: order, listing, &writer, &progress)
        } else {
            try self.streamed(listing, &writer, &progress)
        }
        progress.hide()
        try writer.finish()
    }

    /// Writes rows as they are found.
    private func streamed(
        _ listing: CacheListing, _ writer: inout RowWriter, _ progress: inout ListProgress
    ) throws {
        var left = self.order.limit ?? .max
        guard left > 0 else { return }
        try listing.forEach { walked in
            progress.step(walked)
            if writer.isWaiting(at: .now) { try writer.settle(after: { progress.hide() }) }
        } _: { row in
            try writer.write(row, after: { progress.hide() })
            left -= 1
            return left > 0
        }
    }

    /// Finds all rows first, and writes them in order.
    private func sorted(
        by order: RowOrder, _ listing: CacheListing, _ writer: inout RowWriter,
        _ progress: inout ListProgress
    ) throws {
        var sorter = RecordSorter(wanted: self.order.limit, isReversed: self.order.reverse)
        try listing.forEach {
            progress.step($0)
        } _: { row in
            try sorter.add(RowRecord.of(row, by: order))
            return true
        }
        progress.begin("writing", total: sorter.count)
        try sorter.finish { record in
            guard let row = RowRecord.row(record) else {
                throw CommandFailure(.inputOutput, "what was sorted is damaged")
            }
            try writer.write(row, after: { progress.hide() })
            progress.step(1)
            return true
        }
    }
}

/// The arguments that say which stored responses are listed.
struct ListArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only responses of this host; *.example.com stands for all below it, .example.com "
                + "for both.", valueName: "host"))
    var host: HostSelector?

    @Option(
        name: [.customLong("url"), .customLong("pattern")],
        help: ArgumentHelp(
            "Only URLs that this fits as a whole; * stands for anything.", valueName: "glob"),
        transform: patternArgument)
    var pattern: String?

    @Option(help: ArgumentHelp("Only responses larger than this: 512K, 10 MiB.", valueName: "size"))
    var largerThan: SizeArgument?

    @Option(help: ArgumentHelp("Only responses smaller than this.", valueName: "size"))
    var smallerThan: SizeArgument?

    @Flag(help: "Only responses that must be validated before use.")
    var stale = false

    @Flag(help: "Only responses that may be used as they are.")
    var fresh = false

    @Flag(help: "Only responses that are stored in part.")
    var partial = false

    @Option(
        help: ArgumentHelp(
            "Only what lies in this tier, or in both: memory or disk.", valueName: "tier"),
        completion: .list(["memory", "disk"]))
    var tier: String?

    @Option(
        help: ArgumentHelp("Only answers to this method.", valueName: "method"),
        transform: methodArgument)
    var method: String?

    @Option(
        help: ArgumentHelp("Only responses with this status: 404, or 4xx.", valueName: "status"))
    var status: StatusPattern?

    func check() throws(ValidationError) {
        if self.stale, self.fresh {
            throw ValidationError("--stale and --fresh together are everything; give one of them")
        }
        if let tier = self.tier, tier != "memory", tier != "disk" {
            throw ValidationError("there is no tier \"\(tier)\"; there are: memory, disk")
        }
    }

    var filter: ListFilter {
        ListFilter(
            host: self.host, pattern: self.pattern.map { Glob($0) },
            largerThan: self.largerThan?.bytes, smallerThan: self.smallerThan?.bytes,
            isFresh: self.stale ? false : self.fresh ? true : nil, isPartial: self.partial,
            tier: self.tier.flatMap { CacheTier(rawValue: $0) },
            method: self.method, status: self.status)
    }
}

/// The arguments that say in what order rows come, and how many.
struct ListOrderArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Sort by this column: names in the order of their letters, numbers the largest first.",
            valueName: "column"))
    var sort: RowOrder?

    @Flag(help: "Sort the other way round.")
    var reverse = false

    @Option(help: ArgumentHelp("List at most so many.", valueName: "rows"))
    var limit: Int?

    func check() throws(ValidationError) {
        if self.reverse, self.sort == nil {
            throw ValidationError("--reverse needs an order to turn round; give --sort, too")
        }
        if let limit = self.limit, limit < 0 {
            throw ValidationError("--limit \(limit): there are no fewer than 0 rows")
        }
    }
}
