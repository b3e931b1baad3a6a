/// Where an effective value comes from.
package enum SettingOrigin: Sendable, Equatable {
    case `default`
    case file(line: Int)
}

/// What a file says, by full path.
extension [String: SettingOrigin] {
    /// Whether there are access rules, be it none in an empty list: else those hold that let in
    /// nobody but clients of this machine.
    var haveAccess: Bool { self.keys.contains { $0.hasPrefix("access") } }
}

/// Settings, and where they come from.
package struct LoadedSettings: Sendable, Equatable {
    package var settings: Settings
    /// The file that was read; nil where none was found, which is no error.
    package var file: String?
    /// By full path (`sessions.default.cache.memory`); what is not here has its default.
    package var origins: [String: SettingOrigin]
    package var places: Places
    /// The cache rules in the order in which they are asked: those of the file, then those of the
    /// presets.
    package var cacheRules: [LocatedRule]
    /// What has put its own listeners in the place of the file's, for messages; nil: nothing has.
    package var listenersNamedBy: String?
    /// What the file says that can have no effect, whoever may connect.
    var fileWarnings: [ConfigurationProblem] = []
    var grounds = ListenerGrounds()

    package init(
        settings: Settings, file: String?, origins: [String: SettingOrigin] = [:],
        places: Places, cacheRules: [LocatedRule] = []
    ) {
        self.cacheRules = cacheRules
        self.settings = settings
        self.file = file
        self.origins = origins
        self.places = places
    }

    /// Where the session's cache lies; nil where it keeps nothing on disk.
    package func cacheDirectory(of session: SessionSettings) -> String? {
        guard session.kind.isPersistent, session.cache.disk.bytes > 0 else { return nil }
        return self.places.cacheDirectory(of: session)
    }

    /// Where the session's cookies and credentials lie; nil where it keeps nothing on disk.
    package func stateDirectory(of session: SessionSettings) -> String? {
        guard session.kind.isPersistent else { return nil }
        return self.places.stateDirectory(of: session)
    }

    /// The file with the key that encrypts them; nil where there is nothing to encrypt.
    ///
    /// One that systemd hands over is not asked for here: whether it is there changes from one
    /// start to the next.
    package func keyFile(of session: SessionSettings) -> String? {
        guard session.kind.isPersistent else { return nil }
        return self.places.keyFile(of: session)
    }

    /// Where the control socket may lie, the preferred place first.
    package var controlSockets: [String] {
        if let path = self.settings.controlSocket { return [path.text] }
        return self.places.controlSockets(forConfiguration: self.file)
    }

    /// Where a further one may lie, so that the proxy is found when the links in the file's path lead
    /// elsewhere; empty where there is to be none.
    package var furtherControlSockets: [String] {
        guard self.settings.controlSocket == nil else { return [] }
        return self.places.furtherControlSockets(forConfiguration: self.file)
    }

    /// Where commands look for the control socket of a running proxy, the likeliest place first.
    ///
    /// One that was started before the file gave it a place is still where it lies by itself. What
    /// links lead to comes first: who was started with that has the settings that are read now.
    package var likelyControlSockets: [String] {
        let places =
            self.places.controlSockets(forConfiguration: self.file)
            + self.places.furtherControlSockets(forConfiguration: self.file)
        guard let path = self.settings.controlSocket?.text else { return places }
        return [path] + places.filter { $0 != path }
    }
}

/// One thing that is wrong with a configuration file.
package struct ConfigurationProblem: Sendable, Equatable, CustomStringConvertible {
    package var file: String
    /// From 1; 0 where the problem is with the file as a whole.
    package var line: Int
    package var column: Int
    package var message: String

    package init(file: String, line: Int = 0, column: Int = 0, message: String) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    package var description: String {
        self.line == 0
            ? "\(self.file): \(self.message)"
            : "\(self.file):\(self.line):\(self.column): \(self.message)"
    }
}

/// A configuration that cannot be used: every problem that was found, in the order of the file.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package var problems: [ConfigurationProblem]

    package init(problems: [ConfigurationProblem]) {
        self.problems = problems
    }

    package var description: String {
        self.problems.map(\.description).joined(separator: "\n")
    }
}
