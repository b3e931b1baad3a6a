import Glibc
import LarderControl

/// A text cut into the words of a command, as a shell would cut it, and nothing else that one does:
/// no variables, no patterns, no substitution.
enum CommandWords {
    /// - Throws: where a quotation mark or a backslash has nothing to end at, or no word is there.
    static func split(_ text: String) throws(CommandFailure) -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var isEscaped = false
        for character in text {
            if isEscaped {
                // Within double quotes a backslash takes the meaning of these alone.
                let isPlain = quote == "\"" && character != "\"" && character != "\\"
                word = (word ?? "") + (isPlain ? "\\" : "") + String(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
                word = word ?? ""
            } else if let open = quote {
                if character == open {
                    quote = nil
                } else {
                    word = (word ?? "") + String(character)
                }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character == " " || character == "\t" || character == "\n" {
                if let done = word { words.append(done) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        guard quote == nil, !isEscaped else {
            throw CommandFailure(
                .usage, "the command ends within a quotation",
                remedy: "close it, or quote the whole")
        }
        if let last = word { words.append(last) }
        guard let first = words.first, !first.isEmpty else {
            throw CommandFailure(.usage, "the command is empty", remedy: "name a program")
        }
        return words
    }
}

/// A command that is run for what it writes to standard output.
///
/// It has our standard input and error, so that it may ask for a PIN, and gets our signals, being of
/// our process group.
enum CapturedCommand {
    /// - Throws: where it cannot be run, ends badly, or says nothing or too much. What it said is
    ///   never repeated.
    static func run(_ words: [String], largest: Int) throws(CommandFailure) -> [UInt8] {
        let ends = try Pipe.open()
        defer { close(ends.read) }
        var child: pid_t = 0
        let code = Self.spawn(words, output: ends.write, &child)
        close(ends.write)
        let name = words.first ?? ""
        guard code == 0 else { throw StartFailure(command: name, code: code).failure }
        var bytes: [UInt8]
        do throws(CommandFailure) {
            bytes = try InputFile.read(ends.read, "what \"\(name)\" prints", largest: largest)
        } catch {
            kill(child, SIGKILL)
            _ = Self.wait(for: child)
            throw error
        }
        let ending = Self.wait(for: child)
        guard ending == .exited(0) else {
            bytes.wipe()
            throw CommandFailure(
                .noInput, "\"\(name)\" ended with status \(ending.exitStatus)",
                remedy: "run it by itself to see why")
        }
        return bytes
    }

    private static func wait(for child: pid_t) -> ChildEnding {
        var status: CInt = 0
        while unsafe waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { return .exited(ExitStatus.software.rawValue) }
        }
        return ChildEnding(waitStatus: status)
    }

    /// Answers 0 or `errno`.
    private static func spawn(_ words: [String], output: CInt, _ child: inout pid_t) -> CInt {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        var mask = sigset_t()
        var code = unsafe posix_spawn_file_actions_init(&actions)
        guard code == 0 else { return code }
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        code = unsafe posix_spawnattr_init(&attributes)
        guard code == 0 else { return code }
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        // The thread that spawns may block signals, which the child would inherit.
        guard unsafe sigemptyset(&mask) == 0 else { return errno }
        code = unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        guard code == 0 else { return code }
        code = unsafe posix_spawnattr_setsigmask(&attributes, &mask)
        guard code == 0 else { return code }
        code = unsafe posix_spawnattr_setflags(&attributes, CShort(POSIX_SPAWN_SETSIGMASK))
        guard code == 0 else { return code }
        let arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { unsafe arguments.forEach { unsafe free($0) } }
        guard let file = unsafe arguments[0] else { return ENOMEM }
        return unsafe posix_spawnp(&child, file, &actions, &attributes, arguments, environ)
    }
}

/// A pipe whose ends are the caller's to close, and no child's to inherit.
enum Pipe {
    static func open() throws(CommandFailure) -> (read: CInt, write: CInt) {
        var ends: [CInt] = [-1, -1]
        guard unsafe pipe(&ends) == 0, ends.count == 2 else {
            throw CommandFailure(.software, "cannot make a pipe: \(Output.reason(errno))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }
}
