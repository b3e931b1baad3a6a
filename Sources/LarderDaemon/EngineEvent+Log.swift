import LarderCookies
import LarderCredentials
import LarderDisk
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderState
import LarderTransfer
import Logging
import Synchronization

extension EngineEvent {
    /// Writes what a person should know of a session to the log; `notices` bounds how often.
    func record(
        session: String, to log: Logger, notices: borrowing Mutex<SessionNotices>, at now: Timestamp
    ) {
        switch self {
        case .withoutDisk(let error):
            log.warning(
                "caching in memory only",
                metadata: facts(session, error))
        case .disk(let event):
            event.record(session: session, to: log, notices: notices, at: now)
        case .state(let event): event.record(session: session, to: log)
        case .withoutState(let error):
            log.warning(
                "cookies and credentials are kept in memory only",
                metadata: facts(session, error))
        case .cookies(let principal, let event):
            event.record(
                session: session, principal: principal, to: log, notices: notices, at: now)
        case .credentialsNotKept(let principal, let error):
            log.warning(
                "credentials are not kept for now",
                metadata: [
                    "session": "\(session)", "principal": "\(principal)",
                    "cause": "\(error.detail)",
                ])
        case .withoutPublicSuffixes:
            log.warning(
                "no list of public suffixes: cookies are kept for single hosts; install publicsuffix",
                metadata: ["session": "\(session)"])
        case .transfersWait(let limit): limit.record(session: session, to: log)
        case .transfer(let event): event.record(session: session, to: log)
        }
    }
}

extension TransferLimit {
    fileprivate func record(session: String, to log: Logger) {
        let (message, remedy): (Logger.Message, String) =
            switch self {
            case .nameLookups:
                (
                    "requests wait for the look-up of their origins' names",
                    "see whether the name servers answer, and which client asks for many names"
                )
            case .connections:
                (
                    "no further connection to origins may be made: requests wait",
                    "see which client has many requests, or raise limits.origin-connections"
                )
            }
        log.warning(
            message,
            metadata: [
                "session": "\(session)", "remedy": "\(remedy)",
                "from-now-on": "not said for an hour",
            ])
    }
}

extension TransferEvent {
    fileprivate func record(session: String, to log: Logger) {
        switch self {
        case .ended(let uri, let end):
            var metadata: Logger.Metadata = ["session": "\(session)", "uri": "\(uri)"]
            guard let cause = end.cause else {
                let isStored = end == .stored
                let message: Logger.Message = isStored ? "transfer complete" : "transfer cancelled"
                return log.info(message, metadata: metadata)
            }
            metadata["cause"] = "\(cause)"
            log.warning("transfer given up", metadata: metadata)
        case .tooMany(let limit, let share):
            log.warning(
                "as many transfers are kept as may be: further ones end with their clients",
                metadata: [
                    "session": "\(session)", "transfers": "\(limit)", "of-one-client": "\(share)",
                    "remedy": "see what waits by larder transfers, and cancel what is not wanted",
                ])
        case .notWritten(let error):
            log.warning(
                "transfers are not remembered for now, and end with the proxy",
                metadata: facts(session, error))
        case .notTakenUp(let error):
            log.warning(
                "transfers of before are not gone on with", metadata: facts(session, error))
        }
    }
}

extension TransferEnd {
    /// Why it was given up, for people; nil where it was not.
    fileprivate var cause: String? {
        switch self {
        case .stored, .cancelled: nil
        case .expired(let cause): "not complete after 7 days: \(cause)"
        case .answered(let status): "answered with \(status)"
        case .refused(let detail): detail
        case .notKept(let detail): "not kept by the cache: \(detail)"
        }
    }
}

