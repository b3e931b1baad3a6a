import LarderConfig

/// `--listen`: other places for clients than those of the configuration.
///
/// One address takes the place of the one that a single listener has, whose other settings stay, and
/// which routes then know by it. Several, or one for several listeners, take the place of listeners
/// as a whole; so none may get lost in this way whose settings anybody has chosen.
struct ListenOverride: Sendable {
    let addresses: [ListenAddress]

    init(_ texts: [String]) throws(CommandFailure) {
        var addresses: [ListenAddress] = []
        for text in texts {
            do throws(SettingTextProblem) {
                addresses.append(try ListenAddress(settingText: text))
            } catch {
                let cause = error.cause.map { " \($0); expected " } ?? " is not "
                throw CommandFailure(
                    .usage, "--listen: \"\(text)\"\(cause)\(ListenAddress.expectation)")
            }
        }
        self.addresses = addresses
    }

    /// Why these addresses cannot take the place of the listeners that are configured; nil where they
    /// can.
    func objection(to settings: Settings) -> CommandFailure? {
        guard !self.addresses.isEmpty, !self.isMove(of: settings) else { return nil }
        let lost = settings.listeners.first { listener in
            !self.addresses.contains(listener.address)
                && (listener != ListenerSettings(address: listener.address)
                    || settings.routes.contains { $0.listeners.contains(listener.address) })
        }
        guard let lost else { return nil }
        return CommandFailure(
            .usage,
            "--listen would take away the listener \(lost.address.settingText), which has settings "
                + "or routes of its own",
            remedy: "change the addresses in the configuration, or name that one by --listen, too")
    }

    /// Whether there is one listener before and after.
    private func isMove(of settings: Settings) -> Bool {
        self.addresses.count == 1 && settings.listeners.count == 1
    }

    /// Puts the addresses in the place of those of the configuration; to be asked for an objection
    /// before.
    func apply(to loaded: inout LoadedSettings) {
        guard !self.addresses.isEmpty else { return }
        let old = loaded.settings.listeners
        if self.isMove(of: loaded.settings), let from = old.first?.address {
            loaded.settings.listeners[0].address = self.addresses[0]
            for index in loaded.settings.routes.indices {
                loaded.settings.routes[index].listeners = loaded.settings.routes[index].listeners
                    .map { $0 == from ? self.addresses[0] : $0 }
            }
        } else {
            loaded.settings.listeners = self.addresses.map { address in
                old.first { $0.address == address } ?? ListenerSettings(address: address)
            }
        }
        loaded.listenersNamedBy = "--listen"
    }
}
