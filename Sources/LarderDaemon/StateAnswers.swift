package import LarderConfig
package import LarderControl
import LarderCookies
import LarderCredentials
import LarderEngine
import LarderHTTP
import LarderSession
package import LarderState

/// Answers about the cookies and credentials of a session that no proxy runs for: from its state
/// file, which is opened for one command and closed behind it.
package struct StateAnswers: Sendable {
    private let loaded: LoadedSettings
    private let settings: SessionSettings
    private let environment: [String: String]
    private let report: @Sendable (StateEvent) -> Void

    /// - Parameters:
    ///   - environment: names the credentials that a service manager has given.
    ///   - report: hears what a person should know of the file.
    package init(
        _ loaded: LoadedSettings, _ settings: SessionSettings, environment: [String: String],
        report: @escaping @Sendable (StateEvent) -> Void
    ) {
        self.loaded = loaded
        self.settings = settings
        self.environment = environment
        self.report = report
    }

    /// Answers `.cookies` and `.credentials` line by line, as the running proxy would.
    ///
    /// A state is made where something is to be kept and there is none yet; looking makes nothing.
    ///
    /// - Throws: `StateError`, or `ControlRefusal` with what a person is to be told.
    package func answer(
        _ request: ControlRequest, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        switch request {
        case .cookies(_, let principal, let command):
            if case .put(let records) = command { try self.check(records) }
            let state = try self.open(making: command.keepsSomething)
            try await self.closing(state) {
                let answer = try await self.obey(command, of: principal, state)
                for line in answer.replies { try await reply(line) }
            }
        case .credentials(_, _, .rotateKey):
            let state = try self.open(making: false)
            try await self.closing(state) {
                try await reply(.keyRotated(try await self.rotate(state)))
            }
        case .credentials(_, let principal, let command):
            let state = try self.open(making: command.keepsSomething)
            try await self.closing(state) {
                try await self.obey(command, of: principal, state, reply)
            }
        default:
            throw ControlRefusal(invalid: "only a running proxy can tell that")
        }
    }

    // MARK: The file

    /// nil where there is none, and nothing is to be kept.
    private func open(making: Bool) throws -> StateFile? {
        guard let directory = self.loaded.stateDirectory(of: self.settings),
            let file = self.loaded.keyFile(of: self.settings)
        else {
            guard making else { return nil }
            throw ControlError(
                .notRunning,
                "the session \(self.settings.name.text) keeps nothing on disk, and no proxy is "
                    + "running")
        }
        if !making, !Places.isThere("\(directory)/state.mdb") { return nil }
        // Also for looking: a lock and a table of readers come with the opening.
        try ForeignFile.check(directory, holding: "state.mdb")
        let key =
            self.settings.keyFile == nil
            ? KeySource.automatic(file: file, environment: self.environment) : .file(file)
        return try StateFile.open(
            StateConfiguration(directory: directory, key: key), now: SystemClock().now(),
            report: self.report)
    }

    private func closing(_ state: StateFile?, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            await state?.close()
            throw error
        }
        await state?.close()
    }

    /// Whose records.
    private func principal(
        _ name: String?, _ state: StateFile?, hasCommon: Bool
    ) async throws -> String {
        let known = try await state?.principals() ?? []
        return try self.settings.principal(name, hasCommon: hasCommon, known: known)
    }

    // MARK: Cookies

    /// Only what is persistent can be put into a file.
    private func check(_ records: [CookieRecord]) throws {
        guard self.settings.cookies.mode == .jar else {
            throw ControlRefusal.noJar(self.settings.name.text)
        }
        guard records.contains(where: { $0.expiryMicroseconds != nil }) else {
            throw ControlError(
                .notRunning,
                "a cookie without an expiry lives in a running proxy, and none is running")
        }
    }

    private func obey(
        _ command: CookieCommand, of name: String?, _ state: StateFile?
    ) async throws -> CookieAnswer {
        let principal = try await self.principal(name, state, hasCommon: false)
        return try await CookieJar.obey(
            command, keptIn: state?.cookies(of: principal), at: SystemClock().now())
    }

    // MARK: Credentials

    private func obey(
        _ command: CredentialCommand, of name: String?, _ state: StateFile?,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        if case .put(let record, _) = command, record.persistence != "permanent" {
            throw ControlError(
                .notRunning,
                "what is kept for-session lives in a running proxy, and none is running")
        }
        let principal = try await self.principal(name, state, hasCommon: true)
        var store = CredentialStore(keepsPermanent: true)
        let storage = state?.credentials(of: principal)
        if let storage { store.restore(try await storage.load()) }
        if case .test(let reference, let url, let isInsecure) = command {
            // As rules find it: what belongs to all is there for each.
            var common = store
            if !principal.isEmpty, let state {
                common = CredentialStore(keepsPermanent: true)
                common.restore(try await state.credentials(of: "").load())
            }
            let order = try CredentialTrialOrder(reference, url, isInsecure: isInsecure) {
                store.named($0) ?? common.named($0)
            }
            let trial = try await self.trial(order, logins: common.allNamed)
            return try await reply(.credentialTrial(trial))
        }
        guard let (answer, changes) = try store.obey(command, isLasting: true) else { return }
        if let storage, !changes.isEmpty { try await storage.apply(changes) }
        for line in answer.replies { try await reply(line) }
    }

    private func rotate(_ state: StateFile?) async throws -> KeyRotation {
        guard let state, let file = self.loaded.keyFile(of: self.settings) else {
            throw ControlRefusal(
                invalid: "the session \(self.settings.name.text) has no state on disk, and no key")
        }
        let rotation = try await state.rotate()
        return KeyRotation(records: UInt64(clamping: rotation.records), keyFile: file)
    }

    /// Tries a credential by an engine of its own, which keeps nothing.
    ///
    /// - Parameter logins: what the session's parents may ask for.
    private func trial(
        _ order: CredentialTrialOrder, logins: [NamedCredential]
    ) async throws -> CredentialTrial {
        var blueprint = self.loaded.blueprint(of: self.settings)
        blueprint.kind = .ephemeral
        blueprint.disk = nil
        let open = try OpenSession(
            blueprint, clock: SystemClock(), timers: DispatchTimers(), report: { _ in })
        await open.common.credentials.update { store in
            for login in logins {
                store.set(
                    NamedCredential(name: login.name, kind: login.kind, persistence: .forSession))
            }
            return []
        }
        let trial = await order.run(open)
        await open.close()
        return trial
    }
}