extension DiskEvent {
    fileprivate func record(
        session: String, to log: Logger, notices: borrowing Mutex<SessionNotices>, at now: Timestamp
    ) {
        switch self {
        case .setAside(let name, let reason):
            log.warning(
                "cache file set aside, a new one made",
                metadata: ["session": "\(session)", "name": "\(name)", "reason": "\(reason)"])
        case .discarded(let reason):
            log.warning(
                "cache file removed, a new one made",
                metadata: ["session": "\(session)", "reason": "\(reason)"])
        case .asideRemoved(let name, let bytes):
            log.notice(
                "removed an older cache file that had been set aside",
                metadata: ["session": "\(session)", "name": "\(name)", "bytes": "\(bytes)"])
        case .lost(let reason):
            log.warning(
                "cache file lost, a new one made",
                metadata: ["session": "\(session)", "reason": "\(reason)"])
        case .shrunk(let report):
            log.notice(
                "cache file shrunk to its lowered capacity",
                metadata: [
                    "session": "\(session)", "before": "\(report.before)",
                    "after": "\(report.after)",
                ])
        case .notShrunk(let error):
            log.warning(
                "cache file stays larger than its capacity for now",
                metadata: facts(session, error))
        case .full(let error):
            var metadata = facts(session, error)
            metadata["from-now-on"] = "not said for an hour"
            log.warning(
                "the cache's file system is full: new responses take the place of older ones",
                metadata: metadata)
        case .damaged(let key, let reason):
            var metadata: Logger.Metadata = [
                "session": "\(session)", "uri": "\(key?.parts.uri ?? "")", "reason": "\(reason)",
            ]
            switch notices.withLock({ $0.damage.verdict(at: now) }) {
            case .count: return
            case .say(untold: 0): break
            case .say(let untold): metadata["before"] = "\(untold) that were counted only"
            case .sayAsLast: metadata["from-now-on"] = "counted only, for up to an hour"
            }
            log.warning("damaged entry dropped", metadata: metadata)
        case .failed(let error):
            log.warning(
                "nothing is stored on disk for now",
                metadata: facts(session, error))
        // One that fails and recovers in turns is one trouble.
        case .failedAgain(let error):
            log.debug(
                "nothing is stored on disk once more",
                metadata: facts(session, error))
        case .recovered:
            log.debug("something was stored on disk again", metadata: ["session": "\(session)"])
        case .settled:
            log.notice("storing on disk again", metadata: ["session": "\(session)"])
        case .opened:
            log.notice(
                "the cache on disk could be opened: storing there from now on",
                metadata: ["session": "\(session)"])
        case .removalNotKept(let error):
            log.warning(
                "responses that were removed may come back at the next start",
                metadata: facts(session, error))
        }
    }
}

/// What is said of a store or a state that cannot be used.
private func facts(_ session: String, _ error: StoreError) -> Logger.Metadata {
    facts(session, path: error.path, cause: "\(error.cause)", remedy: error.remedy)
}

private func facts(_ session: String, _ error: StateError) -> Logger.Metadata {
    facts(session, path: error.path, cause: "\(error.cause)", remedy: error.remedy)
}

private func facts(
    _ session: String, path: String, cause: String, remedy: String
) -> Logger.Metadata {
    ["session": "\(session)", "path": "\(path)", "cause": "\(cause)", "remedy": "\(remedy)"]
}

extension StateEvent {
    fileprivate func record(session: String, to log: Logger) {
        switch self {
        case .keyMade(let path):
            log.notice(
                "key made for cookies and credentials; back it up apart from them",
                metadata: ["session": "\(session)", "path": "\(path)"])
        case .begunAnew:
            log.notice(
                "key found without its file of cookies and credentials; new file made",
                metadata: ["session": "\(session)"])
        case .missing(let path):
            log.warning(
                "file of cookies and credentials is gone; a new one is made when it is needed",
                metadata: [
                    "session": "\(session)", "path": "\(path)",
                    "remedy": "where you moved it away, move state.mdb-lock away, too",
                ])
        case .setAside(let name, let reason):
            log.warning(
                "file of cookies and credentials set aside, a new one made",
                metadata: ["session": "\(session)", "name": "\(name)", "reason": "\(reason)"])
        case .rotationFinished:
            log.notice(
                "finished an interrupted change of the key",
                metadata: ["session": "\(session)"])
        case .rotationUndone:
            log.notice(
                "undid an interrupted change of the key",
                metadata: ["session": "\(session)"])
        case .rotationUnfinished(let key, let path, let cause):
            log.error(
                "the key of cookies and credentials is not in its place; move it there",
                metadata: [
                    "session": "\(session)", "key": "\(key)", "place": "\(path)",
                    "cause": "\(cause)",
                ])
        case .unreadable(let records):
            log.warning(
                "some cookies or credentials do not open, and are left out",
                metadata: ["session": "\(session)", "records": "\(records)"])
        }
    }
}

extension CookieEvent {
    /// Hosts and principals are written as they are told; no event holds a cookie.
    fileprivate func record(
        session: String, principal: String, to log: Logger,
        notices: borrowing Mutex<SessionNotices>, at now: Timestamp
    ) {
        switch self {
        case .refused(let refusal, let count, let host):
            log.debug(
                "cookies refused",
                metadata: [
                    "session": "\(session)", "host": "\(host)", "rule": "\(refusal)",
                    "count": "\(count)",
                ])
        case .notRestored(let error):
            log.warning(
                "cookies could not be read, and are kept in memory only",
                metadata: [
                    "session": "\(session)", "principal": "\(principal)",
                    "cause": "\(error.detail)",
                ])
        case .notKept(let error):
            guard case .say(let untold) = notices.withLock({ $0.cookies.began(at: now) }) else {
                return
            }
            var metadata: Logger.Metadata = [
                "session": "\(session)", "principal": "\(principal)", "cause": "\(error.detail)",
            ]
            if untold > 0 { metadata["before"] = "\(untold) principals that were counted only" }
            log.warning("cookies are not kept for now", metadata: metadata)
        case .keptAgain:
            guard let principals = notices.withLock({ $0.cookies.ended(at: now) }) else { return }
            log.notice(
                "cookies are kept again",
                metadata: ["session": "\(session)", "principals": "\(principals)"])
        }
    }
}
