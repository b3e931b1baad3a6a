import ArgumentParser
import LarderConfig
import LarderControl

/// The verb `larder transfers …`.
struct Transfers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List and cancel the transfers of background sessions.",
        discussion: """
            What a session of kind background has begun to store becomes a transfer of the proxy's \
            own: it goes on when its client leaves, is asked for again where it broke off, and is taken \
            up again after a restart. Without a verb they are listed.
            """,
        subcommands: [TransfersList.self, TransfersCancel.self],
        defaultSubcommand: TransfersList.self)
}

/// `--config`, and `--session` for one session in place of all.
struct TransferOptions: ParsableArguments {
    @OptionGroup var options: ConfigurationOptions

    @Option(help: ArgumentHelp("Only those of this session.", valueName: "name"))
    var session: String?

    /// A connection with the running proxy.
    func client() throws -> ControlClient {
        let loaded = try self.options.load()
        if let session = self.session { _ = try loaded.session(named: session) }
        guard let client = try loaded.runningProxy(patience: .seconds(10)) else {
            throw CommandFailure(
                .unavailable,
                "no proxy is running, and only a running one transfers anything (what was under way "
                    + "is remembered, and the next one goes on with it)",
                remedy: CommandFailure.start)
        }
        return client
    }
}

/// The verb `larder transfers list`.
struct TransfersList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List transfers, with what has come of each, and what it waits for.",
        discussion: """
            Of each session the oldest first. RECEIVED is of the response that is arriving: what is \
            asked for again goes on where it broke off, if the origin allows that, and else begins anew.
            """)

    @OptionGroup var transfers: TransferOptions

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func run() async throws {
        var client = try self.transfers.client()
        var text = TransfersText(width: Output.width, now: wallClockMicroseconds())
        try client.send(.listTransfers(session: self.transfers.session)) { reply in
            guard case .transfer(let transfer) = reply else { return true }
            if self.json {
                try Output.line(try JSONLine.of(transfer))
            } else {
                for line in text.add(transfer) { try Output.line(line) }
            }
            return true
        }
        for line in text.finish() { try Output.line(line) }
    }
}

/// The verb `larder transfers cancel`.
struct TransfersCancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "End transfers, and forget them; prints how many.",
        discussion: "A client that receives one goes on receiving.")

    @Argument(help: ArgumentHelp("The transfer, as the list names it.", valueName: "id"))
    var ids: [String] = []

    @Flag(help: "End all of them.")
    var all = false

    @OptionGroup var transfers: TransferOptions

    func validate() throws { _ = try self.selections }

    /// What is to be cancelled, each by itself: what of it is not there can be named.
    var selections: [TransferSelection] {
        get throws {
            guard self.ids.isEmpty == self.all else {
                throw ValidationError("name the transfers by their IDs, or give --all")
            }
            if self.all { return [.all] }
            var ids: [UInt64] = []
            for text in self.ids {
                guard let id = TransferRecord.id(from: text) else {
                    throw ValidationError(
                        "\(Printable.text(text)) is no ID of a transfer: \"larder transfers\" shows "
                            + "them, with 16 hexadecimal digits each")
                }
                if !ids.contains(id) { ids.append(id) }
            }
            return ids.map { .id($0) }
        }
    }

    func run() async throws {
        let selections = try self.selections
        var client = try self.transfers.client()
        var cancelled: UInt64 = 0
        var missing: [String] = []
        for selection in selections {
            var count: UInt64 = 0
            try client.send(
                .cancelTransfers(session: self.transfers.session, selection)
            ) { reply in
                if case .removed(let some) = reply { count += some }
                return true
            }
            if count == 0, case .id(let id) = selection {
                missing.append(TransferRecord.text(of: id))
            }
            cancelled += count
        }
        if cancelled > 0 || missing.isEmpty { try Output.line("\(cancelled)") }
        guard missing.isEmpty else { throw CommandFailure.noTransfer(missing) }
    }
}

extension CommandFailure {
    /// - Parameter ids: of at least one.
    static func noTransfer(_ ids: [String]) -> CommandFailure {
        CommandFailure(
            .nothingFound, "there is no transfer \(ids.joined(separator: ", "))",
            remedy: "\"larder transfers\" shows which there are")
    }
}

/// The listing of `larder transfers`, for people.
struct TransfersText {
    private let now: Int64
    private var table: Table

    /// - Parameter now: in microseconds since 1970.
    init(width: Int?, now: Int64) {
        self.now = now
        self.table = Table(
            [
                .init(title: "ID"), .init(title: "URL", isElastic: true),
                .init(title: "RECEIVED", isNumber: true), .init(title: "STATE"),
                .init(title: "SESSION"),
            ], width: width)
    }

    mutating func add(_ transfer: TransferRecord) -> [String] {
        let part = transfer.principal.map { " (\($0))" } ?? ""
        let whole = transfer.length.map { " of \(Human.size($0))" } ?? ""
        return self.table.add([
            Printable.text(transfer.id), Printable.text(transfer.url),
            Human.size(transfer.bytesReceived) + whole, Printable.text(self.state(of: transfer)),
            Printable.text(transfer.session + part),
        ])
    }

    mutating func finish() -> [String] { self.table.finish() }

    private func state(of transfer: TransferRecord) -> String {
        guard transfer.activity == TransferRecord.Activity.waiting.rawValue else {
            return transfer.activity
        }
        let cause = transfer.cause.map { ": \($0)" } ?? ""
        guard let retry = transfer.retryMicroseconds else { return "waits\(cause)" }
        // Rounded up: not "0 s" before it is due, and no less when it is overdue.
        let left = max(0, retry &- self.now)
        let seconds = left / 1_000_000 + (left % 1_000_000 > 0 ? 1 : 0)
        let time = seconds == 0 ? "0 s" : Human.time(milliseconds: seconds * 1000)
        return "waits \(time)\(cause)"
    }
}
