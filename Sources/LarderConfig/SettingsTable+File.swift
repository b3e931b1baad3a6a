extension SettingsTable {
    /// The file that ships with Larder: every setting with its description, bounds and default, all
    /// commented out.
    ///
    /// A setting's line begins with `#` and two or more spaces, or none; prose with `#` and one.
    package static var shippedFile: String {
        let standard = Settings()
        var text = Self.shippedHead
        text += "\n# LISTENERS. One item for each place where clients connect.\n#listeners:\n"
        text += Self.items(Self.listener, standard.listeners, else: ListenerSettings())
        text += """

            # ROUTES. Which session answers whom, in place of the listener's: the first that fits decides.
            # There are none unless they are given here; the one below is an example.
            #routes:

            """
        text += Self.items(Self.route, [Self.routeExample], else: RouteSettings())
        text += """

            # SESSIONS. A session has a cache of its own. "default" (on disk) and "ephemeral" (in
            # memory) always exist; a listener names the one it uses. One of kind background, for
            # downloads that outlive their clients, exists where it is given here. The settings below
            # are shown for "default" and hold for any name.
            #sessions:
            #  default:

            """
        let session = standard.session(named: .default) ?? SessionSettings(name: .default)
        text += Self.mapping(Self.session, session, indent: 4)
        text += """

            # ACCESS RULES. The first that fits decides; where none fits, the request is denied. Without
            # any in this file the one below holds; those that it gives stand in its place.
            #access:

            """
        text += Self.items(Self.access, standard.access, else: AccessRule())
        text += """

            # INJECTIONS. Credentials that requests to certain places get on their way, so that clients need
            # not have them. The first that fits speaks. There are none unless they are given here.
            #injections:

            """
        text += Self.items(Self.injection, [Self.injectionExample], else: InjectionSettings())
        text += """

            # PARENTS. The proxies by which origins are reached; the first that fits decides, and where none
            # does, origins are asked themselves. There are none unless they are given here.
            #parents:

            """
        text += Self.items(Self.parent, [Self.parentExample], else: ParentSettings())
        text += """

            # CACHE RULES. What is said about the responses of certain hosts and paths over their heads:
            # the first that fits speaks, alone. There are none unless they are given here, or by presets;
            # the one below is an example that changes nothing.
            #cache-rules:

            """
        text += Self.items(Self.cacheRule, [Self.cacheRuleExample], else: CacheRuleSettings())
        return text + "\n" + Self.mapping(Self.general, standard, indent: 0)
    }

    private static let shippedHead = """
        # Larder's configuration.
        #
        # Larder runs without this file: what stands here are the defaults, but for examples in lists,
        # which tell what a setting is unless given. To change a setting, take away the "#" before it
        # and before the lines that it lies in. A file with an unknown name or a value out of range
        # stops the start, with the line; "larder config check FILE" tells beforehand, and "larder
        # config show" shows what follows from it.
        #
        # It is looked for as $XDG_CONFIG_HOME/larder/larder.yaml (~/.config/larder/larder.yaml), then
        # as /etc/larder/larder.yaml; every verb takes --config FILE.
        #
        # Sizes: B, KiB, MiB, GiB, TiB, for short K, M, G, T (and kB, MB, GB, TB).
        # Times: ms, s, min, h, d.
        # SIGHUP puts the settings marked "reload" into force; the others need a restart.

        """

    /// The first setting of each item lies in no mapping of its own.
    ///
    /// - Parameter new: an item that says nothing.
    private static func items<Section>(
        _ table: [Setting<Section>], _ sections: [Section], else new: Section
    ) -> String {
        var text = ""
        for section in sections {
            guard let first = table.first else { continue }
            text += Self.prose(first, section, else: new, indent: 4)
            text += "#  - \(first.path): \(Self.value(first, section))\n"
            text += Self.mapping(Array(table.dropFirst()), section, else: new, indent: 4)
        }
        return text
    }

    /// Settings whose names share a first part stand in one mapping.
    private static func mapping<Section>(
        _ table: [Setting<Section>], _ section: Section, else new: Section? = nil, indent: Int
    ) -> String {
        var text = ""
        var open: [Substring] = []
        for setting in table {
            let parts = setting.path.split(separator: ".")
            var depth = 0
            while depth < parts.count - 1, depth < open.count, open[depth] == parts[depth] {
                depth += 1
            }
            if indent == 0, depth == 0 { text += text.isEmpty ? "" : "\n" }
            open = Array(open.prefix(depth))
            while open.count < parts.count - 1 {
                let margin = String(repeating: " ", count: indent + 2 * open.count)
                text += "#\(margin)\(parts[open.count]):\n"
                open.append(parts[open.count])
            }
            let inner = indent + 2 * open.count
            let margin = String(repeating: " ", count: inner)
            text += Self.prose(setting, section, else: new, indent: inner)
            text += "#\(margin)\(parts.last ?? ""): \(Self.value(setting, section))\n"
        }
        return text
    }

    private static func value<Section>(_ setting: Setting<Section>, _ section: Section) -> String {
        if setting.isPairs { return setting.text(in: section) }
        let scalars = setting.show(section).map(Self.quoted)
        return setting.isList ? "[" + scalars.joined(separator: ", ") + "]" : scalars.joined()
    }

    /// Quotes what YAML would take for something else: `*` begins an alias, `0600` is a number.
    private static func quoted(_ scalar: String) -> String {
        let plain = scalar.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-_./ :".utf8.contains(byte)
            }
        }
        let isSafe =
            plain && !scalar.isEmpty && !scalar.hasPrefix("-") && !scalar.hasPrefix(":")
            && !scalar.hasSuffix(":") && !scalar.contains(": ")
        return isSafe ? scalar : "\"\(scalar)\""
    }

    private static func prose<Section>(
        _ setting: Setting<Section>, _ section: Section, else new: Section?, indent: Int
    ) -> String {
        var facts = [
            setting.isList && !setting.isPairs ? "list of \(setting.kind)" : setting.kind
        ]
        if let bounds = setting.bounds {
            facts.append(bounds)
        } else if let absent = setting.absent {
            facts.append("or \(absent)")
        }
        if let new, setting.text(in: new) != setting.text(in: section) {
            facts.append("unless given: \(Self.value(setting, new))")
        }
        if setting.changesWhileRunning { facts.append("reload") }
        // Inside a mapping the prose is indented with it, and stays a comment without its first mark.
        let margin = indent == 0 ? "" : "#" + String(repeating: " ", count: indent)
        let lines =
            Prose.wrap(setting.about, width: 94 - indent)
            + Prose.wrap("(\(facts.joined(separator: "; ")))", width: 94 - indent)
        return lines.map { "\(margin)# \($0)\n" }.joined()
    }
}

/// Running text.
package enum Prose {
    /// Breaks text at spaces into lines of at most `width` characters; a longer word stands alone.
    package static func wrap(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if line.isEmpty {
                line = String(word)
            } else if line.count + 1 + word.count <= width {
                line += " \(word)"
            } else {
                lines.append(line)
                line = String(word)
            }
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }
}
