import ArgumentParser
import Glibc
import LarderConfig

/// `--config` and what follows from it.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: ArgumentHelp(
            "The configuration file.",
            discussion: """
                Without it: $XDG_CONFIG_HOME/larder/larder.yaml, then /etc/larder/larder.yaml, then \
                defaults.
                """, valueName: "file"),
        completion: .file())
    var file: String?

    @Flag(help: "Use the places of a system service: /etc, /var/cache, /var/lib and /run.")
    var system = false

    func load() throws(ConfigurationError) -> LoadedSettings {
        try Configuration.load(
            named: self.file, environment: self.environment,
            currentDirectory: Self.currentDirectory)
    }

    /// Loads a configuration that was loaded before.
    ///
    /// - Throws: also for a pipe or the like, which would seem empty, so that the defaults would
    ///   open what its rules close.
    func loadAgain() throws(ConfigurationError) -> LoadedSettings {
        if let file = self.file, Self.isStream(file) {
            throw ConfigurationError(problems: [
                ConfigurationProblem(
                    file: file, message: "is no regular file and cannot be read again; restart")
            ])
        }
        return try self.load()
    }

    /// Whether a file that is there gives what it holds only once.
    private static func isStream(_ path: String) -> Bool {
        var facts = stat()
        return unsafe stat(path, &facts) == 0 && facts.st_mode & S_IFMT != S_IFREG
    }

    var environment: ProcessEnvironment {
        var variables = ProcessEnvironment.variables
        if self.system { variables["LARDER_SYSTEM"] = "1" }
        return ProcessEnvironment(
            variables, home: ProcessEnvironment.home, executable: ProcessEnvironment.executable,
            uid: getuid())
    }

    static var currentDirectory: String {
        guard let path = unsafe getcwd(nil, 0) else { return "/" }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }
}

/// What this process was started with.
extension ProcessEnvironment {
    static var variables: [String: String] {
        var variables: [String: String] = [:]
        var next = unsafe environ
        while let entry = unsafe next.pointee {
            let text = unsafe String(cString: entry)
            if let equals = text.firstIndex(of: "=") {
                variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            unsafe next += 1
        }
        return variables
    }

    /// The path of this program's file, links resolved; nil where the kernel does not say.
    static var executable: String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return -1 }
            return unsafe readlink("/proc/self/exe", start, buffer.count)
        }
        guard count > 0, count < bytes.count else { return nil }
        return String(validating: bytes[..<count], as: UTF8.self)
    }

    /// The home directory that the user database has.
    static var home: String? {
        guard let entry = unsafe getpwuid(getuid()), let home = unsafe entry.pointee.pw_dir else {
            return nil
        }
        let path = unsafe String(cString: home)
        return path.hasPrefix("/") ? path : nil
    }
}

/// A session by name.
struct SessionOption: ParsableArguments {
    @Option(help: ArgumentHelp("The session.", valueName: "name"))
    var session = "default"

    func find(in loaded: LoadedSettings) throws(CommandFailure) -> SessionSettings {
        try loaded.session(named: self.session)
    }
}

extension LoadedSettings {
    /// A session that a command line names.
    ///
    /// - Throws: where there is none, with the nearest name.
    func session(named name: String) throws(CommandFailure) -> SessionSettings {
        let names = self.settings.sessions.map(\.name.text)
        let found = self.settings.sessions.first { $0.name.text == name }
        guard let found else {
            let nearest = NearestName.of(name, among: names)
            throw CommandFailure(
                .usage, "there is no session \"\(name)\"",
                remedy: nearest.map { "did you mean \"\($0)\"?" }
                    ?? "there are: \(names.joined(separator: ", "))")
        }
        return found
    }
}
