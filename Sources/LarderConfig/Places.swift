import Glibc

/// Where Larder's files lie: for a user by the XDG base directories, for a system service under
/// `/var` and `/run`.
package struct Places: Sendable, Equatable {
    package var isSystem: Bool
    /// Holds one directory for each session.
    package var cacheDirectory: String
    /// Holds what must not be lost, one directory for each session.
    package var stateDirectory: String
    /// Where sockets go, the preferred place first.
    package var runtimeDirectories: [String]
    /// The configuration files that are found unasked.
    package var usualFiles: [String]

    package init(
        isSystem: Bool, cacheDirectory: String, stateDirectory: String,
        runtimeDirectories: [String], usualFiles: [String]
    ) {
        self.isSystem = isSystem
        self.cacheDirectory = cacheDirectory
        self.stateDirectory = stateDirectory
        self.runtimeDirectories = runtimeDirectories
        self.usualFiles = usualFiles
    }

    package static let system = Places(
        isSystem: true, cacheDirectory: "/var/cache/larder", stateDirectory: "/var/lib/larder",
        runtimeDirectories: ["/run/larder"], usualFiles: [ProcessEnvironment.systemFile])

    /// The places for whoever has this environment and reads this configuration.
    ///
    /// A system service is one whose configuration lies in `/etc/larder`, or whose environment says
    /// `LARDER_SYSTEM=1`: then the same file leads a person and the service to the same cache. The
    /// superuser alone does not make a service: root in a container is a person, too.
    /// Without a home directory, what no variable names a place for has the system's.
    package static func of(_ environment: ProcessEnvironment, configuration: String?) -> Places {
        let isSystem = configuration.map { file in
            [file, ResolvedPath.of(file)].contains { $0.hasPrefix("/etc/larder/") }
        }
        if environment["LARDER_SYSTEM"] == "1" || isSystem == true { return .system }
        let cache = environment.cacheHome.map { "\($0)/larder" }
        let state = environment.stateHome.map { "\($0)/larder" }
        guard let own = cache ?? state else { return .system }
        // Without a runtime directory the socket lies beside the cache, or else the state, which are the
        // user's alone.
        let runtime = environment.directory("XDG_RUNTIME_DIR").map { "\($0)/larder" }
        return Places(
            isSystem: false, cacheDirectory: cache ?? Self.system.cacheDirectory,
            stateDirectory: state ?? Self.system.stateDirectory,
            runtimeDirectories: [runtime, own, environment.usualRuntimeDirectory]
                .compactMap(\.self),
            usualFiles: environment.configurationFiles)
    }

    /// Where the control socket of a proxy with this configuration may lie.
    ///
    /// Proxies with different files get different sockets, and whoever names the same file, however it
    /// is spelled, finds the same one. `default` is the name without a file or with one that is found
    /// unasked.
    package func controlSockets(forConfiguration file: String?) -> [String] {
        self.controlSockets(of: file, by: ResolvedPath.of)
    }

    /// Where a further control socket of a proxy with this configuration may lie, by the path as it is
    /// given; empty where no link is in it.
    ///
    /// The links may lead elsewhere later, as those of a Kubernetes ConfigMap do whenever that changes.
    package func furtherControlSockets(forConfiguration file: String?) -> [String] {
        guard let file else { return [] }
        let spelled = ResolvedPath.unfollowed(file)
        // What is there is another file in each process: `/dev/stdin`, a shell's `<(…)`.
        guard !spelled.hasPrefix("/dev/"), !spelled.hasPrefix("/proc/") else { return [] }
        let further = self.controlSockets(of: file, by: ResolvedPath.unfollowed)
        return further == self.controlSockets(forConfiguration: file) ? [] : further
    }

    private func controlSockets(of file: String?, by identity: (String) -> String) -> [String] {
        let found = file.map(identity)
        let usual = self.usualFiles.map(identity)
        let unusual = found.flatMap { usual.contains($0) ? nil : $0 }
        let name = unusual.map(Self.digest) ?? "default"
        return self.runtimeDirectories.map { "\($0)/control-\(name).sock" }
    }

    /// Where a session's cache lies if it is kept on disk.
    func cacheDirectory(of session: SessionSettings) -> String {
        session.cache.directory?.text ?? "\(self.cacheDirectory)/\(session.name.text)"
    }

    func stateDirectory(of session: SessionSettings) -> String {
        session.stateDirectory?.text ?? "\(self.stateDirectory)/\(session.name.text)"
    }

    /// Beside the state directory, and named after it: so sessions of one name that lie in different
    /// directories, as two configurations may have them, have different keys.
    func keyFile(of session: SessionSettings) -> String {
        if let file = session.keyFile { return file.text }
        let directory = self.stateDirectory(of: session)
        let beside = "\(directory.trimmingSlashes).key"
        guard session.stateDirectory != nil else { return beside }
        // Once it lay among the others whatever the state directory: what is encrypted by that goes on.
        let former = "\(self.stateDirectory)/\(session.name.text).key"
        let isFormer =
            !Self.isThere(beside) && Self.isThere(former) && Self.isThere("\(directory)/state.mdb")
        return isFormer ? former : beside
    }

    /// Whether something is there; also where it cannot be seen, as that is not nothing.
    package static func isThere(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)
    }

    /// FNV-1a: short, stable from one release to the next, and collisions do no harm but a refusal.
    private static func digest(_ text: String) -> String {
        var hash: UInt32 = 0x811C_9DC5
        for byte in text.utf8 { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        let hex = String(hash, radix: 16)
        return String(repeating: "0", count: 8 - hex.count) + hex
    }
}

