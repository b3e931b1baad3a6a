import ArgumentParser
import Glibc
import LarderConfig
import LarderControl
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore

/// The verb `larder cache import`.
struct CacheImport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Store what a WARC or HAR file holds.",
        discussion: """
            What "larder cache export" wrote comes back as it was, no fresher than it was. Of other \
            archives (wget --warc-file, say) what this session might store is taken, its age \
            reckoned from its date; other records are passed over and counted. Nothing stored is \
            replaced by an older response, and nothing is stored for principals that the session does not \
            have (the setting principals): nobody could reach it.

            A running proxy reads the file itself, as its own user, standard input included: one \
            that is a service may not see /home, and has a /tmp of its own. An export can be read \
            by its owner alone: for the proxy of another user, give that user a copy by chmod or \
            chown, or run this as that user (sudo -u).

            Exit status: 0 when all of the file was read; 2 when records could not be read, or \
            the file ends too early: what was whole is stored.
            """)

    @Argument(help: "The file; - is standard input.", completion: .file())
    var file: String

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    @Flag(help: "Print the summary as one JSON object.")
    var json = false

    func run() async throws {
        let loaded = try self.options.load()
        let settings = try self.session.find(in: loaded)
        let input = try ArchiveInput(self.file)
        let view = try CacheView(self.options, self.session, needsDisk: false)
        var told = try self.asked(view, input.path)
        if told == nil { told = try await self.here(loaded, settings, input.path) }
        // Until here somebody may have opened it by its path.
        withExtendedLifetime(input) {}
        guard let outcome = told else { return }
        if self.json {
            try Output.line(try JSONLine.of(outcome))
        } else {
            for line in ImportText.lines(outcome) { try Output.line(line) }
        }
        if outcome.malformed > 0 || outcome.isCutShort {
            throw ExitCode(ExitStatus.damageFound.rawValue)
        }
    }

    /// By the running proxy; nil where none runs for this session.
    private func asked(_ view: CacheView, _ path: String) throws -> ImportOutcome? {
        var outcome: ImportOutcome?
        let activity = ActivityLine()
        defer { activity.clear() }
        do {
            let isAsked = try view.ask(
                .importArchive(session: view.session.name.text, path: path),
                patience: .seconds(60)
            ) { reply in
                switch reply {
                case .progress(let bytes):
                    activity.show(at: wallClockMicroseconds()) { Human.size(bytes) }
                case .importProblem(let text):
                    activity.clear()
                    Output.note(Printable.text(text))
                case .imported(let imported): outcome = imported
                default: break
                }
                return true
            }
            if isAsked, outcome == nil {
                throw CommandFailure(.unavailable, "the proxy did not tell what it had stored")
            }
            return outcome
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {
            return nil
        }
    }

    private func here(
        _ loaded: LoadedSettings, _ settings: SessionSettings, _ path: String
    ) async throws -> ImportOutcome {
        guard let directory = loaded.cacheDirectory(of: settings) else {
            throw CommandFailure(
                .unavailable, "the session \(settings.name.text) keeps nothing on disk",
                remedy: "import while a proxy runs, or give the session a disk")
        }
        let source = try ArchiveSource(path: path)
        let store = try DiskStore.openHere(in: directory, for: settings)
        let activity = ActivityLine()
        let target = ArchiveImport.Target(
            store: store, policy: loaded.policy(of: settings), principals: settings.principals,
            now: { Timestamp(microseconds: wallClockMicroseconds()) })
        let archive = ArchiveImport(source, into: target) { note in
            switch note {
            case .progress(let bytes):
                activity.show(at: wallClockMicroseconds()) {
                    "\(Human.size(bytes)) of \(Human.size(source.size))"
                }
            case .problem(let text):
                activity.clear()
                Output.note(Printable.text(text))
            }
        }
        let result = Result { try archive.run() }
        activity.clear()
        await store.close()
        return try result.get()
    }
}

/// The archive that a command was given, as a path by which this process and a proxy can open it.
final class ArchiveInput {
    let path: String
    /// Standard input in a file of its own; -1 where it is a file by itself, or not what is read.
    private let spool: CInt

    init(_ name: String) throws {
        self.spool = name == "-" ? try Self.spooled() : -1
        if name == "-" {
            // The proxy opens it by this: proc(5) gives it to processes of the same user.
            self.path = "/proc/\(getpid())/fd/\(self.spool >= 0 ? self.spool : STDIN_FILENO)"
        } else if name.hasPrefix("/") {
            self.path = name
        } else {
            self.path = "\(ConfigurationOptions.currentDirectory)/\(name)"
        }
    }

    deinit { if self.spool >= 0 { close(self.spool) } }

    /// Standard input copied into a file without a name, as the reading goes back and forth; -1 where
    /// it is a regular file.
    private static func spooled() throws -> CInt {
        var status = stat()
        if unsafe fstat(STDIN_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            return -1
        }
        let directory = UnnamedFile.usualDirectory
        let file = UnnamedFile.make(in: directory)
        guard file >= 0 else {
            throw CommandFailure(
                .cannotCreate, "cannot make a file in \(directory): \(Output.reason(errno))",
                remedy: "name another place by TMPDIR")
        }
        var piece = [UInt8](repeating: 0, count: 262_144)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes {
                unsafe read(STDIN_FILENO, $0.baseAddress, $0.count)
            }
            if count == 0 { return file }
            if count < 0, errno == EINTR { continue }
            guard count > 0, Self.copy(piece[..<count], to: file) else {
                let code = errno
                close(file)
                throw CommandFailure(
                    .inputOutput, "cannot copy standard input: \(Output.reason(code))")
            }
        }
    }

    private static func copy(_ bytes: ArraySlice<UInt8>, to file: CInt) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.write(file, $0.baseAddress, $0.count)
            }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
        }
        return true
    }
}

/// What an import came to, for people.
enum ImportText {
    static func lines(_ outcome: ImportOutcome) -> [String] {
        var lines = [
            "stored \(Human.count(outcome.stored, "response")), \(Human.size(outcome.bytes))"
        ]
        for (reason, count) in outcome.refused.sorted(by: { $0.key < $1.key }) {
            lines.append("not stored: \(Human.count(count)) \(Self.text(reason))")
        }
        for (type, count) in outcome.skipped.sorted(by: { $0.key < $1.key }) {
            lines.append("passed over: \(Human.count(count)) \(Printable.text(type))")
        }
        if outcome.malformed > 0 {
            lines.append("could not be read: \(Human.count(outcome.malformed, "record"))")
        }
        if outcome.isCutShort { lines.append("the archive ends too early") }
        return lines
    }

    /// What a reason's word alone would not tell, in more of them.
    private static func text(_ reason: String) -> String {
        switch reason {
        case ImportOutcome.ofOtherPrincipals: "of principals, which this session does not have"
        case ImportOutcome.ofNoPrincipal:
            "of no principal, and this session keeps those of each apart"
        default: Printable.text(reason)
        }
    }
}
