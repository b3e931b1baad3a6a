import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy

/// The verb `larder cache verify`.
struct CacheVerify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Check every byte of the cache's file.",
        discussion: """
            Reads all records and bodies, compares their checksums, and holds the file's tables \
            against each other, whether a proxy writes meanwhile or not. Each thing that is wrong \
            is a line. With --repair it is taken out, by the proxy where one runs; all else stays.

            Exit status: 0 when the file is sound, or is again because all was repaired; 2 when \
            damage was found that is still there.
            """)

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    @Flag(help: "Take out what is damaged.")
    var repair = false

    @Flag(help: "Print one JSON object a line; the last one is the summary.")
    var json = false

    /// Damage beyond this is counted and shown, but left for the next repair.
    private static let mostRepaired = 1 << 18

    func run() async throws {
        let view: CacheView
        do {
            view = try CacheView(self.options, self.session)
        } catch let failure as CommandFailure where failure.status == .data {
            try self.checkUnopenable()
            throw Self.damageFound(failure)
        }
        guard let directory = view.loaded.cacheDirectory(of: view.session), view.disk != nil else {
            throw CommandFailure(
                .nothingFound,
                "the session \(view.session.name.text) has nothing on disk")
        }
        var summary = VerifySummary(session: view.session.name.text)
        guard try self.checkPages(directory, &summary) else {
            try self.finish(summary)
            return
        }
        let damage = try self.walk(directory, &summary)
        if self.repair, !damage.isEmpty {
            let mended = try await DamageRepair(view: view, directory: directory).mend(damage)
            summary.repaired = UInt64(mended.count)
            summary.entriesDropped = UInt64(mended.filter(\.costsEntry).count)
        }
        try self.finish(summary)
    }

    /// Ends the command where the file cannot be opened because its pages are damaged.
    private func checkUnopenable() throws {
        let loaded = try self.options.load()
        let session = try self.session.find(in: loaded)
        guard let directory = loaded.cacheDirectory(of: session) else { return }
        var summary = VerifySummary(session: session.name.text)
        do {
            if try self.checkPages(directory, &summary) { return }
        } catch let failure as CommandFailure where failure.status == .data {
            throw Self.damageFound(failure)
        }
        try self.finish(summary)
    }

    /// The file as a whole is what is damaged.
    private static func damageFound(_ failure: CommandFailure) -> CommandFailure {
        var failure = failure
        failure.status = .damageFound
        failure.remedy = "a proxy sets it aside when it comes upon that, or starts"
        return failure
    }

    private func finish(_ summary: VerifySummary) throws {
        if self.json {
            try Output.line(try JSONLine.of(summary))
        } else {
            for line in summary.lines { try Output.line(line) }
        }
        if summary.isDamaged { throw ExitCode(ExitStatus.damageFound.rawValue) }
    }

    /// Checks the pages below all records, where nobody writes to them; false where they are damaged,
    /// so that nothing above them can be told.
    private func checkPages(_ directory: String, _ summary: inout VerifySummary) throws -> Bool {
        let activity = ActivityLine()
        defer { activity.clear() }
        let report: StructureReport?
        do throws(StoreError) {
            report = try StructureCheck.run(directory: directory) { done, total in
                activity.show(at: wallClockMicroseconds()) {
                    "\(Human.count(done)) of \(Human.count(total)) pages"
                }
            }
        } catch {
            throw CommandFailure(store: error)
        }
        guard let report else { return true }
        summary.pages = report.pages
        summary.leakedPages = report.leakedPages
        if report.isSound { return true }
        activity.clear()
        summary.pagesDamaged = report.problemCount
        for problem in report.problems {
            let line = PageFinding(page: problem.page, reason: problem.reason)
            try Output.line(self.json ? try JSONLine.of(line) : line.text)
        }
        return false
    }

    private func walk(
        _ directory: String, _ summary: inout VerifySummary
    ) throws -> [DiskDamage] {
        var damage: [DiskDamage] = []
        let activity = ActivityLine()
        let began = wallClockMicroseconds()
        do {
            let inspector = try DiskInspector(directory: directory)
            let verifier = DiskVerifier(inspector) { state in
                let now = wallClockMicroseconds()
                activity.show(at: now) { VerifySummary.progress(state, elapsed: now - began) }
            } found: { finding in
                activity.clear()
                if damage.count < Self.mostRepaired { damage.append(finding.damage) }
                let line = VerifyFinding(finding)
                try Output.line(self.json ? try JSONLine.of(line) : line.text)
            }
            summary.take(try verifier.run(), elapsed: wallClockMicroseconds() - began)
        } catch let error as StoreError {
            activity.clear()
            throw CommandFailure(store: error)
        }
        activity.clear()
        return damage
    }
}

/// A line for each thing that is wrong.
struct VerifyFinding: Encodable, Equatable {
    var kind: String
    /// nil where it cannot be told whose it is.
    var url: String?
    var method: String?
    var id: UInt64
    var reason: String

    init(_ finding: DiskFinding) {
        let parts = finding.key?.parts
        self.kind = finding.damage.kind.rawValue
        self.url = parts?.uri
        self.method = parts?.method
        self.id = finding.damage.id
        self.reason = finding.reason
    }

