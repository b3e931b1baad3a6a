// Access rules are meant for the listeners of their own file. Where that closes one in force
// further, by what only a restart brings, its rules could open it until then to clients who were not
// to reach it. So they wait for the restart, too: all of them, as they belong together.
extension Settings {
    /// The listeners in force that newer settings close further, which only a restart does.
    package func listenersClosed(by newer: Settings) -> [ListenAddress] {
        self.listeners.enumerated().filter { index, listener in
            // An address that was given up stays open until the restart.
            guard let other = newer.listener(at: listener.address, likely: index) else {
                return true
            }
            return listener.isClosed(by: other)
        }.map(\.element.address)
    }

    /// The rules that change together with such listeners, and wait with them.
    package func accessWaiting(for newer: Settings) -> [String] {
        var paths: [String] = []
        if self.access != newer.access { paths.append("access") }
        if self.connectPorts != newer.connectPorts { paths.append("connect-ports") }
        return paths.isEmpty || self.listenersClosed(by: newer).isEmpty ? [] : paths
    }

    /// Several may have one address, where each takes a free port.
    private func listener(at address: ListenAddress, likely index: Int) -> ListenerSettings? {
        if self.listeners.indices.contains(index), self.listeners[index].address == address {
            return self.listeners[index]
        }
        return self.listeners.first { $0.address == address }
    }
}

extension ListenerSettings {
    /// Whether newer settings of it turn clients away whom these let in.
    fileprivate func isClosed(by newer: ListenerSettings) -> Bool {
        newer.asksEverybody && !self.asksEverybody
            || self.address.isUnix && self.mode.bits & ~newer.mode.bits != 0
    }

    private var asksEverybody: Bool {
        self.authentication.isDemanded
            && (!self.address.isUnix || self.authentication.includesUnixPeers)
    }
}

extension LoadedSettings {
    /// Warns that newer rules about access wait for a restart, and why; nil where they need not.
    package func waitingAccessWarning(for newer: LoadedSettings) -> ConfigurationProblem? {
        let waiting = self.settings.accessWaiting(for: newer.settings)
        guard !waiting.isEmpty else { return nil }
        let closed = self.settings.listenersClosed(by: newer.settings)
        let names = closed.map(\.settingText).joined(separator: ", ")
        return ConfigurationProblem(
            file: newer.file ?? "",
            message: "\(waiting.joined(separator: ", ")): the old rules hold until a restart, "
                + "which alone closes \(names) as this file has it; the new ones could open that "
                + "to others until then; restart, or reload without the change of listeners")
    }
}
