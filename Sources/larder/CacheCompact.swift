import ArgumentParser
import LarderConfig
import LarderControl
import LarderDisk

/// The verb `larder cache compact`.
struct CacheCompact: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Write the cache's file anew without holes; prints its size before and after.",
        discussion: """
            Nothing that is stored is lost, and a running proxy answers meanwhile. Needs as much free \
            space beside the file as is in use in it.
            """)

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    func run() async throws {
        let view = try CacheView(self.options, self.session, needsDisk: false)
        let name = view.session.name.text
        let line = ActivityLine()
        var outcome: CompactionOutcome?
        var isAsked = false
        do {
            isAsked = try view.ask(.compact(session: name), patience: .seconds(60)) { reply in
                if case .progress(let bytes) = reply { Self.show(bytes, on: line) }
                if case .compacted(let compacted) = reply { outcome = compacted }
                return true
            }
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {
            // The proxy serves other sessions: this one's file is nobody's but ours.
        }
        if !isAsked, let disk = try view.reading() as? DiskCache {
            let report = try await disk.compact { Self.show($0, on: line) }
            outcome = CompactionOutcome(session: name, before: report.before, after: report.after)
        }
        line.clear()
        guard let outcome else {
            throw CommandFailure(.nothingFound, "the session \(name) has nothing on disk")
        }
        try Output.line(
            "\(Human.size(outcome.before)) before, \(Human.size(outcome.after)) after")
    }

    private static func show(_ bytes: UInt64, on line: ActivityLine) {
        line.show(at: wallClockMicroseconds()) { "copied \(Human.size(bytes))" }
    }
}
