import LarderControl
import LarderCookies
import LarderEngine
import LarderHTTP

/// A jar in use, as commands see it.
protocol CookieKeeping: Sendable {
    /// Does what a command asks; returns when what is persistent would outlive the process.
    func obey(_ command: CookieCommand, at now: Timestamp) async throws -> CookieAnswer
}

extension RunningProxy {
    /// Answers a command about a session's own cookies.
    func answer(
        _ command: CookieCommand, session name: String, principal: String?,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        for member in try self.members(named: name) {
            guard let cookies = try await member.cookies(of: principal) else {
                throw ControlRefusal.noJar(name)
            }
            for line in try await cookies.obey(command, at: SystemClock().now()).replies {
                try await reply(line)
            }
        }
    }
}

extension CookieAnswer {
    /// The lines that tell of it, none longer than the socket allows.
    var replies: [ControlReply] {
        switch self {
        case .cookies(let records): CookieBatch.cut(records).map { .cookies($0) }
        case .verdicts(let verdicts): [.cookieVerdicts(verdicts)]
        case .removed(let count): [.removed(UInt64(clamping: count))]
        }
    }
}

extension ControlRefusal {
    static func noJar(_ session: String) -> ControlRefusal {
        ControlRefusal(
            invalid: "the session \(session) keeps no cookies, it passes them on; give it "
                + "cookies: {mode: jar}")
    }
}