/// What a process is started with: the environment variables that Larder's places depend on, and the
/// home directory.
package struct ProcessEnvironment: Sendable {
    private let variables: [String: String]
    private let home: String?
    /// The path of this program's file, beside which presets may lie.
    let executable: String?
    private let uid: UInt32?

    /// - Parameters:
    ///   - home: the home directory where `HOME` is not set.
    ///   - uid: the user that the process runs as.
    package init(
        _ variables: [String: String], home: String? = nil, executable: String? = nil,
        uid: UInt32? = nil
    ) {
        self.variables = variables
        self.home = home
        self.executable = executable
        self.uid = uid
    }

    package subscript(name: String) -> String? { self.variables[name] }

    /// A directory that a variable names.
    ///
    /// A relative path counts as unset, as the XDG base directory specification has it.
    package func directory(_ name: String) -> String? {
        guard let path = self.variables[name], path.hasPrefix("/") else { return nil }
        return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    private var homeDirectory: String? { self.directory("HOME") ?? self.home }

    /// Where `XDG_RUNTIME_DIR` leads for the user's own sessions, for a process that has no such variable:
    /// cron starts programs without it.
    ///
    /// nil where it is set, and for who has another home directory than the user.
    var usualRuntimeDirectory: String? {
        guard self.directory("XDG_RUNTIME_DIR") == nil, let uid, let home,
            self.homeDirectory == home
        else { return nil }
        return "/run/user/\(uid)/larder"
    }

    var cacheHome: String? {
        self.directory("XDG_CACHE_HOME") ?? self.homeDirectory.map { "\($0)/.cache" }
    }

    var stateHome: String? {
        self.directory("XDG_STATE_HOME") ?? self.homeDirectory.map { "\($0)/.local/state" }
    }

    var configHome: String? {
        self.directory("XDG_CONFIG_HOME") ?? self.homeDirectory.map { "\($0)/.config" }
    }

    static let systemFile = "/etc/larder/larder.yaml"

    /// Where a configuration file is looked for when none is named; the first that exists counts.
    package var configurationFiles: [String] {
        let own = self.configHome.map { "\($0)/larder/larder.yaml" }
        if self.variables["LARDER_SYSTEM"] == "1" { return [Self.systemFile] }
        return [own, Self.systemFile].compactMap(\.self)
    }
}

extension String {
    /// A path without slashes at its end.
    fileprivate var trimmingSlashes: Substring {
        var path = self[...]
        while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
        return path
    }
}
