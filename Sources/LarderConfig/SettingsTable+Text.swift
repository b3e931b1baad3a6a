/// A setting without its type, for listings.
package struct SettingDescription: Sendable, Equatable {
    /// With `[]` for each item of a list and `NAME` for a name of the user's choice.
    package var path: String
    package var kind: String
    package var isList: Bool
    /// What it is unless given.
    package var standard: String
    /// What the shipped file shows in its place, where that is something else.
    package var example: String?
    package var bounds: String?
    package var changesWhileRunning: Bool
    package var about: String

    fileprivate init<Section>(
        _ setting: Setting<Section>, prefix: String, in section: Section, example: Section
    ) {
        self.path = prefix + setting.path
        self.kind = setting.kind
        self.isList = setting.isList
        self.standard = setting.text(in: section)
        let shown = setting.text(in: example)
        self.example = shown == self.standard ? nil : shown
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
        var all: [SettingDescription] = []
        func add<Section>(
            _ table: [Setting<Section>], _ prefix: String, _ section: Section,
            such example: Section? = nil
        ) {
            all += table.map {
                SettingDescription(
                    $0, prefix: prefix, in: section, example: example ?? section)
            }
        }
        add(Self.listener, "listeners[].", ListenerSettings())
        add(Self.route, "routes[].", RouteSettings(), such: Self.routeExample)
        add(Self.session, "sessions.NAME.", session)
        add(Self.access, "access[].", AccessRule(), such: standard.access.first)
        add(Self.injection, "injections[].", InjectionSettings(), such: Self.injectionExample)
        add(Self.parent, "parents[].", ParentSettings(), such: Self.parentExample)
        add(Self.cacheRule, "cache-rules[].", CacheRuleSettings(), such: Self.cacheRuleExample)
        add(Self.general, "", standard)
        return all
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
        func addList<Section>(_ table: [Setting<Section>], _ name: String, _ list: [Section]) {
            for (index, item) in list.enumerated() { add(table, "\(name)[\(index)].", item) }
        }
        let settings = loaded.settings
        addList(Self.listener, "listeners", settings.listeners)
        addList(Self.route, "routes", settings.routes)
        for session in settings.sessions {
            add(Self.session, "sessions.\(session.name.text).", session)
        }
        if settings.access.isEmpty {
            rows.append(
                EffectiveSetting(
                    path: "access", value: "[]", origin: loaded.origins["access"] ?? .default))
        }
        addList(Self.access, "access", settings.access)
        addList(Self.injection, "injections", settings.injections)
        addList(Self.parent, "parents", settings.parents)
        addList(Self.cacheRule, "cache-rules", settings.cacheRules)
        add(Self.general, "", settings)
        return rows
    }

    /// The paths whose change from one to the other only a restart puts into force.
    ///
    /// - Parameters:
    ///   - unopened: sessions that the new routes lead to and that only a restart opens.
    ///   - otherPresets: files of presets say something else by now.
    package static func needingRestart(
        from old: Settings, to new: Settings, unopened: [SessionName] = [],
        otherPresets: Bool = false
    ) -> [String] {
        var paths: [String] = []
        func compare<Section>(
            _ table: [Setting<Section>], _ prefix: String, _ old: Section, _ new: Section
        ) {
            for setting in table where !setting.changesWhileRunning {
                if setting.show(old) != setting.show(new) { paths.append(prefix + setting.path) }
            }
        }
        func compareLists<Section>(
            _ table: [Setting<Section>], _ name: String, _ old: [Section], _ new: [Section]
        ) {
            guard old.count == new.count else { return paths.append(name) }
            for (index, (a, b)) in zip(old, new).enumerated() {
                compare(table, "\(name)[\(index)].", a, b)
            }
        }
        compareLists(Self.listener, "listeners", old.listeners, new.listeners)
        for (index, (a, b)) in zip(old.listeners, new.listeners).enumerated()
        where a.authentication.isDemanded != b.authentication.isDemanded {
            paths.append("listeners[\(index)].authentication")
        }
        paths += old.accessWaiting(for: new, unopened: unopened, otherPresets: otherPresets)
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
        compareLists(Self.parent, "parents", old.parents, new.parents)
        compare(Self.general, "", old, new)
        return paths
    }
}
