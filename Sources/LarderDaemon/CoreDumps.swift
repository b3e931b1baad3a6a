import CLinux
import Glibc
import LarderConfig
import Logging

/// Whether the memory of this process may be written to disk when it ends by a fault.
enum CoreDumps {
    /// Forbids it where a session has secrets and the settings do not ask for it.
    ///
    /// prctl(2): "Processes that are not dumpable can not be attached via ptrace(2)
    /// PTRACE_ATTACH", either, so that nobody reads them out of the running process but the superuser.
    ///
    /// Before anything is opened: what the stores do about SIGBUS comes after it.
    ///
    /// - Returns: false where the kernel did not do it.
    static func settle(_ settings: Settings) -> Bool {
        guard self.mustForbid(settings) else { return true }
        return larder_set_dumpable(0) == 0 && self.silenceBacktraces()
    }

    /// Forbids it while the process runs, once new settings bring in secrets; never allows it again.
    ///
    /// The actions of signals stay: some are the stores' by now.
    ///
    /// - Returns: false where the kernel did not do it.
    static func tighten(_ settings: Settings) -> Bool {
        guard self.mustForbid(settings), self.areAllowed else { return true }
        return larder_set_dumpable(0) == 0
    }

    /// Said where the system did not forbid it.
    static let notForbidden: Logger.Message =
        "core dumps may hold secrets: the system did not forbid them"

    /// The signals of faults that Swift's runtime answers by a backtrace.
    static let faults = [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP]

    /// Has faults end the process at once, as the system does by itself.
    ///
    /// A backtrace of the runtime's (SWIFT_BACKTRACE) shows the registers and the memory that they
    /// point to, on standard error and thus in logs.
    private static func silenceBacktraces() -> Bool {
        var isDone = true
        for number in self.faults {
            var action = sigaction()
            guard unsafe sigaction(number, nil, &action) == 0 else {
                isDone = false
                continue
            }
            // What whoever started it has chosen to ignore stays so.
            let isIgnored =
                unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
                == unsafeBitCast(SIG_IGN, to: Int.self)
            guard !isIgnored else { continue }
            action = sigaction()
            unsafe action.__sigaction_handler.sa_handler = SIG_DFL
            if unsafe sigaction(number, &action, nil) != 0 { isDone = false }
        }
        return isDone
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
