import ArgumentParser
import LarderConfig
import LarderControl
import LarderDisk

/// The verb `larder cache stats`.
struct CacheStats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Show how full the cache is and what it has done.")

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() async throws {
        let view = try CacheView(self.options, self.session, needsDisk: false)
        var report = CacheStatsReport(
            session: view.session.name.text, kind: view.session.kind.rawValue,
            directory: view.loaded.cacheDirectory(of: view.session), running: nil,
            disk: nil)
        // A running proxy knows its own figures, whatever became of the file.
        var unreadable = view.unreadable
        do { report.disk = try view.disk?.figures() } catch { unreadable = error }
        if let directory = report.directory {
            report.setAside = SetAsideFile.all(in: directory)
            report.durability = CacheStatsReport.diskDurability
        }
        try view.askIfServed(.statistics(session: report.session)) { reply in
            if case .statistics(let statistics) = reply { report.running = statistics }
            return true
        }
        if let unreadable {
            if report.running == nil { throw unreadable }
            for cause in CommandFailure(unreadable)?.causes ?? [] { Output.note(cause) }
        }
        if self.json { return try Output.line(try JSONLine.of(report)) }
        let now = wallClockMicroseconds()
        for line in CacheStatsText.lines(report, nowMicroseconds: now) { try Output.line(line) }
    }
}
