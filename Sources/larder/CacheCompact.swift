import ArgumentParser
import Glibc
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
        let view = try CacheView(self.options, self.session)
        let name = view.session.name.text
        let line = ProgressLine("copied")
        var outcome: CompactionOutcome?
        var isAsked = false
        do {
            isAsked = try view.ask(.compact(session: name), patience: .seconds(60)) { reply in
                if case .progress(let bytes) = reply { line.show(Human.size(bytes)) }
                if case .compacted(let compacted) = reply { outcome = compacted }
                return true
            }
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {
            // The proxy serves other sessions: this one's file is nobody's but ours.
        }
        if !isAsked, let disk = view.disk as? DiskCache {
            let report = try await disk.compact { line.show(Human.size($0)) }
            outcome = CompactionOutcome(session: name, before: report.before, after: report.after)
        }
        line.clear()
        guard let outcome else { return try Output.line("nothing is stored on disk") }
        try Output.line(
            "\(Human.size(outcome.before)) before, \(Human.size(outcome.after)) after")
    }
}

/// How work gets on, in one line of the terminal that is written over; nothing where standard error
/// is none.
struct ProgressLine: Sendable {
    private let what: String
    private let isShown: Bool

    init(_ what: String) {
        self.what = what
        self.isShown = isatty(STDERR_FILENO) == 1
    }

    func show(_ much: String) {
        if self.isShown { Self.write("\r\u{1B}[K\(self.what) \(much)") }
    }

    func clear() {
        if self.isShown { Self.write("\r\u{1B}[K") }
    }

    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        // Nobody is left to be told when this fails.
        _ = unsafe Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }
}
