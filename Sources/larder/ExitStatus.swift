import LarderConfig
import LarderControl
import LarderCookies
import LarderCredentials
import LarderDaemon
import LarderState
import LarderStore

/// How a command ended, by the numbers of sysexits.h(3head).
enum ExitStatus: Int32 {
    case done = 0
    /// Nothing fitted what was asked for.
    case nothingFound = 1
    /// Something was found damaged, or could not all be taken over.
    case damageFound = 2
    case usage = 64
    case data = 65
    case noInput = 66
    case unavailable = 69
    case software = 70
    case cannotCreate = 73
    case inputOutput = 74
    case notPermitted = 77
    case configuration = 78
}

/// What went wrong, and what to do about it: `larder: CAUSE; REMEDY`.
struct CommandFailure: Error, Equatable {
    var status: ExitStatus
    /// Lines, for a configuration has as many as it has mistakes; else one.
    var causes: [String]
    var remedy: String?

    /// What helps where no proxy is found: it may have been started with another file, or be where an
    /// older file had it.
    static let start =
        "\"larder serve\" starts one; one that runs is found by the --config or --system that it was "
        + "started with, and after a change of control.socket by a restart"

    init(_ status: ExitStatus, _ cause: String, remedy: String? = nil) {
        self.status = status
        self.causes = [cause]
        self.remedy = remedy
    }

    /// The failure that an error of a module stands for; nil where the argument parser must answer.
    init?(_ error: any Error) {
        switch error {
        case let error as CommandFailure: self = error
        case let error as ConfigurationError:
            self.init(.configuration, "")
            self.causes = error.problems.map(\.description)
        case let error as ControlError: self = Self.of(error)
        case let error as ControlRefusal:
            let status: ExitStatus =
                switch error.failure.code {
                case .noSuchSession, .invalid: .data
                case .notFound: .nothingFound
                case .noInput: .noInput
                case .noSpace: .cannotCreate
                case .unavailable: .unavailable
                case .inputOutput: .inputOutput
                case .unknownVersion, .malformed, .failed: .software
                }
            // A proxy that another release has started does not know all that is asked here.
            let isOther = [.unknownVersion, .malformed].contains(error.failure.code)
            self.init(
                status, error.description,
                remedy: isOther ? "restart the proxy with the release that is installed" : nil)
        case let error as DaemonError: self = Self.of(error)
        case let error as StateError: self = Self.of(error)
        case let error as UnkeptRemoval:
            let status: ExitStatus =
                switch error.code {
                case .notWritten: .inputOutput
                case .unavailable: .unavailable
                }
            self.init(status, error.description, remedy: error.remedy)
        case let error as CookieStorageError:
            self.init(.inputOutput, "the cookies: \(error.detail)")
        case let error as CredentialStorageError:
            self.init(.inputOutput, "the credentials: \(error.detail)")
        default: return nil
        }
    }

    private static func of(_ error: ControlError) -> CommandFailure {
        switch error.code {
        case .notRunning:
            CommandFailure(.unavailable, error.description, remedy: Self.start)
        case .notPermitted:
            CommandFailure(.notPermitted, error.description, remedy: "ask as the user that runs it")
        case .foreign:
            CommandFailure(
                .notPermitted, error.description,
                remedy: "if that is your proxy, ask as that user; or else see what it is")
        case .timedOut, .closed: CommandFailure(.unavailable, error.description)
        case .inUse: CommandFailure(.unavailable, error.description, remedy: "stop it first")
        case .unknownVersion:
            CommandFailure(
                .unavailable, error.description,
                remedy: "restart the proxy with the release that is installed")
        case .malformed: CommandFailure(.software, error.description)
        case .system: CommandFailure(.inputOutput, error.description)
        }
    }

    private static func of(_ error: DaemonError) -> CommandFailure {
        let status: ExitStatus =
            switch error.code {
            case .unavailable: .unavailable
            case .notPermitted: .notPermitted
            case .cannotCreate: .cannotCreate
            case .configuration: .configuration
            case .software: .software
            }
        return CommandFailure(status, error.description)
    }

    private static func of(_ error: StateError) -> CommandFailure {
        let status: ExitStatus =
            switch error.code {
            case .inUse: .unavailable
            case .wrongKey, .badKeyFile: .configuration
            case .damaged: .data
            case .full: .cannotCreate
            case .unavailable: .inputOutput
            case .untrusted, .denied: .notPermitted
            }
        return CommandFailure(status, "\(error.path): \(error.cause)", remedy: error.remedy)
    }

    /// The lines for standard error.
    var lines: [String] {
        let text = self.causes.map { "larder: \(Printable.text($0))" }
        guard let remedy = self.remedy, let last = text.last else { return text }
        return text.dropLast() + ["\(last); \(remedy)"]
    }
}
