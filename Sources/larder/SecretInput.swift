import ArgumentParser
import Glibc
import LarderControl

/// Where a secret comes from: a prompt, standard input, a file or a command's output.
///
/// Never the command line, which every user of the machine can read while the command runs (ps), and
/// which shells keep in their history.
enum SecretInput {
    /// Longer is no secret that a field could carry.
    static let largest = 64 << 10

    /// The one line that is typed, without its end.
    case prompt(String)
    case standardInput
    case file(String)
    /// Words of a command, which is run without a shell.
    case command([String])

    /// Reads it, without the end of its last line.
    ///
    /// - Throws: where nothing comes, or too much.
    func read() throws(CommandFailure) -> [UInt8] {
        var bytes: [UInt8]
        switch self {
        case .prompt(let text): bytes = try SecretPrompt.ask(text)
        case .standardInput: bytes = try InputFile.read("-", largest: Self.largest)
        case .file(let name):
            Self.warnOfMode(name)
            bytes = try InputFile.read(name, largest: Self.largest)
        case .command(let words): bytes = try CapturedCommand.run(words, largest: Self.largest)
        }
        if bytes.last == 0x0A { bytes.removeLast() }
        if bytes.last == 0x0D { bytes.removeLast() }
        return bytes
    }

    /// Says so where others may read a file that holds a secret.
    private static func warnOfMode(_ name: String) {
        var status = stat()
        guard name != "-", unsafe stat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_mode & 0o077 != 0
        else { return }
        let mode = String(status.st_mode & 0o777, radix: 8)
        Output.note(
            "larder: \(Printable.text(name)) may be read by others (mode 0\(mode)); "
                + "\"chmod 600\" keeps them out")
    }
}

/// The arguments that say where the secret of a credential comes from, and those that give it on
/// the command line, which are refused.
struct SecretArguments: ParsableArguments {
    @Option(
        name: .customLong("secret-from"),
        help: ArgumentHelp(
            "Read the secret from this file; - is standard input.", valueName: "file"),
        completion: .file())
    var file: String?

    @Option(
        name: .customLong("secret-command"),
        help: ArgumentHelp(
            "Run this and take what it prints; no shell is asked.", valueName: "command"))
    var command: String?

    @Option(
        name: [
            .customLong("password"), .customLong("secret"), .customLong("token"),
            .customLong("value"), .customLong("passwd"), .customLong("api-key"),
        ], help: .hidden)
    var exposed: String?

    /// - Parameters:
    ///   - what: what is asked for at a terminal.
    ///   - rest: what else stands on the command line; a secret, most likely.
    func input(asking what: String, rest: [String]) throws(CommandFailure) -> SecretInput {
        guard self.exposed == nil, rest.isEmpty else { throw CommandFailure.exposedSecret }
        if let command = self.command {
            guard self.file == nil else {
                throw CommandFailure(
                    .usage, "two places for the secret are named",
                    remedy: "give one of --secret-from and --secret-command")
            }
            return .command(try CommandWords.split(command))
        }
        if let file = self.file { return file == "-" ? .standardInput : .file(file) }
        return isatty(STDIN_FILENO) == 1 ? .prompt(what) : .standardInput
    }
}

extension CommandFailure {
    /// Never shows what was given.
    static let exposedSecret = CommandFailure(
        .usage, "a secret on the command line can be read by everybody on this machine",
        remedy: "leave it out to be asked for it, pipe it in, or name a file that holds it; and "
            + "count the one you gave as known")
}

/// A file read as a whole, or standard input where its name is `-`.
enum InputFile {
    /// - Throws: where there is more than `largest` bytes of it.
    static func read(_ name: String, largest: Int) throws(CommandFailure) -> [UInt8] {
        let called = name == "-" ? "standard input" : name
        let descriptor = name == "-" ? STDIN_FILENO : unsafe open(name, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(.noInput, "\(called): \(Output.reason(errno))")
        }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        return try Self.read(descriptor, called, largest: largest)
    }

    /// Reads all that comes.
    static func read(
        _ descriptor: CInt, _ name: String, largest: Int
    ) throws(CommandFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        // Growing would leave copies behind of what may be a secret.
        bytes.reserveCapacity(min(largest, SecretInput.largest))
        var piece = [UInt8](repeating: 0, count: 65_536)
        defer { piece.wipe() }
        while true {
            let count = unsafe piece.withUnsafeMutableBytes {
                unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
            }
            if count == 0 { return bytes }
            if count < 0 {
                if errno == EINTR { continue }
                throw CommandFailure(.inputOutput, "\(name): \(Output.reason(errno))")
            }
            guard bytes.count + count <= largest else {
                bytes.wipe()
                throw CommandFailure(
                    .data, "\(name): more than \(Human.size(UInt64(largest))), which is too much")
            }
            bytes += piece.prefix(count)
        }
    }
}
