import LarderConfig
import LarderControl
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderSession

// The principals of a session, as commands see them.

extension RunningProxy.RunningSession {
    /// The partitions of the store that are in use now.
    var partitions: [String] { self.sessions.map(\.partition) }

    /// The part of the session that a principal sees.
    ///
    /// - Throws: `.invalid` where one must be named, or cannot be.
    func session(of principal: String?) throws(ControlRefusal) -> Session {
        let name = self.settings.name.text
        guard let principal else {
            guard !self.isSplit else {
                throw ControlRefusal(
                    invalid:
                        "session \(name) is split by principal, and each has a cache of its own; name "
                        + "one with --principal, as \"larder cache list\" shows them")
            }
            return self.session
        }
        guard self.isSplit || principal.isEmpty else {
            throw ControlRefusal(invalid: "session \(name) is not split by principal")
        }
        guard let session = self.open.session(of: principal) else {
            throw ControlRefusal(invalid: "session \(name) is closed")
        }
        return session
    }
}

extension RunningProxy {
    /// The fetches under way, of all principals.
    static func listFetches(
        of member: RunningSession, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        for session in member.sessions {
            for fetch in session.openFetches() {
                try await reply(
                    .fetch(
                        FetchRecord(
                            session: member.settings.name.text, principal: session.principal,
                            url: fetch.uri, clients: fetch.clients,
                            bytesReceived: fetch.bytesReceived)))
            }
        }
    }

    /// What was missing offline, of all principals in memory.
    static func listMissing(
        of member: RunningSession, clears: Bool,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        var unlisted: UInt64 = 0
        for session in member.sessions {
            let misses = session.missedOffline(clears: clears)
            for entry in misses.all {
                var missing = MissingURL(entry, in: member.settings.name.text)
                missing.principal = session.principal
                try await reply(.missing(missing))
            }
            unlisted &+= misses.unlisted
        }
        if unlisted > 0 { try await reply(.unlistedMissing(unlisted)) }
    }
}

extension Session {
    /// nil where the session is not split.
    fileprivate var principal: String? {
        self.partition.isEmpty ? nil : CacheKey.principal(of: self.partition)
    }
}

extension MissingURL {
    fileprivate init(_ entry: OfflineMisses.Entry, in session: String) {
        self.init(
            session: session, method: entry.method, url: entry.uri, count: entry.count,
            firstMicroseconds: entry.first.microseconds, lastMicroseconds: entry.last.microseconds)
    }
}
