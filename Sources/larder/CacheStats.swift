import ArgumentParser
import LarderConfig
import LarderControl
import LarderDisk

/// The verb `larder cache stats`.
struct CacheStats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Show how full the cache is and what it has done.",
        discussion: """
            "requests" to "memory" is what the running proxy has counted since its start, "disk" and \
            "file" what the file says, whoever wrote it.

            With --json, "running" has the one: requests, hits (those answered without asking), \
            validated, misses (those answered by origins), collapsed (those answered by another \
            request's fetch), failures, bytesServed and bytesFromCache, reasons and acts by their \
            names, and of each tier in "memory" and "disk" objects, bytes, capacity, evictions and \
            hits; "disk" beside it has the other: objects, bodyBytes, usedBytes, freeBytes, fileBytes \
            and capacityBytes, and hits, evictions, damaged and failures since the file was made, \
            the hits of the last moments missing. Bytes from origins are counted once, however many \
            clients shared them.
            """)

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption
    @OptionGroup var form: FigureForm

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
        if self.form.json { return try Output.line(try JSONLine.of(report)) }
        if self.form.prometheus {
            for line in CacheStatsMetrics.lines(report) { try Output.line(line) }
            return
        }
        let now = wallClockMicroseconds()
        for line in CacheStatsText.lines(report, nowMicroseconds: now) { try Output.line(line) }
    }
}