extension CookieCommand {
    fileprivate var keepsSomething: Bool {
        if case .put = self { return true }
        return false
    }
}

extension CredentialCommand {
    fileprivate var keepsSomething: Bool {
        if case .put = self { return true }
        return false
    }
}

extension SessionSettings {
    /// Whose records a command means; "" for those of all.
    ///
    /// - Parameters:
    ///   - hasCommon: something belongs to all principals of a session that is split: credentials
    ///     of rules and parent proxies do, cookies do not.
    ///   - known: who could be meant.
    func principal(
        _ name: String?, hasCommon: Bool, known: [String]
    ) throws(ControlRefusal) -> String {
        let isSplit = self.principals != .none
        if let name {
            guard isSplit else {
                throw ControlRefusal(
                    invalid: "the session \(self.name.text) is not split by its clients; leave "
                        + "--principal out")
            }
            // Spaces there may be: users are named as their password file has it.
            guard !name.isEmpty, !name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
                throw ControlRefusal(invalid: "a principal's name has no control characters")
            }
            return name
        }
        guard isSplit, !hasCommon else { return "" }
        let known = known.filter { !$0.isEmpty }
        let names = known.prefix(8).joined(separator: ", ") + (known.count > 8 ? ", …" : "")
        throw ControlRefusal(
            invalid: "the session \(self.name.text) is split by its clients; name one by "
                + "--principal" + (known.isEmpty ? "" : ": \(names)"))
    }
}
