/// A setting without its type, for listings.
package struct SettingDescription: Sendable, Equatable {
    /// With `[]` for each item of a list and `NAME` for a name of the user's choice.
    package var path: String
    package var kind: String
    package var isList: Bool
    package var standard: String
    package var bounds: String?
    package var changesWhileRunning: Bool
    package var about: String

    fileprivate init<Section>(_ setting: Setting<Section>, prefix: String, in section: Section) {
        self.path = prefix + setting.path
        self.kind = setting.kind
        self.isList = setting.isList
        self.standard = setting.text(in: section)
        self.bounds = setting.bounds
        self.changesWhileRunning = setting.changesWhileRunning
        self.about = setting.about
    }
}

/// A value in force, and where it comes from.
package struct EffectiveSetting: Sendable, Equatable {
    package var path: String
    package var value: String
    package var origin: SettingOrigin
}

extension SettingsTable {
    /// Every setting, in the order of the shipped file.
    package static var descriptions: [SettingDescription] {
        let standard = Settings()
        let session = SessionSettings(name: .default)
        let rule = standard.access.first ?? AccessRule()
        return Self.listener.map { .init($0, prefix: "listeners[].", in: ListenerSettings()) }
            + Self.session.map { .init($0, prefix: "sessions.NAME.", in: session) }
            + Self.access.map { .init($0, prefix: "access[].", in: rule) }
            + Self.cacheRule.map { .init($0, prefix: "cache-rules[].", in: Self.cacheRuleExample) }
            + Self.general.map { .init($0, prefix: "", in: standard) }
    }

    /// Every value in force.
    package static func effective(_ loaded: LoadedSettings) -> [EffectiveSetting] {
        var rows: [EffectiveSetting] = []
        func add<Section>(_ table: [Setting<Section>], _ prefix: String, _ section: Section) {
            for setting in table {
                let path = prefix + setting.path
                rows.append(
                    EffectiveSetting(
                        path: path, value: setting.text(in: section),
                        origin: loaded.origins[path] ?? .default))
            }
        }
        let settings = loaded.settings
        for (index, listener) in settings.listeners.enumerated() {
            add(Self.listener, "listeners[\(index)].", listener)
        }
        for session in settings.sessions {
            add(Self.session, "sessions.\(session.name.text).", session)
        }
        for (index, rule) in settings.access.enumerated() {
            add(Self.access, "access[\(index)].", rule)
        }
        for (index, rule) in settings.cacheRules.enumerated() {
            add(Self.cacheRule, "cache-rules[\(index)].", rule)
        }
        add(Self.general, "", settings)
        return rows
    }

    /// The paths whose change from one to the other only a restart puts into force.
    package static func needingRestart(from old: Settings, to new: Settings) -> [String] {
        var paths: [String] = []
        func compare<Section>(
            _ table: [Setting<Section>], _ prefix: String, _ old: Section, _ new: Section
        ) {
            for setting in table where !setting.changesWhileRunning {
                if setting.show(old) != setting.show(new) { paths.append(prefix + setting.path) }
            }
        }
        if old.listeners.count != new.listeners.count {
            paths.append("listeners")
        } else {
            for (index, (a, b)) in zip(old.listeners, new.listeners).enumerated() {
                compare(Self.listener, "listeners[\(index)].", a, b)
            }
        }
        for session in new.sessions {
            guard let before = old.session(named: session.name) else {
                paths.append("sessions.\(session.name.text)")
                continue
            }
            compare(Self.session, "sessions.\(session.name.text).", before, session)
        }
        for session in old.sessions where new.session(named: session.name) == nil {
            paths.append("sessions.\(session.name.text)")
        }
        compare(Self.general, "", old, new)
        return paths
    }
}
