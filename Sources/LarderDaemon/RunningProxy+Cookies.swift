import LarderConfig
package import LarderControl
import LarderCookies
import LarderEngine
import LarderHTTP
import LarderSession
import LarderState

extension RunningProxy {
    /// Answers a command about the cookies that a session keeps itself.
    ///
    /// When it returns, what is persistent would outlive the process.
    func answer(
        _ command: CookieCommand, session name: String, principal: String?,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        for member in try self.members(named: name) {
            let part = try await member.part(of: principal, hasCommon: false)
            guard let cookies = part.cookies else {
                let answer = try await member.withoutJar(command, of: part.principal)
                for line in answer.replies { try await reply(line) }
                try member.requireState(isLook: command.isLook)
                continue
            }
            let now = SystemClock().now()
            let (answer, failure) = await cookies.changed { $0.obey(command, at: now) }
            if command.isLook {
                // What is there can be told, whatever becomes of it.
                for line in answer.replies { try await reply(line) }
            }
            if let failure {
                let what = command.isLook ? "not all of this is kept" : "done, but not kept"
                throw ControlRefusal(
                    failure: ControlFailure(
                        .inputOutput, "\(what) beyond the proxy's end: \(failure.detail)"))
            }
            if !command.isLook {
                for line in answer.replies { try await reply(line) }
            }
            try member.requireState(isLook: command.isLook)
        }
    }
}

extension RunningProxy.RunningSession {
    /// The part of the session that a command means, once it has read what it kept.
    ///
    /// - Parameter hasCommon: without a principal what belongs to all is meant.
    func part(of principal: String?, hasCommon: Bool) async throws -> PrincipalSession {
        let known = self.open.residentPrincipals.map(\.principal)
        let name = try self.settings.principal(principal, hasCommon: hasCommon, known: known)
        guard let part = self.open.part(of: name) else {
            throw ControlRefusal(
                failure: ControlFailure(.unavailable, "the session is being closed"))
        }
        await part.opened()
        return part
    }

    /// Fails where the state of the session could not be opened: what it kept there before is neither
    /// listed nor removed, and nothing is kept now.
    func requireState(isLook: Bool) throws(ControlRefusal) {
        guard let error = self.open.missingState else { return }
        let what = isLook ? "what the session kept is missing" : "done until the proxy ends"
        throw ControlRefusal(
            failure: ControlFailure(
                .unavailable, "\(what), as its state could not be opened: \(error)"))
    }

    /// Answers about a session that passes cookies on, as a command does where no proxy runs: what it
    /// kept while it had a jar may lie in its state file still.
    fileprivate func withoutJar(
        _ command: CookieCommand, of principal: String
    ) async throws(ControlRefusal) -> CookieAnswer {
        if case .put = command { throw ControlRefusal.noJar(self.settings.name.text) }
        do throws(CookieStorageError) {
            return try await CookieJar.obey(
                command, keptIn: self.open.state?.cookies(of: principal),
                at: SystemClock().now())
        } catch {
            throw ControlRefusal(
                failure: ControlFailure(.inputOutput, "the cookies: \(error.detail)"))
        }
    }
}

extension CookieCommand {
    /// Whether the command only reads.
    fileprivate var isLook: Bool {
        if case .list = self { return true }
        return false
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
    /// A session has no jar, and how it gets one.
    package static func noJar(_ session: String) -> ControlRefusal {
        ControlRefusal(
            invalid: "the session \(session) keeps no cookies, it passes them on; give it "
                + "cookies: {mode: jar}")
    }
}
