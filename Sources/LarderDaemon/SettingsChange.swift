import LarderConfig

/// What a changed configuration file means for a proxy that runs.
enum SettingsChange {
    /// The sections that changed but are read at the start only, by their names in the file.
    static func needingRestart(from old: Settings, to new: Settings) -> [String] {
        var names: [String] = []
        func compare<Value: Equatable>(_ name: String, _ part: (Settings) -> Value) {
            if part(old) != part(new) { names.append(name) }
        }
        compare("listeners", \.listeners)
        compare("sessions", \.sessions)
        compare("connect-ports", \.connectPorts)
        compare("name", \.name)
        compare("forwarded", \.forwarded)
        compare("limits", \.limits)
        compare("timeouts", \.timeouts)
        compare("log", \.log)
        compare("event-loops", \.eventLoops)
        compare("transfer-threads", \.transferThreads)
        compare("control-socket", \.controlSocket)
        return names
    }
}
