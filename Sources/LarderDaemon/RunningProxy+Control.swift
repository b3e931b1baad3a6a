import Glibc
import LarderConfig
import LarderControl
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderProxy
import LarderSession
import LarderStore

extension RunningProxy: ControlResponder {
    /// Answers a command, line by line.
    func answer(
        _ request: ControlRequest, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        switch request {
        case .status: try await reply(.status(self.status()))
        case .statistics(let name):
            for member in try self.members(named: name) {
                try await reply(.statistics(Self.statistics(of: member)))
            }
        case .listMemory(let name):
            let now = SystemClock().now()
            for member in try self.members(named: name) {
                for object in member.session.store.residentObjects() {
                    try await reply(.object(MemoryObject(object, at: now, in: member.session)))
                }
            }
        case .listExchanges:
            for member in self.members {
                for fetch in member.session.openFetches() {
                    try await reply(
                        .exchange(OpenExchange(fetch, session: member.settings.name.text)))
                }
            }
        case .listMissing(let name, let clears):
            for member in try self.members(named: name) {
                let misses = member.session.missedOffline(clears: clears)
                for entry in misses.all { try await reply(.missing(MissingURL(entry, in: name))) }
                if misses.unlisted > 0 { try await reply(.unlistedMissing(misses.unlisted)) }
            }
        case .purge(let name, let selection):
            for member in try self.members(named: name) {
                let removed = try await PurgeFilter(selection).purge(member.session)
                try await reply(
                    .purged(PurgeOutcome(session: member.settings.name.text, removed: removed)))
            }
        case .reload:
            do {
                try await reply(.reloaded(ReloadOutcome(needingRestart: self.reload())))
            } catch let error as ConfigurationError {
                throw ControlRefusal(failure: ControlFailure(.invalid, "\(error)"))
            }
        case .mend(let name, let damage):
            try await reply(.mended(self.mend(damage, in: self.members(named: name))))
        case .importArchive(let name, let path):
            for member in try self.members(named: name) {
                try await self.importArchive(path, into: member, reply)
            }
        case .explain(let question):
            for member in try self.members(named: question.session) {
                try await reply(.explanation(await Self.explain(question, by: member)))
            }
        }
    }

    func members(named name: String?) throws -> [Member] {
        guard let name else { return self.members }
        let found = self.members.filter { $0.settings.name.text == name }
        guard !found.isEmpty else {
            let names = self.members.map(\.settings.name.text).joined(separator: ", ")
            throw ControlRefusal(
                failure: ControlFailure(.noSuchSession, "no session \(name); there are: \(names)"))
        }
        return found
    }

    /// How many of the last exchanges about a URI are told.
    private static let historyLimit = 16

    private static func explain(
        _ question: ExplainQuestion, by member: Member
    ) async throws -> ExplanationRecord {
        let request = try question.request()
        let cachePolicy = try question.cachePolicy()
        let session = member.session
        let history = session.recentExchanges(for: request.uri, limit: Self.historyLimit)
        return await withCheckedContinuation { continuation in
            session.explain(request, cachePolicy: cachePolicy) { explanation, bodyLengths in
                continuation.resume(
                    returning: ExplanationRecord(
                        explanation, of: request, session: question.session,
                        bodyLengths: bodyLengths, history: history))
            }
        }
    }

    private func status() -> DaemonStatus {
        DaemonStatus(
            release: Release.name, pid: getpid(),
            startedMicroseconds: self.started.microseconds,
            listeners: self.listeners.map { "\($0)" },
            sessions: self.members.map(\.settings.name.text), configuration: self.loaded.file,
            connections: self.proxy.openConnections, requests: self.proxy.statistics().requests)
    }

    private static func statistics(of member: Member) -> SessionStatistics {
        let counters = member.session.counters()
        let store = member.session.store.statistics()
        var sum = SessionStatistics(
            session: member.settings.name.text, kind: member.settings.kind.rawValue,
            memory: .init(store.memory), disk: store.disk.map { .init($0) })
        sum.fileBytes = store.fileBytes
        sum.requests = counters.requests
        sum.hits = counters.hits
        sum.validated = counters.validated
        sum.misses = counters.forwarded &+ counters.collapsed
        sum.bytesServed = counters.bytesFromStore &+ counters.bytesFromOrigins
        sum.bytesFromCache = counters.bytesFromStore
        sum.failures = counters.failed
        sum.storeFailures = store.storeFailures
        sum.damaged = store.damaged
        sum.backgroundFetches = counters.backgroundFetches
        sum.gapFetches = counters.gapFetches
        sum.bodiesResumed = counters.bodiesResumed
        sum.partsKept = counters.partsKept
        sum.reasons = Dictionary(
            uniqueKeysWithValues: counters.reasons.map { ($0.key.rawValue, $0.value) })
        return sum
    }

    /// What all sessions did together since the start.
    func counters() -> SessionCounters {
        self.members.reduce(SessionCounters()) { $0 + $1.session.counters() }
    }
}

extension SessionStatistics.Tier {
    fileprivate init(_ tier: StoreStatistics.Tier) {
        self.init(
            objects: tier.objects, bytes: tier.bytes, capacity: tier.capacity,
            evictions: tier.evictions, hits: tier.hits)
    }
}

extension MemoryObject {
    fileprivate init(_ resident: ResidentObject, at now: Timestamp, in session: Session) {
        let object = resident.object
        let freshness = Freshness.of(
            object.head, at: now,
            configuration: session.configuration.policy.resolved(forKey: object.key))
        let parts = object.key.parts
        self.init(
            id: (resident.lowerID ?? object.id).rawValue, partition: parts.partition,
            method: parts.method,
            url: parts.uri, status: Int(object.head.status.rawValue), bytes: object.bodyLength,
            ageMilliseconds: freshness.currentAge.inMicroseconds / 1000,
            freshForMilliseconds: freshness.remaining.inMicroseconds / 1000, hits: object.hits,
            isOnDisk: resident.lowerID != nil,
            partial: object.head.extent.map { extent in
                PartialObject(
                    ranges: extent.ranges.map { $0.lowerBound...$0.upperBound - 1 },
                    completeLength: extent.completeLength)
            })
    }
}

extension MissingURL {
    fileprivate init(_ entry: OfflineMisses.Entry, in session: String) {
        self.init(
            session: session, method: entry.method, url: entry.uri, count: entry.count,
            firstMicroseconds: entry.first.microseconds, lastMicroseconds: entry.last.microseconds)
    }
}

extension OpenExchange {
    fileprivate init(_ fetch: Session.OpenFetch, session: String) {
        self.init(
            id: 0, session: session, client: "\(fetch.clients)", method: "GET", url: fetch.uri,
            elapsedMilliseconds: 0, bytesSent: fetch.bytesReceived, state: "fetching")
    }
}
