package import LarderControl
package import LarderCookies
import LarderEngine
package import LarderHTTP

// What a command asks of a jar, done on the value: whether a proxy holds it or a file.

/// What a jar answers to a command.
package enum CookieAnswer: Sendable, Equatable {
    case cookies([CookieRecord])
    case verdicts([CookieVerdict])
    case removed(Int)
}

extension CookieJar {
    /// Does what a command asks.
    ///
    /// A person is not bound by the accept policy, which is about what servers may set; every rule
    /// that holds for any cookie whatever its source holds here, too.
    package mutating func obey(
        _ command: CookieCommand, at now: Timestamp
    ) -> (answer: CookieAnswer, changes: [CookieChange]) {
        switch command {
        case .list(let filter, let reveals):
            let found = self.all(at: now).filter { filter.matches($0) }
            return (.cookies(found.map { CookieRecord($0, reveals: reveals) }), [])
        case .put(let records):
            var verdicts: [CookieVerdict] = []
            var changes: [CookieChange] = []
            for record in records {
                let (verdict, change) = self.put(record, at: now)
                verdicts.append(verdict)
                changes += change
            }
            return (.verdicts(verdicts), changes)
        case .remove(let filter):
            let changes = self.remove { filter.matches($0) && !$0.isExpired(at: now) }
            return (.removed(changes.count), changes)
        }
    }

    /// Does what a command asks with the cookies that a storage keeps, for which there is no jar in
    /// memory.
    ///
    /// When it returns, what has changed is kept.
    ///
    /// - Parameter storage: nil: it keeps none, and nothing.
    static func obey(
        _ command: CookieCommand, keptIn storage: (any CookieStorage)?, at now: Timestamp
    ) async throws(CookieStorageError) -> CookieAnswer {
        var jar = CookieJar(suffixes: PublicSuffixList.system)
        guard let storage else { return jar.obey(command, at: now).answer }
        let expired = jar.restore(try await storage.load(), at: now)
        let (answer, changes) = jar.obey(command, at: now)
        if !changes.isEmpty { try await storage.apply(expired + changes) }
        return answer
    }

    private mutating func put(
        _ record: CookieRecord, at now: Timestamp
    ) -> (CookieVerdict, [CookieChange]) {
        guard let cookie = Cookie(record, at: now) else {
            return (CookieVerdict(refusal: "malformed"), [])
        }
        let outcome = self.set(cookie, at: now)
        if let refusal = outcome.refusal {
            return (CookieVerdict(refusal: refusal.rawValue), outcome.changes)
        }
        return (cookie.isExpired(at: now) ? .expired : CookieVerdict(), outcome.changes)
    }
}

extension CookieFilter {
    package func matches(_ cookie: Cookie) -> Bool {
        if let name = self.name, name != cookie.name { return false }
        if let path = self.path, path != cookie.path { return false }
        guard let domain = self.domain else { return true }
        let wanted = String(
            decoding: domain.utf8.drop { $0 == UInt8(ascii: ".") }.map(ASCII.lowercased),
            as: UTF8.self)
        return CookieDomain.matches(cookie.domain, wanted)
    }
}

extension CookieRecord {
    package init(_ cookie: Cookie, reveals: Bool) {
        self.init(
            name: cookie.name, value: reveals ? ControlSecret(cookie.value) : nil,
            valueBytes: cookie.value.count, domain: cookie.domain, isHostOnly: cookie.isHostOnly,
            path: cookie.path, isSecure: cookie.isSecure, isHTTPOnly: cookie.isHTTPOnly,
            sameSite: cookie.sameSite.rawValue, createdMicroseconds: cookie.creation.microseconds,
            lastUsedMicroseconds: cookie.lastAccess.microseconds,
            expiryMicroseconds: cookie.expiry?.microseconds)
    }
}

extension Cookie {
    /// The cookie that a record stands for; nil where it has no value, or a word that is none.
    ///
    /// A moment of creation that lies ahead would have it evicted last, and is now.
    package init?(_ record: CookieRecord, at now: Timestamp) {
        guard let value = record.value, let sameSite = SameSite(rawValue: record.sameSite) else {
            return nil
        }
        let created = Timestamp(microseconds: record.createdMicroseconds)
        self.init(
            name: record.name, value: value.revealed, domain: record.domain,
            isHostOnly: record.isHostOnly, path: record.path, isSecure: record.isSecure,
            isHTTPOnly: record.isHTTPOnly, sameSite: sameSite, creation: min(created, now),
            lastAccess: now,
            expiry: record.expiryMicroseconds.map { Timestamp(microseconds: $0) })
    }
}