    var text: String {
        let whose =
            self.url.map { (self.method == "GET" ? "" : "\(self.method ?? "") ") + $0 }
            ?? (self.id == 0 ? "cache" : "object \(self.id)")
        return Printable.text("\(whose): \(self.reason)")
    }
}

/// A line for each page that is wrong.
struct PageFinding: Encodable, Equatable {
    var kind = "page"
    var page: UInt64
    var reason: String

    var text: String { Printable.text("page \(self.page): \(self.reason)") }
}

/// What a verification came to.
struct VerifySummary: Encodable, Equatable {
    var session: String
    var entries: UInt64 = 0
    var segments: UInt64 = 0
    var bytes: UInt64 = 0
    var milliseconds: Int64 = 0
    var damaged: UInt64 = 0
    /// nil where nothing was to be repaired.
    var repaired: UInt64?
    var entriesDropped: UInt64?
    var leftovers: UInt64 = 0
    var changedMeanwhile: UInt64 = 0
    /// Pages of the file that were checked as such; nil while a proxy writes to them.
    var pages: UInt64?
    var leakedPages: UInt64?
    var pagesDamaged: UInt64?

    init(session: String) {
        self.session = session
    }

    mutating func take(_ state: DiskVerification, elapsed microseconds: Int64) {
        self.entries = state.entries
        self.segments = state.segments
        self.bytes = state.bytes
        self.milliseconds = microseconds / 1000
        self.damaged = state.findings
        self.leftovers = state.leftovers
        self.changedMeanwhile = state.changed
    }

    /// Whether damage was found that is still there.
    var isDamaged: Bool {
        self.damaged > (self.repaired ?? 0) || (self.pagesDamaged ?? 0) > 0
    }

    var lines: [String] {
        if let pagesDamaged {
            return [
                "damaged pages: \(Human.count(pagesDamaged)) of \(Human.count(self.pages ?? 0))",
                "the file cannot be mended; remove it, or start the proxy, which sets it aside",
            ]
        }
        let what =
            "\(Human.count(self.entries)) \(self.entries == 1 ? "entry" : "entries"), "
            + "\(Human.count(self.segments, "segment")), \(Human.size(self.bytes)) "
            + "in \(Human.time(milliseconds: self.milliseconds)) "
            + "(\(Self.rate(self.bytes, microseconds: self.milliseconds * 1000)))"
        var lines = ["checked \(what)"]
        if let pages {
            lines.append("checked \(Human.count(pages, "page")) of the file itself")
        } else {
            lines.append("pages are checked when no proxy writes to them")
        }
        if self.changedMeanwhile > 0 {
            let count = Human.count(self.changedMeanwhile)
            // Where nobody writes, nothing changes.
            lines.append(
                self.pages == nil
                    ? "changed while it was read: \(count)"
                    : "left by responses that were not stored to their end: \(count), "
                        + "taken out at the next start")
        }
        lines.append(
            self.damaged == 0 ? "sound" : "damaged: \(Human.count(self.damaged))")
        if let repaired = self.repaired {
            lines.append(
                "repaired: \(Human.count(repaired)), entries dropped: "
                    + Human.count(self.entriesDropped ?? 0))
        }
        return lines
    }

    static func rate(_ bytes: UInt64, microseconds: Int64) -> String {
        let (megabytes, rest) = bytes.quotientAndRemainder(
            dividingBy: UInt64(max(1, microseconds)))
        let tenths = rest &* 10 / UInt64(max(1, microseconds))
        return megabytes >= 10 ? "\(megabytes) MB/s" : "\(megabytes).\(tenths) MB/s"
    }

    static func progress(_ state: DiskVerification, elapsed microseconds: Int64) -> String {
        "\(Human.count(state.entries)) of \(Human.count(state.expectedEntries)) entries, "
            + "\(Human.size(state.bytes)) of \(Human.size(state.expectedBytes)), "
            + Self.rate(state.bytes, microseconds: microseconds)
    }
}

/// Has damage taken out by whoever writes to the cache: the running proxy, else this process.
struct DamageRepair {
    var view: CacheView
    var directory: String

    func mend(_ found: [DiskDamage]) async throws -> [DiskDamage] {
        var mended: [DiskDamage] = []
        let damage = found.sumsFirst
        for start in stride(from: 0, to: damage.count, by: DamageRecord.mostInRequest) {
            let end = min(damage.count, start + DamageRecord.mostInRequest)
            let part = damage[start..<end].map { DamageRecord($0) }
            guard let told = try self.ask(part) else {
                return try await mended + self.mendHere(Array(damage[start...]))
            }
            mended += told
        }
        return mended
    }

    /// nil where no proxy runs for this session.
    private func ask(_ damage: [DamageRecord]) throws -> [DiskDamage]? {
        var told: [DamageRecord] = []
        do {
            let isAsked = try self.view.ask(
                .mend(session: self.view.session.name.text, damage), patience: .seconds(60)
            ) {
                if case .mended(let mended) = $0 { told += mended }
                return true
            }
            return isAsked ? told.compactMap { DiskDamage($0) } : nil
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {
            return nil
        }
    }

    private func mendHere(_ damage: [DiskDamage]) async throws -> [DiskDamage] {
        let store = try DiskStore.openHere(in: self.directory, for: self.view.session)
        let mended = await withCheckedContinuation { continuation in
            store.mend(damage) { continuation.resume(returning: $0) }
        }
        await store.close()
        return mended
    }
}
