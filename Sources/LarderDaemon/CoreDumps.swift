import CLinux
import LarderConfig

/// Whether the memory of this process may be written to disk when it ends by a fault.
enum CoreDumps {
    /// Forbids it where a session has secrets and the settings do not ask for it.
    ///
    /// prctl(2): "Processes that are not dumpable can not be attached via ptrace(2)
    /// PTRACE_ATTACH", either, so that nobody reads them out of the running process but the superuser.
    ///
    /// - Returns: false where the kernel did not do it.
    static func settle(_ settings: Settings) -> Bool {
        guard self.mustForbid(settings) else { return true }
        return larder_set_dumpable(0) == 0
    }

    /// A session that nothing leads to holds no secrets.
    static func mustForbid(_ settings: Settings) -> Bool {
        guard !settings.dumpsCore else { return false }
        let asksClients = settings.listeners.contains(where: \.authentication.isDemanded)
        return asksClients
            || settings.sessions.contains { session in
                settings.isReachable(session.name)
                    && (session.cookies.mode == .jar || session.credentials.answersChallenges
                        || !settings.injections(of: session.name).isEmpty
                        || settings.parents(of: session.name).contains { $0.credential != nil })
            }
    }

    /// Whether it is allowed now.
    static var areAllowed: Bool { larder_is_dumpable() == 1 }
}
